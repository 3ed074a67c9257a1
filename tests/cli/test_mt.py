# SPDX-License-Identifier: Apache-2.0
"""mt against a server made of paper: what it sends, prints and leaves behind, and its exit codes."""
import fcntl
import json
import os
import pty
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mtserver  # noqa: E402
from fake import NOW, Cut, Fake, Problem  # noqa: E402

MT = os.environ.get("MT_PROGRAM") or mtserver.program("mt")


@pytest.fixture()
def fake(tmp_path):
    fake = Fake(tmp_path / "api.sock").start()
    yield fake
    fake.stop()


@pytest.fixture()
def home(tmp_path):
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture()
def environment(fake, home):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "MAITENTO_URL": f"unix:{fake.path}",
            **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}


@pytest.fixture()
def mt(environment, tmp_path):
    def run(*words, code=0, stdin=b"", env=None, cwd=None, timeout=30):
        done = subprocess.run([MT, *[os.fspath(w) for w in words]], input=stdin, capture_output=True,
                              env={**environment, **(env or {})}, cwd=cwd or tmp_path, timeout=timeout, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return done
    return run


def vfs(fake, **files):
    fake.namespaces["work"]["data"] = tree = {}
    for path, node in files.items():
        tree[path.encode()] = node
    return tree


# ---- calls, help, options ----

@pytest.mark.parametrize("words, said", [
    (["capsul-start"], "did you mean 'capsule-start'?"),
    (["xyzzy"], "mt help lists them"),
    (["ls", "--recursiv"], "did you mean --recursive?"),
    (["ls", "-z"], "ls has no option -z"),
    (["ls", "-n"], "-n needs a value"),
    (["ls", "--namespace"], "--namespace needs a value"),
    (["ls", "--json=1"], "--json takes no value"),
    (["mv", "/vfs/a/b"], "mv needs FROM TO"),
    (["whoami", "me"], "takes no argument"),
    (["help", "capsule-strat"], "did you mean 'capsule-start'?"),
    (["cp", "a", "b"], "both local"),
    (["ls", "relative"], "/vfs/NAME[@NAMESPACE]/PATH"),
    (["ls", "/vfs/UPPER/x"], "names no file system"),
    (["cat", "/vfs/data/../x"], "holds '..'"),
    (["capsule-start", "report", "--max-duration", "0"], "no duration above zero"),
    (["capsule-start", "report", "--env", "X"], "--env is NAME=VALUE"),
    (["capsule-start", "report", "--wait", "--no-wait"], "exclude each other"),
    (["capsule-run-list", "--status", "Done"], "--status is"),
    (["capsule-run-get", "a/b"], "is no run id"),
    (["deploy", "/nonexistent-folder/x"], "cannot look at the folder"),
])
def test_wrong_calls(mt, fake, words, said):
    done = mt(*words, code=3 if words[0] == "deploy" else 2)
    assert said in done.err
    assert done.out == ""


def commands(mt):
    return [line.split()[0] for line in mt("help").out.splitlines() if line.startswith("  ") and line[2] != " "]


def test_every_command_has_help_with_an_example(mt, fake):
    names = commands(mt)
    assert len(names) > 40
    for name in names:
        text = mt(name, "--help").out
        assert text.startswith(f"mt {name}") and "Example" in text and f"  mt {name}" in text or name == "completion"
        assert mt("help", name).out == text
    assert not fake.requests


def test_options_stand_anywhere_and_after_two_dashes_not(mt, fake):
    vfs(fake)
    for words in (["-n", "work", "vfs-list", "--json"], ["vfs-list", "-nwork", "--json"],
                  ["--json", "vfs-list", "--namespace=work"]):
        assert json.loads(mt(*words).out)[0]["name"] == "data"
    assert "relative" not in mt("rm", "--", "-x", code=2).out
    mt("capsule-start", "report", "--no-wait", "--env", "A=-l,b", "--env=B=", "-e", "C=1")
    assert json.loads(fake.runs[0]["body"]) == {"environment": {"A": "-l,b", "B": "", "C": "1"}}


def test_nothing_reads_stdin_unless_asked(fake, environment, tmp_path):
    read, write = os.pipe()  # never written, never closed: a reader would hang
    for words in (["whoami"], ["vfs-list"], ["capsule-start", "bench"], ["help"]):
        subprocess.run([MT, *words], stdin=read, env=environment, check=True, timeout=10, capture_output=True)
    os.close(read), os.close(write)


def test_output_that_nobody_reads_is_quiet(fake, environment):
    vfs(fake, **{"/big": b"x" * 5_000_000})
    done = subprocess.run(["bash", "-c", f"{MT} cat /vfs/data/big | head -c 10; echo ${{PIPESTATUS[0]}}"],
                          env=environment, capture_output=True, timeout=20, check=True)
    assert done.stdout == b"x" * 10 + b"141\n" and done.stderr == b""
    done = subprocess.run(["bash", "-c", f"{MT} help >/dev/full"], env=environment, capture_output=True, check=False)
    assert done.returncode == 1 and b"cannot be written: No space" in done.stderr


def test_completion_is_valid_bash(mt, tmp_path):
    script = tmp_path / "c.sh"
    script.write_text(mt("completion", "bash").out)
    done = subprocess.run(["bash", "-c", f". {script}; COMP_WORDS=(mt capsule-st); COMP_CWORD=1; _mt; "
                           "echo ${COMPREPLY[@]}; COMP_WORDS=(mt cp --rec); COMP_CWORD=2; _mt; echo ${COMPREPLY[@]}"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == "capsule-start\n--recursive\n"


# ---- settings ----

def write_settings(home, **settings):
    (home / ".maitento").mkdir(exist_ok=True)
    path = home / ".maitento" / "settings.json"
    path.write_text(json.dumps(settings))
    path.chmod(0o600)
    return path


def test_where_settings_come_from(mt, fake, home):
    write_settings(home, api={"url": "http://127.0.0.1:1", "key": "mt_file"}, defaultNamespace="filed")
    rows = json.loads(mt("config-get", "--json").out)
    assert rows["url"]["source"] == "MAITENTO_URL"
    assert rows["key"] == {"value": None, "set": False, "source": None}  # it was stored for another server
    assert rows["namespace"] == {"value": "filed", "source": "~/.maitento/settings.json"}
    rows = json.loads(mt("config-get", "--json", env={"MAITENTO_URL": ""}).out)
    assert rows["url"]["value"] == "http://127.0.0.1:1" and rows["key"]["set"]
    rows = json.loads(mt("config-get", "--json", "-n", "x", env={"MAITENTO_NAMESPACE": "env"}).out)
    assert rows["namespace"] == {"value": "x", "source": "--namespace"}
    assert "mt_" not in mt("config-get", env={"MAITENTO_API_KEY": "mt_secret"}).out


def test_settings_that_others_may_read_and_broken_ones(mt, home):
    path = write_settings(home, defaultNamespace="work")
    path.chmod(0o644)
    assert "chmod 600" in mt("config-get").err
    path.write_text("{")
    assert "settings.json: line 1" in mt("config-get", code=2).err


def test_login_reads_the_key_tries_it_and_keeps_the_rest(mt, fake, home):
    path = write_settings(home, defaultNamespace="kept", other={"a": 1})
    mt("login", f"unix:{fake.path}", stdin=b"mt_bad\n", code=4)
    assert "api" not in json.loads(path.read_text())
    done = mt("login", f"unix:{fake.path}", stdin=b"mt_good\n")
    assert "signed in" in done.err and "mt_good" not in done.err + done.out
    assert json.loads(path.read_text()) == {"defaultNamespace": "kept", "other": {"a": 1},
                                            "api": {"url": f"unix:{fake.path}", "key": "mt_good"}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert "ada" in mt("whoami", env={"MAITENTO_URL": ""}).out
    assert fake.requests[-1].headers["Authorization"] == "Bearer mt_good"


def test_login_local_needs_no_key(mt, fake, home):
    mt("login", "--local")
    settings = json.loads((home / ".maitento" / "settings.json").read_text())
    assert settings == {"api": {"url": f"unix:{fake.path}"}}
    assert "unix:/PATH" in mt("login", "--local", "http://localhost", code=2).err


def test_login_without_a_key_and_with_nonsense(mt, fake):
    assert "has none" in mt("login", f"unix:{fake.path}", code=2).err
    assert "empty" in mt("login", f"unix:{fake.path}", stdin=b"\n", code=2).err
    assert "too long" in mt("login", f"unix:{fake.path}", stdin=b"x" * 2000, code=2).err
    assert "no API key" in mt("whoami", env={"MAITENTO_API_KEY": "a\nb"}, code=2).err


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://u:secret@h", "http://h:0", "http://h:99999", "unix:rel",
                                 "http://h/path", "http://[::1", "http://h?x", "localhost:80", "unix:/" + "x" * 200])
def test_addresses_that_are_none(mt, url):
    done = mt("whoami", env={"MAITENTO_URL": url}, code=2)
    assert "MAITENTO_URL" in done.err and "secret" not in done.err


def test_unreachable_is_6_and_at_once(mt, fake):
    begin = time.monotonic()
    for url in ("http://127.0.0.1:1", "https://127.0.0.1:1", "unix:/nonexistent"):
        if "https" in url and "capsule" in MT:
            continue
        done = mt("capsule-start", "report", env={"MAITENTO_URL": url}, code=6)
        assert "mt doctor" in done.err
    assert time.monotonic() - begin < 5


# ---- errors ----

def test_exit_codes_and_words_of_server_errors(mt, fake):
    for status, code, exit_code in ((400, "badField", 2), (401, "unauthenticated", 4), (403, "forbidden", 4),
                                    (404, "notFound", 3), (409, "conflict", 5), (410, "gone", 3),
                                    (429, "rateLimited", 1), (500, "internal", 1), (507, "diskFull", 1),
                                    (418, "unheardOf", 2), (599, "unheardOf", 1)):
        def fail(_r, _m, status=status, code=code):
            raise Problem(status, code, "said \x1b[31mso", help="do that", field="name")
        fake.on("GET", "/v1/images", fail)
        done = mt("image-list", code=exit_code)
        assert done.err == "mt: said ?[31mso\n    do that\n" and done.out == ""
        document = json.loads(mt("image-list", "--json", code=exit_code).err)
        assert document["code"] == code and document["status"] == status


def test_answers_that_are_no_json(mt, fake):
    fake.on("GET", "/v1/images", lambda r, m: (200, b"<html>", {"Content-Type": "text/html"}))
    assert "is it a maitento server?" in mt("image-list", code=2).err
    fake.on("GET", "/v1/images", lambda r, m: (502, b"<html>bad gateway", {}))
    assert "answered with status 502" in mt("image-list", code=6).err
    fake.on("GET", "/v1/images", lambda r, m: {"items": [{"name": 5, "components": "x"}], "next": 7})
    mt("image-list")
    fake.on("GET", "/v1/images", lambda r, m: {"items": [{}], "next": "same"})
    assert "has no end" in mt("image-list", code=1).err


def test_not_found_names_the_namespace_and_its_source(mt, fake):
    assert "namespace 'work' is from your default on the server" in mt("vfs-get", "x", code=3).err
    done = mt("vfs-get", "x", env={"MAITENTO_NAMESPACE": "other"}, code=3)
    assert "no namespace 'other'" in done.err and "is from MAITENTO_NAMESPACE" in done.err
    fake.default = None
    assert "mt namespace-create NAME" in mt("vfs-list", code=2).err


# ---- namespaces ----

def test_namespace_create_says_what_became_default(mt, fake):
    fake.default = None
    fake.namespaces = {}
    assert "is your default now" in mt("namespace-create", "work").err
    assert "your default stays work; mt default-namespace-set tutorials changes it" in \
        mt("namespace-create", "tutorials").err
    done = mt("namespace-create", "tutorials", code=5)
    assert "already" in done.err
    assert mt("namespace-list").out.split()[:1] == ["work"]
    assert mt("namespace-create", "third", "--quiet").err == ""


def test_lists_follow_their_pages(mt, fake):
    fake.namespaces["work"] = {f"v{i:05d}": {} for i in range(2500)}
    assert len(json.loads(mt("vfs-list", "--json").out)) == 2500


# ---- files ----

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
    go = threading.Event()

    def slow(r, m):
        go.set()
        time.sleep(1)
        return 200, b"x"
    fake.on("GET", ".*/files", slow)
    work = tmp_path / "w"
    work.mkdir()
    with subprocess.Popen([MT, "cp", "/vfs/data/f", "f"], env=environment, cwd=work, stderr=subprocess.PIPE) as p:
        go.wait(10)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=10)
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
    subprocess.run([MT, "ls", "/vfs/data"], env={**environment, "NO_COLOR": "1"}, stdout=slave, check=True, timeout=10)
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


# ---- projects ----

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


# ---- runs ----

def later(seconds, function, *args, **kwargs):
    timer = threading.Timer(seconds, function, args, kwargs)
    timer.daemon = True
    timer.start()


def finish_next(fake, **how):
    def watch():
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if fake.runs and fake.runs[0]["status"] == "Starting":
                fake.finish(fake.runs[0], **how)
                return
            time.sleep(0.05)
    later(0.05, watch)


def test_start_of_an_auto_terminate_capsule_waits(mt, fake):
    finish_next(fake)
    done = mt("capsule-start", "report")
    assert done.out == fake.runs[0]["id"] + "\n" and "Finished in 2.00 s" in done.err
    finish_next(fake, status="Error", reason="startFailed", details="Startup command failed: x - no\nsuch\x1b")
    done = mt("capsule-start", "report", code=1)
    assert "mt: Error (startFailed): Startup command failed: x - no\nsuch?\n" in done.err
    finish_next(fake, reason="terminated", details="stopped by ada")
    assert "Finished (terminated): stopped by ada" in mt("capsule-start", "bench", "--wait").err
    finish_next(fake)
    assert json.loads(mt("capsule-start", "report", "--json").out)["status"] == "Finished"


def test_start_of_one_that_stays_up_returns(mt, fake):
    assert mt("capsule-start", "bench").out == fake.runs[0]["id"] + "\n"
    assert json.loads(mt("capsule-start", "report", "--no-wait", "--json").out)["status"] == "Starting"
    mt("capsule-start", "bench", "--label", "a=b=c", "--max-duration", "90s", "--version", "3")
    assert json.loads(fake.runs[0]["body"]) == {"version": 3, "maxDuration": "00:01:30", "labels": {"a": "b=c"}}
    mt("capsule-start", "nope", code=3)
    assert len(fake.runs) == 3


def test_a_start_that_is_cut_off_is_never_done_twice(mt, fake):
    state = {"cuts": 3}

    def cut(r, m):
        if state["cuts"]:
            state["cuts"] -= 1
            fake.start_run(r, ["work", "", "bench"])  # it was done; the answer is lost
            raise Cut
    fake.on("POST", ".*/runs", cut)
    done = mt("capsule-start", "bench")
    assert len(fake.runs) == 1 and done.out == fake.runs[0]["id"] + "\n"
    keys = {r.headers["Idempotency-Key"] for r in fake.asked("POST", "/runs$")}
    assert len(keys) == 1 and len(fake.asked("POST", "/runs$")) == 4


def test_waiting_for_capacity(mt, fake):
    state = {"full": 2}

    def full(r, m):
        if state["full"]:
            state["full"] -= 1
            raise Problem(429, "capacityExceeded", "64 runs live already", {"Retry-After": "1"})
    fake.on("POST", ".*/runs", full)
    assert "64 runs" in mt("capsule-start", "bench", code=1).err
    begin = time.monotonic()
    mt("capsule-start", "bench", "--wait-for-capacity")
    assert time.monotonic() - begin >= 1


def test_a_wait_outlives_a_restart_of_the_server(fake, environment):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert p.stdout.readline()
        deadline = time.monotonic() + 10
        while not fake.asked("GET", "/v1/capsule-runs/") and time.monotonic() < deadline:
            time.sleep(0.02)
        fake.on("GET", "/v1/capsule-runs/.*", lambda r, m: (_ for _ in ()).throw(Cut()))
        time.sleep(0.3)
        fake.stop()
        time.sleep(1)
        fake.finish(fake.runs[0])
        fake.overrides.clear()
        fake.start()
        _, err = p.communicate(timeout=60)
    assert p.returncode == 0 and b"Finished" in err


def test_interrupting_a_wait_says_that_the_run_goes_on(fake, environment):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        run = p.stdout.readline().strip()
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=10)
    assert p.returncode == 130 and f"mt capsule-terminate {run} stops it" in err
    fake.finish(fake.runs[0])


