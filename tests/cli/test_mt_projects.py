# SPDX-License-Identifier: Apache-2.0
"""Projects: init and deploy."""
import json
import os
import subprocess

from fake import Problem
from paper import vfs


def test_init_writes_a_project_that_deploys(mt, fake, tmp_path):
    done = mt("init", "first")
    assert [line.strip() for line in done.out.splitlines()[2:]] == [
        "mt vfs-create hello", "mt deploy first", "mt capsule-start hello", "mt cat /vfs/hello/hello.txt"]
    assert (tmp_path / "first/capsules/hello.mtr").exists()
    assert "overwrites nothing" in mt("init", "first", code=5).err
    fake.default = None
    assert "mt namespace-create first" in mt("init", "second").out
    mt("deploy", "first", "-n", "work")
    assert [f["path"] for f in fake.deployed["files"]] == ["capsules/hello.mtr"]
    assert not fake.deployed["dryRun"] and not fake.deployed["prune"]


def test_deploy_collects_the_files_of_a_project(mt, fake, tmp_path):
    project = tmp_path / "p"
    for path, text in {"capsules/a.mtr": "x = 1\n", "apps/b/b.mtc": "", "apps/b/b.mtr": "", "agents/c.mtr": "",
                       "interactions/one-shot/d.mtr": "", "json/e.json": "{}", "prompts/f.md": "ü",
                       "tools/t.mtr": "", "README.md": "no", "src/x.mtr": "no", "capsules/.hidden.mtr": "no",
                       "capsules/a.mtr~": "no", "capsules/notes.txt": "no", ".git/capsules/x.mtr": "no"}.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    (project / "prompts/bytes.md").write_bytes(b"\xff\xfe")
    (project / "capsules/link.mtr").symlink_to("/etc/passwd")
    os.mkfifo(project / "json/pipe.json")
    done = mt("deploy", "p", "--dry-run", "--prune")
    files = {f["path"]: f.get("content", f.get("contentBase64")) for f in fake.deployed["files"]}
    assert files == {"capsules/a.mtr": "x = 1\n", "apps/b/b.mtc": "", "apps/b/b.mtr": "", "agents/c.mtr": "",
                     "interactions/one-shot/d.mtr": "", "json/e.json": "{}", "prompts/f.md": "ü", "tools/t.mtr": "",
                     "prompts/bytes.md": "//4="}
    assert fake.deployed["dryRun"] and fake.deployed["prune"]
    assert "link.mtr is a link: skipped" in done.err and "pipe.json is no regular file" in done.err
    assert "notes.txt is no file of a project" in done.err and ".hidden" not in done.err
    assert done.out.split() == ["created", "capsule", "x", "(version", "1)", "unchanged", "prompt", "p", "(version",
                                "2)"]
    assert "dry run" in done.err
    assert "did you mean 'q/maitento'?" in (project.rename(tmp_path / "m"), (tmp_path / "q").mkdir(), (
        tmp_path / "m").rename(tmp_path / "q/maitento"), mt("deploy", "q", code=2))[-1].err
    assert "none of agents" in mt("deploy", "home", code=2).err


def test_deploy_prints_diagnostics_with_a_caret(mt, fake, tmp_path):
    (tmp_path / "p/capsules").mkdir(parents=True)

    def fail(r, m):
        raise Problem(422, "deployFailed", "2 errors in 1 file", diagnostics=[
            {"file": "capsules/x.mtr", "line": 3, "column": 4, "message": "no file system 'sales-data'",
             "hint": "mt vfs-create sales-data", "sourceLine": "\té@ref(\"sales-data\")"},
            {"file": "", "line": 0, "column": 0, "message": "whole\x1b"}])
    fake.on("POST", ".*/deploy", fail)
    done = mt("deploy", "p", code=1)
    assert done.err.startswith("p/capsules/x.mtr:3:4: error: no file system 'sales-data'\n"
                               "    \té@ref(\"sales-data\")\n    \t  ^\n    hint: mt vfs-create sales-data\n"
                               "error: whole?\nmt: 2 errors in 1 file\n")
    assert json.loads(mt("deploy", "p", "--json", code=1).err)["diagnostics"][0]["line"] == 3


def test_the_lines_of_init_can_be_pasted(mt, fake, tmp_path):
    for name in ("my first", "it's", "-n"):
        done = mt("init", "--", name)
        line = next(line for line in done.out.splitlines() if "mt deploy" in line)
        shown = subprocess.run(["bash", "-c", f"set -- {line}; printf %s \"$3\""], capture_output=True, text=True, check=True)
        assert (tmp_path / shown.stdout).is_dir() and not shown.stdout.startswith("-")
    assert "control character" in mt("init", "a\x1b[31m", code=2).err
