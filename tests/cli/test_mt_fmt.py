# SPDX-License-Identifier: Apache-2.0
"""mt fmt: what it changes, what it leaves alone, what it says. No server is asked."""
import json
import os
import stat

import pytest

UGLY = b"// why\r\nautoTerminate=true // at the end\n\n\n\nvfs=[{vfs=@ref(\"d\"),mountName=\"d\"}]"
FAIR = b"// why\nautoTerminate = true // at the end\n\nvfs = [{ vfs = @ref(\"d\"), mountName = \"d\" }]\n"
BROKEN = b"autoTerminate = tru\nmaxDuration = nul\n"


@pytest.fixture()
def project(tmp_path):
    folder = tmp_path / "maitento"
    (folder / "capsules").mkdir(parents=True)
    (folder / "apps" / "a").mkdir(parents=True)
    (folder / "capsules" / "ugly.mtr").write_bytes(UGLY)
    (folder / "capsules" / "fair.mtr").write_bytes(FAIR)
    (folder / "apps" / "a" / "a.mtr").write_bytes(UGLY)
    (folder / "apps" / "a" / "a.mtc").write_bytes(b"int   main(){}")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.mtr").write_bytes(UGLY)
    return folder


@pytest.fixture(autouse=True)
def unasked(fake):
    yield
    assert fake.requests == []


def test_a_folder_is_laid_out_and_stays_so(mt, project):
    before = (project / "capsules" / "fair.mtr").stat()
    done = mt("fmt", project)
    assert done.out.splitlines() == [f"{project}/apps/a/a.mtr", f"{project}/capsules/ugly.mtr"] and done.err == ""
    assert (project / "capsules" / "ugly.mtr").read_bytes() == FAIR == (project / "apps" / "a" / "a.mtr").read_bytes()
    after = (project / "capsules" / "fair.mtr").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (project / ".git" / "x.mtr").read_bytes() == UGLY
    assert (project / "apps" / "a" / "a.mtc").read_bytes() == b"int   main(){}"
    assert mt("fmt", project).out == "" and mt("fmt", "--check", project).out == ""
    assert sorted(p.name for p in (project / "capsules").iterdir()) == ["fair.mtr", "ugly.mtr"]


def test_check_lists_and_changes_nothing(mt, project):
    done = mt("fmt", "--check", "capsules", cwd=project, code=1)
    assert done.out == "capsules/ugly.mtr\n" and done.err == ""
    assert (project / "capsules" / "ugly.mtr").read_bytes() == UGLY
    assert json.loads(mt("fmt", "--check", "--json", cwd=project, code=1).out) == {
        "wouldChange": ["apps/a/a.mtr", "capsules/ugly.mtr"], "diagnostics": []}
    assert mt("fmt", cwd=project / "capsules").out == "ugly.mtr\n"


def test_stdin_to_stdout(mt):
    assert mt("fmt", "-", stdin=UGLY).stdout == FAIR
    assert mt("fmt", "-", "--check", stdin=UGLY, code=1).stdout == b""
    assert mt("fmt", "-", "--check", stdin=FAIR).stdout == b""
    assert mt("fmt", "-", stdin=b"").stdout == b""
    done = mt("fmt", "-", stdin=BROKEN, code=1)
    assert done.out == "" and done.err.startswith("standard input:1:17: error: 'tru' is no value")
    assert "hint: write true, or \"tru\" for a text" in done.err and "standard input:2:15: error" in done.err
    assert "stands alone" in mt("fmt", "-", "x", code=2).err


def test_a_file_with_errors_stays_and_the_others_do_not_wait(mt, project):
    (project / "capsules" / "a-broken.mtr").write_bytes(BROKEN)
    done = mt("fmt", project, code=1)
    assert f"{project}/capsules/a-broken.mtr:1:17: error" in done.err and "    autoTerminate = tru\n" in done.err
    assert f"{project}/capsules/a-broken.mtr:2:15: error" in done.err
    assert done.err.endswith("1 of 4 files not formatted: correct the errors first\n")
    assert (project / "capsules" / "a-broken.mtr").read_bytes() == BROKEN
    assert (project / "capsules" / "ugly.mtr").read_bytes() == FAIR
    faults = json.loads(mt("fmt", "--json", project, code=1).out)["diagnostics"]
    assert [(d["line"], d["column"]) for d in faults] == [(1, 17), (2, 15)]


def test_mode_and_links_are_kept(mt, project, tmp_path):
    ugly, link = project / "capsules" / "ugly.mtr", tmp_path / "link.mtr"
    os.chmod(ugly, 0o664)
    os.chown(ugly, 1234, 5678)
    link.symlink_to(ugly)
    (project / "capsules" / "outside.mtr").symlink_to(tmp_path / "elsewhere.mtr")
    (tmp_path / "elsewhere.mtr").write_bytes(UGLY)
    mt("fmt", project)
    assert (tmp_path / "elsewhere.mtr").read_bytes() == UGLY  # a link in a folder is not followed
    state = ugly.stat()
    assert (stat.S_IMODE(state.st_mode), state.st_uid, state.st_gid) == (0o664, 1234, 5678)
    ugly.write_bytes(UGLY)
    assert mt("fmt", link).out == f"{link}\n"  # one that is named is
    assert link.is_symlink() and ugly.read_bytes() == FAIR


def test_what_is_no_resource_file_is_told(mt, tmp_path):
    os.mkfifo(tmp_path / "fifo.mtr")
    (tmp_path / "big.mtr").write_bytes(b"//" + b"x" * (1 << 20))
    (tmp_path / "latin.mtr").write_bytes(b"a = \"caf\xe9\"")
    (tmp_path / "empty").mkdir()
    assert "no regular file" in mt("fmt", "fifo.mtr", code=5).err
    assert "1024 KiB" in mt("fmt", "big.mtr", code=1).err
    assert "latin.mtr:1:9: error: byte 0xe9 is not UTF-8" in mt("fmt", "latin.mtr", code=1).err
    assert "cannot look at 'none.mtr'" in mt("fmt", "none.mtr", code=3).err
    assert "is empty" in mt("fmt", "", code=2).err
    assert mt("fmt", "empty").err == "no .mtr file there\n"
