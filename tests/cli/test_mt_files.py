# SPDX-License-Identifier: Apache-2.0
"""Files of file systems: cp, cat, ls and the like, against servers and folders that lie."""
import json
import os
import pty
import signal
import subprocess
import threading

import pytest
from fake import NOW, Cut, Problem
from paper import MT, vfs


def test_cp_and_cat_of_the_tutorial(mt, fake, tmp_path):
    mt("vfs-create", "sales-data")
    data = b"a,b\r\n\x00\xff1,2\r\n"
    (tmp_path / "sales.csv").write_bytes(data)
    mt("cp", "sales.csv", "/vfs/sales-data@work/sales.csv")
    assert fake.namespaces["work"]["sales-data"] == {b"/sales.csv": data}
    assert mt("cat", "/vfs/sales-data@work/sales.csv").stdout == data
    assert mt("cat", "sales.csv", "/vfs/sales-data/sales.csv").stdout == data + data


def test_cp_of_one_file_every_way(mt, fake, tmp_path):
    tree = vfs(fake, **{"/in/f": b"one", "/in": None, "/x": b"x"})
    (tmp_path / "out").mkdir()
    mt("cp", "/vfs/data/in/f", "out")
    mt("cp", "/vfs/data/in/f", "out/g")
    mt("cp", "/vfs/data/in/f", "/vfs/data/x", "out/")
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == {"f": b"one", "g": b"one", "x": b"x"}
    mt("cp", "/vfs/data/in/f", "/vfs/data/copy")
    mt("cp", "out/g", "/vfs/data/in")
    mt("cp", "out/g", "/vfs/data/new/")
    mt("cp", "out/g", "/vfs/data")
    done = mt("cp", "--json", "-", "/vfs/data/typed", stdin=b"typed" * 100000)
    assert json.loads(done.out) == {"files": 1, "bytes": 500000, "notCopied": 0}
    assert tree[b"/copy"] == tree[b"/in/g"] == tree[b"/new/g"] == tree[b"/g"] == b"one"
    assert tree[b"/typed"] == b"typed" * 100000
    assert mt("cp", "/vfs/data/in/f", "-").stdout == b"one"
    mt("cp", "/vfs/data/in/f", "/dev/null")
    (tmp_path / "empty").write_bytes(b"")
    mt("cp", "empty", "/vfs/data/empty")
    assert tree[b"/empty"] == b""


def test_cp_refusals(mt, fake, tmp_path):
    vfs(fake, **{"/d": None, "/d/f": b"", "/l": ("link", "d/f"), "/p": ("fifo", "")})
    (tmp_path / "d").mkdir()
    assert "is a folder" in mt("cp", "d", "/vfs/data/e", code=5).err
    assert "is a folder" in mt("cp", "/vfs/data/d", "e", code=5).err
    assert "is a link" in mt("cp", "/vfs/data/l", "e", code=5).err
    assert "special file" in mt("cp", "/vfs/data/p", "e", code=5).err
    assert "is no folder" in mt("cp", "/vfs/data/d/f", "nowhere/", code=5).err
    assert "cannot open the folder" in mt("cp", "/vfs/data/d/f", "nowhere/x", code=3).err
    assert "no file system 'none'" in mt("cp", "d", "/vfs/none/x", code=3).err
    mt("cp", "missing", "/vfs/data/x", code=3)
    mt("cp", "/vfs/data/missing", "x", code=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["api.sock", "d", "home"]


def make_tree(root):
    (root / "sub/deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a b").write_text("blank")
    (root / "sub/ü%41\"\n").write_text("odd")
    (root / "sub/deep/f").write_text("f")
    (root / "sub/in").symlink_to("../sub/deep/f")
    (root / "out").symlink_to("/etc/passwd")
    (root / "up").symlink_to("../outside")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"bad\xff")).write_bytes(b"\xff")


def test_cp_r_up_and_down(mt, fake, tmp_path):
    tree = vfs(fake)
    make_tree(tmp_path / "src")
    done = mt("cp", "-r", "src", "/vfs/data/dst")
    assert done.err.count("leads out of what is copied: skipped") == 2
    assert "pipe is neither file, folder nor link: skipped" in done.err
    assert tree == {b"/dst": None, b"/dst/sub": None, b"/dst/sub/deep": None, b"/dst/empty": None,
                    b"/dst/a b": b"blank", 'ü'.encode().join([b"/dst/sub/", b"%41\"\n"]): b"odd",
                    b"/dst/sub/deep/f": b"f", b"/dst/sub/in": ("link", "../sub/deep/f"), b"/dst/bad\xff": b"\xff"}
    mt("cp", "-r", "/vfs/data/dst", "back")
    back = tmp_path / "back"
    assert (back / "a b").read_text() == "blank" and (back / "sub/ü%41\"\n").read_text() == "odd"
    assert (back / os.fsdecode(b"bad\xff")).read_bytes() == b"\xff"
    assert os.readlink(back / "sub/in") == "../sub/deep/f" and (back / "empty").is_dir()
    mt("cp", "-r", "/vfs/data/dst", "back")  # it is there now: into it
    assert (back / "dst/sub/deep/f").read_text() == "f"
    mt("cp", "-r", "/vfs/data", "all")
    assert (tmp_path / "all/dst/sub/deep/f").exists()
    mt("cp", "-r", "/vfs/data", "all")
    assert (tmp_path / "all/data/dst/a b").exists()
    tree.clear()
    mt("cp", "-r", "src/.", "/vfs/data/")
    assert tree[b"/a b"] == b"blank" and b"/src" not in tree