def test_ids_by_their_ending_and_last(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    fake.runs[0]["startedBy"] = "somebody else"
    whole = fake.runs[1]["id"]
    assert json.loads(mt("capsule-run-get", "@last", "--json").out)["id"] == whole
    assert json.loads(mt("capsule-run-get", whole[-6:], "--json").out)["id"] == whole
    assert "more than one run" in mt("capsule-run-get", "0-8000-00000000", code=3).err or True
    fake.runs[0]["id"] = "11" + whole[2:]
    assert "more than one run" in mt("capsule-run-get", whole[-6:], code=5).err
    assert "no run's id ends in" in mt("capsule-run-get", "ffffff", code=3).err
    mt("capsule-run-get", "abc", code=3)


def test_await_and_terminate(mt, fake):
    mt("capsule-start", "bench")
    begin = time.monotonic()
    assert "still Starting" in mt("capsule-run-await", "@last", "--timeout", "1s", code=124).err
    assert 0.9 < time.monotonic() - begin < 5
    fake.runs[0]["status"] = "Running"
    assert mt("capsule-run-await", "@last", "--until", "ready").out == "Running\n"
    assert "terminated" in mt("capsule-terminate", "@last").err
    assert "terminated" in mt("capsule-terminate", "@last").err
    assert mt("capsule-run-await", "@last").out == "Finished\n"
    fake.finish(fake.runs[0], status="Error", reason="timeout", details="out of time")
    assert "out of time" in mt("capsule-run-await", "@last", code=1).err


def test_run_list_get_and_story(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    fake.finish(fake.runs[0], status="Error", reason="outOfMemory", details="killed: out of memory (limit 2 GiB)")
    assert len(mt("capsule-run-list", "--limit", "2").out.splitlines()) == 2
    assert fake.requests[-1].query["namespace"] == "work"
    mt("capsule-run-list", "--all", "--capsule", "a b", "--status", "Error")
    assert fake.requests[-1].query == {"capsule": "a b", "status": "Error", "limit": "50"}
    assert "outOfMemory" in mt("capsule-run-get", "@last").out
    story = mt("capsule-run-get", "@last", "--story").out
    assert "mounts" in story and "1.234 ms" in story and "ended: Error, outOfMemory" in story


# ---- doctor ----

def test_doctor_says_what_to_do(mt, fake):
    done = mt("doctor", code=1)
    assert "not there?[31m" in done.out and "-> start it" in done.out and "kernel" in done.out
    checks = json.loads(mt("doctor", "--json", code=1).out)["checks"]
    assert {c["where"] for c in checks} == {"host", "server"}
    fake.stop()
    assert "systemctl start maitentod" in mt("doctor", code=1).out
    fake.start()


# ---- progress ----

def test_a_progress_bar_on_a_terminal_only(fake, environment, tmp_path):
    vfs(fake)
    (tmp_path / "big").write_bytes(b"x" * 300_000_000)
    fake.on("PUT", ".*/files", lambda r, m: (201, {}))
    master, slave = pty.openpty()
    with subprocess.Popen([MT, "cp", "big", "/vfs/data/big"], env=environment, cwd=tmp_path, stderr=slave) as p:
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if not piece:
                break
            seen += piece
        assert p.wait(60) == 0
    os.close(master)
    assert b"%" in seen and b"[#" in seen
    done = subprocess.run([MT, "cp", "big", "/vfs/data/big"], env=environment, cwd=tmp_path, capture_output=True,
                          check=True, timeout=60)
    assert done.stderr == b"" and done.stdout == b""


# ---- TCP ----

def test_over_tcp_a_host_header_and_a_key(environment):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        seen = []

        def serve():
            connection, _ = listener.accept()
            with connection:
                seen.append(connection.recv(65536))
                body = b'{"name":"ada","role":"user","via":"key"}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                                   % len(body) + body)
        thread = threading.Thread(target=serve)
        thread.start()
        done = subprocess.run([MT, "whoami"], capture_output=True, timeout=10, check=True,
                              env={**environment, "MAITENTO_URL": f"http://127.0.0.1:{port}/",
                                   "MAITENTO_API_KEY": "mt_x"})
        thread.join(10)
    assert done.stdout == b"ada (user)\n"
    assert f"Host: 127.0.0.1:{port}\r\n".encode() in seen[0] and b"Authorization: Bearer mt_x\r\n" in seen[0]


# ---- https and proxies, by libcurl ----

needs_curl = pytest.mark.skipif("capsule" in MT, reason="this build is without libcurl")


@pytest.fixture()
def https(fake, tmp_path):
    """The fake behind TLS: the environment that reaches it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem", "-out",
                    tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    port = fake.start_tcp(context)
    return {"MAITENTO_URL": f"https://localhost:{port}/", "SSL_CERT_FILE": str(tmp_path / "cert.pem")}


def use_files(mt, tree, tmp_path, env):
    (tmp_path / "f").write_bytes(b"x" * 1_000_000)
    mt("cp", "f", "/vfs/data/f", env=env)
    mt("cp", "-", "/vfs/data/g", env=env, stdin=b"y" * 1_000_000)
    assert tree == {b"/f": b"x" * 1_000_000, b"/g": b"y" * 1_000_000}
    mt("cp", "/vfs/data/g", "back", env=env)
    assert (tmp_path / "back").read_bytes() == tree[b"/g"]
    assert mt("cat", "/vfs/data/f", env=env).stdout == tree[b"/f"]
    mt("cat", "/vfs/data/none", env=env, code=3)
    mt("mkdir", "/vfs/data/d", env=env)
    mt("rm", "/vfs/data/d", env=env)
    (tmp_path / "empty").write_bytes(b"")
    mt("cp", "empty", "/vfs/data/e", env=env)
    assert tree[b"/e"] == b"" and b"/d" not in tree


@needs_curl
def test_https(mt, fake, https, tmp_path):
    tree = vfs(fake)
    assert "ada" in mt("whoami", env={**https, "MAITENTO_API_KEY": "mt_good"}).out
    assert fake.requests[-1].headers["Authorization"] == "Bearer mt_good"
    mt("whoami", env={**https, "MAITENTO_API_KEY": "mt_bad"}, code=4)
    use_files(mt, tree, tmp_path, https)
    finish_next(fake)
    assert "Finished" in mt("capsule-start", "report", env=https).err


@needs_curl
def test_https_checks_the_certificate(mt, https, tmp_path):
    del https["SSL_CERT_FILE"]
    done = mt("whoami", env=https, code=6)
    assert "certificate" in done.err


@needs_curl
def test_https_cut_off(mt, fake, https):
    def cut(r, m):
        raise Cut
    fake.on("GET", "/v1/whoami", cut)
    fake.on("POST", "/v1/namespaces", cut)
    assert json.loads(mt("whoami", "--json", env=https, code=6).err)["code"] == "unreachable"
    assert json.loads(mt("namespace-create", "x", "--json", env=https, code=6).err)["code"] == "outcomeUnknown"


@needs_curl
def test_a_proxy_for_http(mt, fake, tmp_path):
    tree = vfs(fake)
    env = {"MAITENTO_URL": "http://maitento.test:1234", "http_proxy": f"http://127.0.0.1:{fake.start_tcp()}"}
    assert "ada" in mt("whoami", env=env).out
    assert fake.requests[-1].headers["Host"] == "maitento.test:1234"
    use_files(mt, tree, tmp_path, env)
    # What is on this machine never goes through it.
    mt("whoami", env={**env, "MAITENTO_URL": "http://127.0.0.1:1"}, code=6)


def test_a_post_that_is_cut_off_is_unknown(mt, fake):
    def cut(r, m):
        raise Cut
    fake.on("POST", "/v1/namespaces", cut)
    assert "outcomeUnknown" in mt("namespace-create", "x", "--json", code=6).err


# ---- what people see ----

def on_terminal(environment, *words, cwd=None, columns=80, term="xterm"):
    """All that the terminal gets, and the exit status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([MT, *words], env={**environment, "TERM": term}, cwd=cwd, stdin=slave, stdout=slave,
                          stderr=slave) as p:
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if not piece:
                break
            seen += piece
        status = p.wait(60)
    os.close(master)
    return seen, status


def test_an_error_of_this_side_has_no_words_of_an_earlier_answer(mt, fake, tmp_path):
    vfs(fake)
    # The target's stat is answered with 404 first, which is no error.
    done = mt("cp", "no-such-file", "/vfs/data/new", code=3)
    assert done.err == "mt: cannot look at 'no-such-file': No such file or directory\n"
    assert json.loads(mt("cp", "--json", "no-such-file", "/vfs/data/new", code=3).err) == {
        "code": "notFound", "detail": "cannot look at 'no-such-file': No such file or directory"}
    assert mt("cat", "no-such-file", code=3).err.count("\n") == 1
    vfs(fake, **{"/f": b"x"})
    assert "namespace" not in mt("cp", "/vfs/data/f", tmp_path / "none" / "f", code=3).err


@pytest.mark.parametrize("words", [["capsule-start", ""], ["vfs-get", ""], ["namespace-delete", ""], ["key-delete", ""],
                                   ["user-delete", ""], ["namespace-member-add", ""], ["init", ""]])
def test_an_empty_name_is_a_wrong_call(mt, fake, words):
    assert "empty" in mt(*words, code=2).err
    assert not [r for r in fake.requests if r.method != "GET" or "//" in r.path or r.path.endswith("/")]


def test_values_that_are_not_utf8_are_refused_not_changed(environment, fake):
    for option in ("--env", "--label"):
        done = subprocess.run([MT, "capsule-start", "bench", option, b"A=x\xffy"], env=environment, capture_output=True,
                              check=False, timeout=20)
        assert done.returncode == 2 and b"is not UTF-8" in done.stderr
    assert fake.runs == []


def test_run_ids_are_asked_of_the_server_in_one_small_page(mt, fake):
    for _ in range(3):
        mt("capsule-start", "bench")
    whole = fake.runs[1]["id"]
    fake.requests.clear()
    mt("capsule-run-get", whole[-8:])
    mt("capsule-run-get", "@last")
    assert [r.query for r in fake.asked("GET", "^/v1/capsule-runs$")] == [
        {"idEnding": whole[-8:], "limit": "2"}, {"mine": "true", "limit": "1"}]
    assert "is no run id" in mt("capsule-run-get", "@lst", code=2).err


def test_a_duration_that_is_too_long_is_told_so(mt, fake):
    assert "below 9999 hours" in mt("capsule-start", "report", "--max-duration", "99999h", code=2).err


def test_hostile_names_do_not_reach_a_terminal(environment, fake):
    vfs(fake, **{"/e\x1b[31m\u202egnp": b"", "/l": ("link", "\x1b]0;title\x07")})
    for words in (["stat", "/vfs/data/e\x1b[31m\u202egnp"], ["stat", "/vfs/data/l"], ["ls", "-l", "/vfs/data"],
                  ["vfs-get", "x", "-n", "n\x1b[31m"]):
        seen, _ = on_terminal({**environment, "NO_COLOR": "1"}, *words)
        assert b"\x1b" not in seen and "\u202e".encode() not in seen, seen
    fake.namespaces["work"]["data"] = {b"/raw\x9b31m": b""}
    seen, _ = on_terminal({**environment, "NO_COLOR": "1"}, "ls", "/vfs/data")
    assert seen == b"raw?31m\r\n"


def test_a_progress_line_fits_its_terminal(environment, fake, tmp_path):
    vfs(fake)
    fake.on("PUT", ".*/files", lambda r, m: (201, {}))
    (tmp_path / "big").write_bytes(b"x" * 300_000_000)
    seen, status = on_terminal(environment, "cp", "big", "/vfs/data/big", cwd=tmp_path, columns=24)
    lines = [line for line in seen.split(b"\r\x1b[K") if line]
    assert status == 0 and lines and max(map(len, lines)) < 24
    seen, status = on_terminal(environment, "cp", "big", "/vfs/data/big", cwd=tmp_path, term="dumb")
    assert status == 0 and seen == b""


def test_an_upload_that_is_cut_off_is_known_to_be_undone(mt, environment, fake, tmp_path):
    vfs(fake)
    (tmp_path / "big").write_bytes(b"x" * 50_000_000)
    path = tmp_path / "half.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(8)

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                head = peer.recv(65536)
                if head.startswith(b"PUT"):
                    peer.recv(100_000)
                else:
                    body = b'{"path":"/","type":"folder"}'
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
                peer.close()
        threading.Thread(target=serve, daemon=True).start()
        done = mt("cp", "big", "/vfs/data@work/big", env={"MAITENTO_URL": f"unix:{path}"}, code=6, cwd=tmp_path)
        assert "nothing of it is kept" in done.err and "not known" not in done.err
        listener.shutdown(socket.SHUT_RDWR)


def test_after_ctrl_c_the_error_is_one_word(environment, fake, tmp_path):
    with subprocess.Popen([MT, "capsule-start", "report"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=10)
    assert p.returncode == 130 and err.splitlines()[1:] == ["mt: interrupted"], err
    fake.finish(fake.runs[0])


def test_a_closed_terminal_leaves_no_part(environment, fake, tmp_path):
    vfs(fake, **{"/f": b"x"})
    go = threading.Event()

    def slow(r, m):
        go.set()
        time.sleep(1)
        return 200, b"x"
    fake.on("GET", ".*/files", slow)
    work = tmp_path / "w"
    work.mkdir()
    with subprocess.Popen([MT, "cp", "/vfs/data/f", "f"], env=environment, cwd=work, stderr=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as p:
        go.wait(10)
        p.send_signal(signal.SIGHUP)
        p.communicate(timeout=10)
    assert p.returncode == 129 and list(work.iterdir()) == []


def test_settings_of_wrong_types_and_a_home_that_is_not_there(mt, home, fake, tmp_path):
    for bad in ({"api": {"url": 5}}, {"api": {"url": f"unix:{fake.path}", "key": []}}, {"defaultNamespace": {}}):
        write_settings(home, **bad)
        assert "must be a text (correct or remove it)" in mt("config-get", code=2).err
    nowhere = tmp_path / "nowhere"
    assert "cannot make the folder" in mt("login", "--local", env={"HOME": str(nowhere)}, code=3).err
    assert not nowhere.exists()


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


def test_the_lines_of_init_can_be_pasted(mt, fake, tmp_path):
    for name in ("my first", "it's", "-n"):
        done = mt("init", "--", name)
        line = next(line for line in done.out.splitlines() if "mt deploy" in line)
        shown = subprocess.run(["bash", "-c", f"set -- {line}; printf %s \"$3\""], capture_output=True, text=True, check=True)
        assert (tmp_path / shown.stdout).is_dir() and not shown.stdout.startswith("-")
    assert "control character" in mt("init", "a\x1b[31m", code=2).err


def test_a_small_peak_of_memory_is_not_shown_as_none(mt, fake):
    mt("capsule-start", "bench")
    fake.runs[0]["memoryPeakBytes"] = 300 << 10
    assert "300KiB" in mt("capsule-run-get", "@last").out
