# SPDX-License-Identifier: Apache-2.0
"""The tutorial's own scripts, byte for byte, in the three languages: from typescript/, python/ or csharp/ beside ../maitento and
../data, with the SDK installed from its package, on a server that is new. They print what the tutorial says they do.

The tests of a language go through the tutorial in its order and stand on what the ones before left."""
import json
import re
import shutil

import pytest

from conftest import debian_is_there
from languages import pattern
from worlds import World, installed, language, model, said, say, server_of_its_own  # noqa: F401

# The files have other sizes with the line ends that they have here; with CRLF they have those of the text.
LF = {398: 387, 915: 895}


@pytest.fixture(scope="module")
def world(language, server_of_its_own, tutorial, tmp_path_factory, model):
    project = tmp_path_factory.mktemp(f"tutorial-{language.name}") / "21-sandboxes"
    shutil.copytree(tutorial, project)
    world = World(language, server_of_its_own, project)
    world.mt("namespace-create", "tutorials", check=0)
    world.mt("provider-set", "deepseek", "--base-url", model.url, "--key-stdin", stdin="sk-test-1234567890\n", check=0)
    return world


def command(line):
    return say(json.dumps({"done": False, "command": line, "answer": ""}))


def answer(text):
    return say(json.dumps({"done": True, "command": "", "answer": text}))


def commands_of(transcript):
    """The commands, and the answer, that a text of the tutorial shows."""
    return re.findall(r"^\$ (.*)$", transcript, re.M), re.search(r"^Answer: (.*)$", transcript, re.M).group(1)


def printed(done, text, sizes=()):
    assert re.fullmatch(pattern(text, sizes), done.stdout), f"{done.stdout}\n-- expected --\n{text}"
    assert done.stderr == ""


def edit(world, file, old, new):
    """Changes a copy of a file of the project in place."""
    path = world.project / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture()
def as_it_was(world, tutorial):
    """A test may change the project; the next finds it as the tutorial has it."""
    yield
    for folder in ("maitento", "data"):
        shutil.rmtree(world.project / folder)
        shutil.copytree(tutorial / folder, world.project / folder)


def test_092_the_scripts_are_the_tutorials_own(world, tutorial):
    names = sorted(p.name for p in (tutorial / world.language.name).iterdir())
    assert [n.split(".")[0] for n in names] == ["analyst", "commands", "sandbox"]
    for name in names:
        assert (world.folder / name).read_bytes() == (tutorial / world.language.name / name).read_bytes()


def test_002_a_deploy_before_its_file_system_names_what_is_missing(world):
    done = world.run("commands", check=None)
    for file in ("sales-report", "workbench"):
        assert re.search(rf"capsules/{file}\.mtr:\d+:\d+: no file system 'sales-data' in namespace 'tutorials'", done.stderr), done.stderr
    assert done.returncode != 0


def test_008_009_010_015_016_092_the_report(world, said):
    text = said["2"][0]
    assert text.startswith("Capsule finished: Finished\n")
    for _ in ("first", "again"):  # what there is already is found, and the report is written over
        printed(world.run("sandbox"), text + "\n")


def test_039_044_045_046_047_090_092_commands(world, said):
    printed(world.run("commands"), said["3"][0] + "\n", LF)


def test_045_commands_with_the_files_that_the_tutorial_had(world, said, tmp_path):
    for name in ("sales.csv", "summarise.py"):
        text = (world.project / "data" / name).read_bytes()
        (tmp_path / name).write_bytes(text.replace(b"\n", b"\r\n"))
        world.mt("cp", tmp_path / name, f"/vfs/sales-data@tutorials/{name}", check=0)
    printed(world.run("commands"), said["3"][0] + "\n")


def test_073_083_084_087_092_the_analyst(world, said, model):
    text = said["5"][0]
    commands, last = commands_of(text)
    assert len(commands) == 3 and "546.80" in last
    model.add(*map(command, commands), answer(last))
    printed(world.run("analyst"), text)


def test_078_088_a_command_that_fails(world, said, model):
    text = said["6"][0]
    commands, last = commands_of(text)
    model.add(*map(command, commands), answer(last))
    printed(world.run("analyst", "Use the sqlite3 command-line tool to find which product sold the most units."), text)
    assert "Use the sqlite3 command-line tool" in model.seen[-1].texts[1][1]


