"""What the machine has (66), in the image that capsules have where they name none."""
import json

import pytest

import mtserver

# What prints a line where it works, and with which image component it comes.
TOOLS = {
    "python3 -c 'import sqlite3, sys; print(sys.version_info >= (3, 11))'": ("True\n", "debian"),
    "node -e 'console.log(process.versions.node.split(\".\")[0], 6 * 7)'": ("22 42\n", "node"),
    "npm --version | grep -c .": ("1\n", "node"),
    "dotnet --list-runtimes | grep -c 'Microsoft.NETCore.App 8[.]0'": ("1\n", "dotnet"),
    "printf 'class H { public static void main(String[] a) { System.out.println(Runtime.version().feature()); } }' > /tmp/H.java"
    " && java /tmp/H.java": ("17\n", "debian"),
    "cd /tmp && git init -q g && git -C g status --short --branch": ("## No commits yet on master\n", "debian"),
    "printf 'all:\\n\\t@echo made\\n' > /tmp/Makefile && make -s -C /tmp": ("made\n", "debian"),
    "printf '#include <stdio.h>\\nint main(void) { puts(\"built\"); }' > /tmp/b.c && gcc -o /tmp/b /tmp/b.c && /tmp/b":
        ("built\n", "debian"),
    "echo '# Title' | pandoc -t html": ("<h1 id=\"title\">Title</h1>\n", "debian"),
    "ffmpeg -v error -f lavfi -i testsrc=duration=1:size=16x16 -f null - && echo filmed": ("filmed\n", "debian"),
}


# The SDKs, in scripts that lie anywhere: who started the run is signed in, without a key and without the network.
SCRIPTS = {
    "sdk-typescript": ("node /tmp/script.ts", "/tmp/script.ts", """
import { Maitento } from "@maitento/sdk";
const mt: Maitento = new Maitento();
const files = mt.vfs.open("notes");
await files.writeText("/typescript.txt", "written");
console.log((await mt.namespaces.find(process.env.MAITENTO_NAMESPACE!))?.name, await files.readText("/typescript.txt"));
"""),
    "sdk-python": ("python3 /tmp/script.py", "/tmp/script.py", """
from maitento import Maitento
mt = Maitento()
files = mt.vfs.open("notes")
files.write_text("/python.txt", "written")
print(mt.namespaces.find(mt.default_namespace).name, files.read_text("/python.txt"))
"""),
    "sdk-csharp": ("dotnet run /tmp/script.cs", "/tmp/script.cs", """
#:package Maitento.Sdk@26.10.0
using Maitento.Sdk;
await using var mt = MaitentoClient.CreateFromEnvironment();
var ns = mt.DefaultNamespace!;
var notes = (await mt.VirtualFileSystems.GetByNameAsync(ns, "notes"))!;
await mt.VirtualFileSystems.WriteTextById(notes.Id, "/csharp.txt", "written");
Console.WriteLine($"{(await mt.Namespaces.GetByNameAsync(ns))!.Name} {await mt.VirtualFileSystems.ReadTextById(notes.Id, "/csharp.txt")}");
"""),
}


@pytest.fixture(scope="module")
def machine(api, mt):
    """A run of a capsule of the default image, and what that image was built without."""
    name = mtserver.IMAGES / "names" / "default"
    if not name.exists():
        pytest.skip("needs the default image: mt-image build default")
    about = mtserver.IMAGES / name.read_text().strip() / "image.json"
    ns = api.namespace("machine")
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "notes"}, 201)
    api.capsule(ns, [], image="default", maxDuration="00:10:00", limits={"memory": "2GiB"}, network="none")
    run = api.get(api.start(ns, "c"), until="ready")
    yield run["id"], json.loads(about.read_text())
    api.terminate(run)


@pytest.mark.parametrize("line", TOOLS, ids=lambda line: line.split()[0])
def test_066_languages_and_tools_are_there_and_work(machine, mt, line):
    run, image = machine
    expected, component = TOOLS[line]
    if component in image["missing"]:
        pytest.skip(f"the image was built without {component}")
    done = mt("capsule-exec", run, "--wait", line, check=0)
    assert done.stdout == expected, done


@pytest.mark.parametrize("sdk", SCRIPTS)
def test_068_069_090_the_sdks_are_there_and_signed_in(machine, mt, api, sdk):
    run, image = machine
    line, path, script = SCRIPTS[sdk]
    if sdk in image["missing"] or sdk == "sdk-csharp" and "dotnet" in image["missing"]:
        pytest.skip(f"the image was built without {sdk}")
    if sdk == "sdk-csharp" and not any(c["name"] == "dotnet-sdk" and int(c["version"].split(".")[0]) >= 10 for c in image["components"]):
        pytest.skip("dotnet run FILE came with .NET 10, and the image has the older SDK of its build host")
    ns = api.call("GET", f"/v1/capsule-runs/{run}")["namespace"]
    done = mt("capsule-exec", run, "--wait", f"cat > {path} <<'E'\n{script.lstrip()}E\ncd / && {line}", check=0)
    assert (done.stdout, done.stderr) == (f"{ns} written\n", "")


def test_the_sdks_belong_to_root(machine, mt):
    run, image = machine
    places = {"sdk-typescript": "/node_modules/@maitento/sdk/package.json", "sdk-csharp": "/etc/opt/NuGet/Config/maitento.Config",
              "sdk-python": "/usr/lib/python3/dist-packages/maitento/__init__.py"}
    there = [path for sdk, path in places.items() if sdk not in image["missing"]]
    done = mt("capsule-exec", run, "--wait", f"stat -c '%U %a' {' '.join(there)}", check=0)
    assert done.stdout == "root 644\n" * len(there)
