"""Field cases O-19 to O-25: what capsules plant, and what the file API makes of it. Each test names
the part that it covers."""
import re
import threading
import time

import pytest

from conftest import Ref

WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


def inside(api, ns, line, name="c", **properties):
    run = api.shell(ns, line, vfs="work", name=name, **properties)
    assert run["status"] == "Finished", run
    return run


def test_o19_links_to_the_host_never_hand_out_its_files(api, work):
    inside(api, work, "cd /mnt/work; ln -s /etc/shadow leak; ln -s / root; ln -s ../../../../.. up; "
                      "echo a > a.txt; ln -s a.txt fine")
    for path in ("/leak", "/root/etc/hostname", "/up/etc/hostname"):
        status, _, body = api.raw("GET", api.files(work, "work", path))
        assert status in (404, 409), (path, status, body)
        assert b"root:" not in body
    items = {i["name"]: i for i in api.call("GET", api.files(work, "work", "/", "list"))["items"]}
    assert items["leak"]["type"] == "link" and items["leak"]["target"] == "/etc/shadow"
    assert items["fine"]["target"] == "a.txt"


def test_o19_inside_another_capsule_a_link_points_into_that_capsule(api, work):
    inside(api, work, "ln -s /etc/hostname /mnt/work/name")
    inside(api, work, "cat /mnt/work/name > /mnt/work/seen", name="other")
    assert api.read(work, "work", "/seen") == b"other\n"


def test_o19_a_folder_swapped_for_a_link_during_reads(api, work):
    api.capsule(work, [{"command": "cd /mnt/work; mkdir d real; echo in > real/hostname; touch go; "
                        "end=$((SECONDS + 8)); while [ $SECONDS -lt $end ]; do rm -rf d; ln -s /etc d; rm -f d; "
                        "cp -r real d; done"}], autoTerminate=True, **WORK)
    run = api.start(work, "c")
    seen = set()
    deadline = time.monotonic() + 30
    while "dateEnded" not in run or not run["dateEnded"]:
        for _ in range(100):
            status, _, body = api.raw("GET", api.files(work, "work", "/d/hostname"))
            seen.add(status)
            assert status != 200 or body in (b"in\n", b""), body
        run = api.call("GET", f"/v1/capsule-runs/{run['id']}")
        assert time.monotonic() < deadline
    assert run["status"] == "Finished" and 200 in seen


@pytest.mark.parametrize("raw", ["/../x", "/a/../../x", "..%2fx", "%2e%2e/x", "%252e%252e/x", "x",
                                 "/a%00b", "", "/" + "n" * 256, "/" + "a/" * 2100])
def test_o20_paths_that_leave_their_root_are_refused(api, work, raw):
    status, _, body = api.raw("PUT", f"/v1/namespaces/{work}/vfs/work/files?path={raw}", b"x")
    if raw == "%252e%252e/x":
        assert status == 400  # not absolute
        return
    assert status == 400, (raw, status, body)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "A", "-a", "a" * 64, "a\n"])
def test_o20_names_of_namespaces_and_file_systems(api, ns, name):
    assert api.error("POST", "/v1/namespaces", {"name": name})[0] == 400
    assert api.error("POST", f"/v1/namespaces/{ns}/vfs", {"name": name})[0] == 400


@pytest.mark.parametrize("mount", ["../etc", "/", "", "a/b", "secrets", ".."])
def test_o20_mount_names(api, work, mount):
    answer = api.deploy(work, {"capsules/c.mtr":
                        f'vfs = [ {{ vfs = @ref("work") mountName = "{mount}" }} ]\n'}, expect=422)
    assert answer["diagnostics"][0]["line"] == 1
    assert api.call("GET", f"/v1/namespaces/{work}/capsules")["items"] == []


def test_o20_two_mounts_of_one_name_and_files_outside_the_kinds(api, work):
    api.deploy(work, {"capsules/c.mtr": 'vfs = [ { vfs = @ref("work") mountName = "a" }, '
                      '{ vfs = @ref("work") mountName = "a" } ]\n'}, expect=422)
    for path in ("../capsules/x.mtr", "/capsules/x.mtr", "capsules/../x.mtr", "tools/x.mtr",
                 "capsules\\x.mtr", "capsules/A B.mtr"):
        status, answer = api.server.request("POST", f"/v1/namespaces/{work}/deploy",
                                            {"files": [{"path": path, "content": ""}]})
        assert status in (400, 422), (path, answer)


NAMES = ["a b", "naïve-日本.txt", "-rf", 'q"q', "b\\b", "h#h", "p%41", "q?x=1", "plus+", "at@ns",
         "n\nl", "x" * 255, "\u00e9", "e\u0301"]


def test_o21_odd_names_round_trip_from_outside(api, work):
    for i, name in enumerate(NAMES):
        api.write(work, "work", f"/{name}", str(i))
    listed = [i["name"] for i in api.call("GET", api.files(work, "work", "/", "list"))["items"]]
    assert sorted(listed) == sorted(NAMES)
    for i, name in enumerate(NAMES):
        assert api.read(work, "work", f"/{name}") == str(i).encode()
    inside(api, work, "cd /mnt/work; python3 - <<'EOT'\nimport os\n"
                      "open('/tmp/n','w').write(str(len(os.listdir('.'))))\nEOT\n"
                      "test $(cat /tmp/n) = " + str(len(NAMES)))
    for name in NAMES:
        api.call("DELETE", api.files(work, "work", f"/{name}"), expect=204)
    assert api.call("GET", api.files(work, "work", "/", "list"))["items"] == []


