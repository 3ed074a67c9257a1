// SPDX-License-Identifier: Apache-2.0
// "dotnet new console -f net8.0": an SDK newer than 8.0 has templates of its own release only, and
// those of 8.0 are not to be had apart. So its console and library templates (MIT) are laid beside
// them a second time, as 8.0's. Needs no network when used.
#include "image/components-internal.h"
#include "image/run.h"

// Run by the image's own Python, in the image. Arguments: the folder of .NET, the SDK's major
// version, the version of 8.0.
static const char script[] =
    "import glob, os, sys, zipfile\n"
    "home, major, version = sys.argv[1:4]\n"
    "old, new = 'net%s.0' % major, 'net8.0'\n"
    "found = glob.glob('%s/templates/%s.*/microsoft.dotnet.common.projecttemplates.%s.0.*.nupkg' % "
    "(home, major, major))\n"
    "folder = '%s/templates/%s' % (home, version)\n"
    "os.makedirs(folder, exist_ok=True)\n"
    "target = folder + '/microsoft.dotnet.common.projecttemplates.8.0.%s.nupkg' % version\n"
    "with zipfile.ZipFile(sorted(found)[-1]) as src, zipfile.ZipFile(target, 'w', "
    "zipfile.ZIP_DEFLATED) as dst:\n"
    "    for name in src.namelist():\n"
    "        parts = name.split('/')\n"
    "        if parts[0] == 'content' and not parts[1].startswith(('ConsoleApplication-', "
    "'ClassLibrary-')):\n"
    "            continue\n"
    "        if name.startswith(('_rels/', 'package/')) or name in ('.signature.p7s', "
    "'[Content_Types].xml'):\n"
    "            continue\n"
    "        data = src.read(name)\n"
    "        if not name.endswith(('.ico', '.png')):\n"
    "            text = data.decode('utf-8-sig').replace(old, new).replace('.NET %s.0' % major, "
    "'.NET 8.0')\n"
    "            text = text.replace('.%s.0\"' % major, '.8.0\"').replace('\"precedence\": "
    "\"12000\"', '\"precedence\": \"8000\"')\n"
    "            text = text.replace('Templates.%s.0<' % major, 'Templates.8.0<')\n"
    "            if name.endswith('.nuspec'):\n"
    "                a, b = text.index('<version>'), text.index('</version>')\n"
    "                text = text[:a] + '<version>' + version + text[b:]\n"
    "                name = 'Microsoft.DotNet.Common.ProjectTemplates.8.0.nuspec'\n"
    "            data = text.encode()\n"
    "        dst.writestr(name, data)\n"
    "os.chmod(target, 0o644)\n";

int mt_dotnet_install_templates(const mt_components *c, const char *version, const char *root,
                                mt_err **err)
{
    _cleanup_free_ char *major = mt_str_dup((mt_str){c->sdk_version, strcspn(c->sdk_version, ".")});
    _cleanup_free_ char *python = mt_asprintf("%s/usr/bin/python3", root);
    const char *argv[] = {"/usr/bin/python3", "-I",  "-c",    script,
                          "/usr/lib/dotnet",  major, version, NULL};

    if (!major || !python)
        return mt_fail_oom(err);
    if (mt_streq(major, "8") || access(python, X_OK) < 0)
        return 0;
    return mt_program_run(
        &(mt_program){
            .what = "making templates of .NET 8", .argv = argv, .root = root, .timeout_s = 120},
        err);
}