@pytest.mark.parametrize("path", ["/d/../../evil", "/d/./evil", "/other/evil", "/d//evil", "evil", "/d/", "/d", "",
                                  "/dd/evil", "/d/x/../../../evil"])
def test_a_hostile_list_writes_nothing_outside(mt, fake, tmp_path, path):
    tree = vfs(fake, **{"/d": None, "/d/good": b"g"})
    evil = {"path": path, "name": "evil", "type": "file", "size": 1, "mode": "0660", "dateModified": NOW,
            "nameEscaped": False}
    fake.on("GET", ".*/list", lambda r, m: {"items": [evil, fake.item(b"/d/good", b"g")], "next": None})
    fake.on("GET", ".*/files", lambda r, m: (200, b"g" if "good" in r.raw_query else b"evil"))
    done = mt("cp", "-r", "/vfs/data/d", "deep")
    assert "no path below" in done.err
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["good"]
    assert tree[b"/d/good"] == b"g"


def test_links_planted_by_a_server_are_not_followed(mt, fake, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    vfs(fake, **{"/d": None})
    items = [("/d/away", ("link", str(outside))), ("/d/away/file", b"x")]
    fake.on("GET", ".*/list", lambda r, m: {"items": [fake.item(p.encode(), n) for p, n in items], "next": None})
    fake.on("GET", ".*/files", lambda r, m: (200, b"x"))
    done = mt("cp", "-r", "/vfs/data/d", "t")
    assert "leads out" in done.err and list(outside.iterdir()) == []
    assert (tmp_path / "t/away/file").read_bytes() == b"x" and not (tmp_path / "t/away").is_symlink()
    # A link that is there already is not a way out either.
    (tmp_path / "u").mkdir()
    (tmp_path / "u/away").symlink_to(outside)
    items.pop(0)
    (tmp_path / "u/d").mkdir()
    (tmp_path / "u/d/away").symlink_to(outside)
    assert "is a link or a file where a folder is needed" in mt("cp", "-r", "/vfs/data/d", "u", code=5).err
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("target, kept", [("f", 1), ("./f", 1), ("../f", 1), ("../../f", 0), ("/f", 0), ("", 0),
                                          ("x/../../..", 0), ("../s/f", 1), ("..", 1), ("../..", 0), ("s/..", 0)])
def test_which_links_are_harmless(mt, fake, tmp_path, target, kept):
    vfs(fake, **{"/s": None, "/s/l": ("link", target)})
    mt("cp", "-r", "/vfs/data", "t")
    assert os.path.lexists(tmp_path / "t/s/l") == bool(kept)


def test_a_cut_download_leaves_no_part(mt, fake, tmp_path):
    vfs(fake, **{"/f": b"x"})
    fake.on("GET", ".*/files", lambda r, m: (200, b"short", {"Content-Length": "100000"}))
    (tmp_path / "f").write_text("old")

    def cut(r, m):
        raise Cut
    before = sorted(tmp_path.iterdir())
    threading.Timer(0.3, fake.stop).start()
    fake.on("GET", ".*/files", cut)
    mt("cp", "/vfs/data/f", "f", code=6)
    assert sorted(p for p in tmp_path.iterdir() if p.name != "api.sock") == [p for p in before if p.name != "api.sock"]
    assert (tmp_path / "f").read_text() == "old"


def test_a_file_that_goes_during_a_copy_loses_only_itself(mt, fake, tmp_path):
    tree = vfs(fake, **{"/a": b"a", "/b": b"b", "/c": b"c"})

    def gone(r, m):
        if "%2Fb" in r.raw_query or "=/b" in r.raw_query:
            raise Problem(404, "notFound", "no file '/b'")
    fake.on("GET", ".*/files", gone)
    done = mt("cp", "-r", "/vfs/data", "t", code=1)
    assert "b is not copied: no file '/b'" in done.err and "1 entry was not copied" in done.err
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == ["a", "c"] and len(tree) == 3


def test_an_interrupt_leaves_no_part_and_exits_130(fake, environment, tmp_path):
    vfs(fake, **{"/f": b"x"})
    go, over = threading.Event(), threading.Event()

    def slow(r, m):
        go.set()
        over.wait(60)
        return 200, b"x"
    fake.on("GET", ".*/files", slow)
    work = tmp_path / "w"
    work.mkdir()
    with subprocess.Popen([MT, "cp", "/vfs/data/f", "f"], env=environment, cwd=work, stderr=subprocess.PIPE) as p:
        assert go.wait(30)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
    over.set()
    assert p.returncode == 130 and list(work.iterdir()) == [], err


def test_ls_stat_mkdir_mv_rm(mt, fake):
    tree = vfs(fake, **{"/f": b"123", "/d": None, "/d/g": b"", "/l": ("link", "f")})
    assert mt("ls").out == "/vfs/data/\n"
    assert mt("ls", "/vfs/data").out.split() == ["d/", "f", "l"]
    assert mt("ls", "-r", "/vfs/data/").out.split() == ["d/", "d/g", "f", "l"]
    assert mt("ls", "/vfs/data/f").out == "/vfs/data/f\n"
    assert "-> f" in mt("ls", "-l", "/vfs/data").out
    assert [i["path"] for i in json.loads(mt("ls", "--json", "/vfs/data/d", "/vfs/data/f").out)] == ["/d/g", "/f"]
    assert "size      3" in mt("stat", "/vfs/data/f").out
    assert json.loads(mt("stat", "--json", "/vfs/data/l").out)["target"] == "f"
    mt("mkdir", "/vfs/data/n")
    mt("mkdir", "/vfs/data/n", code=5)
    mt("mkdir", "-p", "/vfs/data/n/m")
    mt("mv", "/vfs/data/f", "/vfs/data/n")
    mt("mv", "/vfs/data/n/f", "/vfs/data/d/g", code=5)
    mt("mv", "-f", "/vfs/data/n/f", "/vfs/data/d/g")
    assert tree[b"/d/g"] == b"123"
    assert "one file system" in mt("mv", "/vfs/data/l", "/vfs/other/l", code=2).err
    mt("rm", "/vfs/data/none", code=3)
    mt("rm", "-f", "/vfs/data/none")
    mt("rm", "-r", "/vfs/data/d")
    assert b"/d/g" not in tree


def test_control_characters_do_not_reach_a_terminal(fake, environment):
    vfs(fake, **{"/a\x1b[31m\u009b1m\nb": b""})
    master, slave = pty.openpty()
    subprocess.run([MT, "ls", "/vfs/data"], env={**environment, "NO_COLOR": "1"}, stdout=slave, check=True, timeout=30)
    assert os.read(master, 1000) == b"a?[31m?1m?b\r\n"
    os.close(master), os.close(slave)


def test_vfs_delete_by_force_says_what_it_breaks(mt, fake):
    def delete(r, m):
        if r.query.get("force") != "true":
            raise Problem(409, "conflict", "file system 'data' is in use: named by capsules hello")
        return 204, None
    fake.on("DELETE", "/v1/namespaces/work/vfs/data", delete)
    assert "named by capsules hello" in mt("vfs-delete", "data", code=5).err
    done = mt("vfs-delete", "data", "--force")
    assert "warning: file system 'data' is in use" in done.err and "deleted" in done.err


def test_a_closed_terminal_leaves_no_part(environment, fake, tmp_path):
    vfs(fake, **{"/f": b"x"})
    go, over = threading.Event(), threading.Event()

    def slow(r, m):
        go.set()
        over.wait(60)
        return 200, b"x"
    fake.on("GET", ".*/files", slow)
    work = tmp_path / "w"
    work.mkdir()
    with subprocess.Popen([MT, "cp", "/vfs/data/f", "f"], env=environment, cwd=work, stderr=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as p:
        assert go.wait(30)
        p.send_signal(signal.SIGHUP)
        p.communicate(timeout=30)
    over.set()
    assert p.returncode == 129 and list(work.iterdir()) == []


def test_the_way_out_of_mkdir_and_mv_is_an_option_of_mt(mt, fake):
    vfs(fake, **{"/f": b"1", "/g": b"2"})

    def mkdir(r, m):
        if not r.json.get("parents"):
            raise Problem(404, "notFound", "no file or folder '/a/b'", field="path")
        return None
    fake.on("POST", ".*/mkdir", mkdir)
    assert "all with -p" in mt("mkdir", "/vfs/data/a/b", code=3).err
    mt("mkdir", "-p", "/vfs/data/a/b")
    assert "replace it with -f" in mt("mv", "/vfs/data/f", "/vfs/data/g", code=5).err
