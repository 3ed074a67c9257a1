# SPDX-License-Identifier: Apache-2.0
"""Files of file systems and of runs: names, sizes, writers."""
import os
import subprocess
import sys
import threading

import pytest
from world import ROOT
from maitento import MaitentoError

NAMES = [
    "a b",
    "naïve-日本.txt",
    "-rf",
    'q"q',
    "b\\b",
    "h#h",
    "p%41",
    "q?x=1",
    "plus+",
    "at@ns",
    "new\nline",
    "n" * 255,
    "e\u0301",
    "\u00e9",
    b"odd\xff",
    b"%odd\xfe",
]


def raw(name):
    return name if isinstance(name, bytes) else name.encode()


@pytest.fixture()
def files(world):
    world.mt.vfs.create("work")
    return world.mt.vfs.open("work")


@pytest.fixture(params=["file system", "by its id", "run"])
def place(request, world):
    """Files of each kind of place, and a folder in it."""
    if request.param == "run":
        return world.mt.capsule_runs.files(world.start()), "/tmp/place"
    made = world.mt.vfs.create("work")
    return (world.mt.vfs.open_by_id(made) if "id" in request.param else world.mt.vfs.open("work")), "/place"


def test_o21_names_of_any_kind(place):
    files, folder = place
    paths = [raw(folder) + b"/" + raw(name) for name in NAMES]
    for n, path in enumerate(paths):
        files.write(path, b"%d" % n)
    listed = files.list(folder)
    assert len(listed) == len(NAMES) and sum(item.name_escaped for item in listed) >= 2
    assert sorted(int(files.read(item)) for item in listed) == list(range(len(NAMES)))
    for n, path in enumerate(paths):
        assert files.read(path) == b"%d" % n and files.stat(path).size == len(str(n))
    for item in listed:
        moved = files.move(item, raw(folder) + b"/moved")
        assert moved.name == "moved"
        files.delete(folder + "/moved")
    assert files.list(folder) == []


def test_010_text_comes_back_as_it_went(place):
    files, folder = place
    item = files.write_text(f"{folder}/deep/er/t.txt", "é€😀\r\n")
    assert (item.name, item.type, item.size) == ("t.txt", "file", 11)
    assert files.read_text(item) == "é€😀\r\n" and files.read(item.path) == "é€😀\r\n".encode()
    files.mkdir(f"{folder}/made/two")
    files.link(f"{folder}/link", "deep/er/t.txt")
    assert files.stat(f"{folder}/link").type in ("link", "file")  # in a run what it leads to
    assert {i.name: i.type for i in files.list(folder, recursive=True)} == {
        "deep": "folder",
        "er": "folder",
        "t.txt": "file",
        "made": "folder",
        "two": "folder",
        "link": "link",
    }
    with pytest.raises(MaitentoError) as error:
        files.delete(f"{folder}/deep")
    assert error.value.code == "notEmpty"
    files.delete(f"{folder}/deep", recursive=True)
    for call in (files.read, files.stat, files.delete):
        with pytest.raises(MaitentoError) as error:
            call(f"{folder}/deep/er/t.txt")
        assert (error.value.code, error.value.status) == ("notFound", 404)


def test_parts_of_files(place):
    files, folder = place
    files.write(f"{folder}/x", bytes(range(256)) * 1000)
    assert b"".join(files.chunks(f"{folder}/x", 255, 3)) == b"\xff\x00\x01"
    assert sum(len(piece) for piece in files.chunks(f"{folder}/x", 1000)) == 255_000


def test_files_of_a_run_have_their_user(world, run):
    runs = world.mt.capsule_runs
    mine = runs.files(run, "sandbox")
    mine.write_text("note.txt", "x")
    assert mine.stat("note.txt").path == "/home/sandbox/note.txt"
    assert runs.exec_and_wait(run, "stat -c %U note.txt", run_as_user="sandbox").output_standard == "sandbox\n"
    with pytest.raises(MaitentoError) as error:
        mine.write_text("/etc/x", "x")
    assert error.value.code in ("accessDenied", "forbidden")
    runs.terminate(run)
    runs.wait(run)
    with pytest.raises(MaitentoError) as error:
        mine.read("note.txt")
    assert error.value.code == "runEnded"


def test_up_and_down_with_progress(world, files, tmp_path):
    (tmp_path / "local").write_bytes(os.urandom(3_000_000))
    up, down = [], []
    assert files.upload("/big", tmp_path / "local", lambda done, total: up.append((done, total))).size == 3_000_000
    assert files.download("/big", tmp_path / "back", lambda done, total: down.append((done, total))) == 3_000_000
    assert (tmp_path / "back").read_bytes() == (tmp_path / "local").read_bytes()
    for told in (up, down):
        assert len(told) > 5 and told == sorted(told) and told[-1] == (3_000_000, 3_000_000)
    with open(tmp_path / "again", "wb") as to:
        assert files.download("/big", to) == 3_000_000
    with pytest.raises(MaitentoError):
        files.download("/none", tmp_path / "back")
    assert (tmp_path / "back").stat().st_size == 3_000_000 and len(list(tmp_path.glob("*.part"))) == 0


MEMORY = """
import resource, sys
from maitento import Maitento
with Maitento() as mt:
    files = mt.vfs.open("work", sys.argv[1])
    files.write_text("/small", "x")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    files.upload("/big", sys.argv[2], lambda done, total: None)
    files.download("/big", sys.argv[2] + ".back", lambda done, total: None)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_large_files_need_little_memory(world, files, tmp_path):
    with open(tmp_path / "big", "wb") as file:
        file.truncate(200 << 20)
    environment = {**os.environ, **world.live.environment(), "PYTHONPATH": str(ROOT / "sdk" / "python")}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, world.namespace, str(tmp_path / "big")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert int(done.stdout) < 16 << 10, f"{done.stdout} KiB more"
    assert (tmp_path / "big.back").stat().st_size == 200 << 20


def test_o22_two_writers_and_a_reader(world, files):
    size, seen, stop = 4 << 20, set(), threading.Event()

    def write(letter):
        while not stop.is_set():
            files.write("/f", letter * size)

    files.write("/f", b"A" * size)
    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"A", b"B")]
    for thread in threads:
        thread.start()
    for _ in range(15):
        data = files.read("/f")
        seen.add((len(data), bytes(sorted(set(data)))))
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {(size, b"A"), (size, b"B")}
    assert [i.name for i in files.list()] == ["f"]