def test_005_088_the_package_that_the_command_needs(world, said, model, as_it_was):
    if not debian_is_there():
        pytest.skip("needs Debian's archive")
    edit(world, "maitento/capsules/workbench.mtr", 'maxDuration = "00:10:00"\n', 'maxDuration = "00:10:00"\npackages = ["sqlite3"]\n')
    first = commands_of(said["6"][0])[0][0]
    model.add(command(first), answer("Blue mug"))
    assert world.run("analyst", "Again.").stdout == (
        f'$ {first}\nexit code: 0\n"Blue mug",44\n"Tea sampler",43\n"Desk lamp",10\n\nAnswer: Blue mug\n')


def test_079_no_answer_in_six_steps(world, model):
    model.add(*[command(f"echo {n}") for n in range(6)])
    steps = "".join(f"$ echo {n}\nexit code: 0\n{n}\n" for n in range(6))
    assert world.run("analyst", "What?").stdout == f"{steps}\nAnswer: \n"


def test_022_the_challenge(world, said, as_it_was):
    """Revenue by region, too: only the Python script is changed."""
    edit(world, "data/summarise.py", 'lines += ["", f"Total', '''regions = defaultdict(float)
with open("/mnt/data/sales.csv", newline="") as f:
    for row in csv.DictReader(f):
        regions[row["region"]] += int(row["units"]) * float(row["unit_price"])
lines += ["", "| Region | Revenue |", "|---|---:|"]
lines += [f"| {region} | {revenue:.2f} |" for region, revenue in sorted(regions.items(), key=lambda item: -item[1])]
lines += ["", f"Total''')
    before, total = said["2"][0].rsplit("\nTotal", 1)
    assert world.run("sandbox").stdout == f"{before}\n{said['review'][0]}\nTotal{total}\n"


# ---- if it didn't work ----

@pytest.fixture(scope="module")
def details(world):
    """Runs a capsule or an app by this language's SDK: (status, failure details)."""
    source = __file__.rsplit("/", 1)[0] + "/details/"
    shutil.copytree(source, world.folder, dirs_exist_ok=True)

    def run(*arguments):
        status, details = world.run("details", *arguments).stdout.split("\n", 1)
        return status, details.rstrip("\n")
    return run


def test_025_a_script_that_fails(world, details, as_it_was):
    edit(world, "data/summarise.py", "import csv\n", 'raise SystemExit("no sales today")\n')
    assert world.run("sandbox").stdout.startswith("Capsule finished: Error\n")
    assert details("capsule", "sales-report") == (
        "Error", "Startup command failed: python3 /mnt/data/summarise.py - no sales today")


def test_026_a_script_that_is_not_there(world, details):
    world.mt("rm", "/vfs/sales-data@tutorials/summarise.py", check=0)
    status, why = details("capsule", "sales-report")
    assert status == "Error" and why.startswith("Startup command failed: python3 /mnt/data/summarise.py - ")
    assert why.endswith("[Errno 2] No such file or directory")


def test_030_057_075_a_capsule_that_does_not_start(world, details, as_it_was):
    edit(world, "maitento/capsules/workbench.mtr", "chmod -R a+rwX /tmp/data", "chmod -R a+rwX /tmp/nothing")
    done = world.run("commands", check=None)
    assert done.returncode != 0 and done.stdout == ""
    assert "CapsuleCommandAborted" in done.stderr and "Startup command failed: bash -c " in done.stderr, done.stderr
    assert details("app", "analyst", "Which region?") == (
        "Error", "The capsule did not start: Startup command failed: bash -c rm -rf /tmp/data && cp -r /mnt/data /tmp/data && "
        "chmod -R a+rwX /tmp/nothing - chmod: cannot access '/tmp/nothing': No such file or directory")


def test_013_another_namespace_by_the_environment(world, said):
    """As the scripts take it, and the scripts' own file system is made where they say."""
    printed(world.run("sandbox", MAITENTO_NAMESPACE="other"), said["2"][0] + "\n")
    assert "report.md" in world.mt("ls", "/vfs/sales-data@other/", check=0).stdout
