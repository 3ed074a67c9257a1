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


@pytest.fixture(scope="module")
def machine(api, mt):
    """A run of a capsule of the default image, and what that image was built without."""
    name = mtserver.IMAGES / "names" / "default"
    if not name.exists():
        pytest.skip("needs the default image: mt-image build default")
    about = mtserver.IMAGES / name.read_text().strip() / "image.json"
    ns = api.namespace("machine")
    api.capsule(ns, [], image="default", maxDuration="00:10:00", limits={"memory": "2GiB"})
    run = api.get(api.start(ns, "c"), until="ready")
    yield run["id"], json.loads(about.read_text())["missing"]
    api.terminate(run)


@pytest.mark.parametrize("line", TOOLS, ids=lambda line: line.split()[0])
def test_066_languages_and_tools_are_there_and_work(machine, mt, line):
    run, missing = machine
    expected, component = TOOLS[line]
    if component in missing:
        pytest.skip(f"the image was built without {component}")
    done = mt("capsule-exec", run, "--wait", line, check=0)
    assert done.stdout == expected, done