def test_o21_a_name_that_is_no_utf8_is_listed_escaped_and_can_be_used(api, work):
    inside(api, work, "cd /mnt/work; printf x > \"$(printf 'bad\\377')\"")
    item = api.call("GET", api.files(work, "work", "/", "list"))["items"][0]
    assert item["nameEscaped"] and item["name"] == "bad%FF"
    assert api.read(work, "work", b"/bad\xff") == b"x"
    api.call("DELETE", api.files(work, "work", b"/bad\xff"), expect=204)


def test_o22_readers_see_whole_files_of_two_writers(api, work):
    size, stop = 4 << 20, time.monotonic() + 6
    api.write(work, "work", "/f", b"A" * size)
    failures = []

    def writer(letter):
        try:
            while time.monotonic() < stop:
                api.write(work, "work", "/f", letter * size)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=writer, args=(letter,)) for letter in (b"A", b"B")]
    [t.start() for t in threads]
    while time.monotonic() < stop:
        data = api.read(work, "work", "/f")
        assert len(data) == size and len(set(data)) == 1
    [t.join() for t in threads]
    assert not failures
    assert [i["name"] for i in api.call("GET", api.files(work, "work", "/", "list"))["items"]] == ["f"]


def test_o23_the_default_user_works_in_the_mount_and_others_do_not(api, work):
    api.write(work, "work", "/a", "one\n")
    api.write(work, "work", "/s.py", "open('/mnt/work/made','w').write('by python')\n")
    api.capsule(work, [
        {"command": "cd /mnt/work && echo two >> a && python3 s.py && git init -q repo && cd repo && git status -s"},
        {"command": "mkdir -p /mnt/work/d/e && cp -r /mnt/work /tmp/copy && chmod -R a+rwX /tmp/copy"},
        {"command": "touch /mnt/work/by-root && mkdir /mnt/work/root-folder && touch /mnt/work/root-folder/f",
         "runAsUser": "root"},
        {"command": "! cat /mnt/work/a && ! ls /mnt/work && ! touch /mnt/work/x", "runAsUser": "sandbox"},
        {"command": "rm /mnt/work/by-root && stat -c '%U %a' /mnt/work > /mnt/work/stat"}],
        autoTerminate=True, users=[{"name": "sandbox"}], **WORK)
    run = api.run(work, "c")
    assert run["status"] == "Finished", run
    assert api.read(work, "work", "/a") == b"one\ntwo\n" and api.read(work, "work", "/made") == b"by python"
    assert api.read(work, "work", "/stat") == b"maitento 770\n"
    api.call("DELETE", api.files(work, "work", "/root-folder") + "&recursive=true", expect=204)
    api.call("DELETE", api.files(work, "work", "/repo") + "&recursive=true", expect=204)


def test_o24_pipes_devices_and_endless_files(api, work):
    inside(api, work, "cd /mnt/work; mkfifo p; ln -s /dev/zero z; "
                      "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"; "
                      "truncate -s 1T sparse; mkdir deep; cd deep; for i in $(seq 400); do mkdir d && cd d; done")
    began = time.monotonic()
    for _ in range(30):
        for name in ("p", "z", "s"):
            status, _, body = api.raw("GET", api.files(work, "work", f"/{name}"))
            assert status == 409 and b"notRegularFile" in body, (name, status, body)
    assert time.monotonic() - began < 10
    kinds = {i["name"]: i["type"] for i in api.call("GET", api.files(work, "work", "/", "list"))["items"]}
    assert kinds == {"p": "fifo", "z": "link", "s": "socket", "sparse": "file", "deep": "folder"}
    status, headers, data = api.raw("GET", api.files(work, "work", "/sparse"), headers={"Range": "bytes=0-9"})
    assert status == 206 and data == bytes(10)
    inside(api, work, "test -p /mnt/work/p", name="second")
    for name in ("p", "z", "s", "sparse"):
        api.call("DELETE", api.files(work, "work", f"/{name}"), expect=204)
    api.call("DELETE", api.files(work, "work", "/deep") + "&recursive=true", expect=204)
    api.call("DELETE", f"/v1/namespaces/{work}/vfs/work?force=true", expect=204)
    assert api.call("GET", "/v1/health")["status"] == "ok"


def test_o25_no_end_of_a_run_touches_the_mounted_files(api, work):
    inside(api, work, "cd /mnt/work; for i in $(seq 1000); do echo $i > f$i; done")
    sit = {"command": "cd /mnt/work; exec 9< f1; sleep 60", "wait": False}
    ends = {
        "terminate": dict(startup=[sit], maxDuration="00:01:00"),
        "time": dict(startup=[sit], maxDuration="00:00:01"),
        "failed": dict(startup=[sit, {"command": "exit 3"}], maxDuration="00:01:00"),
    }
    for name, properties in ends.items():
        startup = properties.pop("startup")
        api.capsule(work, startup, name=name, **properties, **WORK)
        run = api.start(work, name)
        if name == "terminate":
            api.terminate(api.get(run, until="ready"))
        assert api.get(run)["dateEnded"]
    items, after = 0, ""
    while after is not None:
        page = api.call("GET", api.files(work, "work", "/", "list") + f"&limit=1000&after={after}"
                        if after else api.files(work, "work", "/", "list") + "&limit=1000")
        items, after = items + len(page["items"]), page["next"]
    assert items == 1000


def test_o25_a_new_run_holds_nothing_of_the_old_one(api, work):
    inside(api, work, "touch /tmp/mine ~/mine; sleep 0.1")
    inside(api, work, "test ! -e /tmp/mine && test ! -e ~/mine && test -z \"$(ls -A /tmp)\"", name="next")
