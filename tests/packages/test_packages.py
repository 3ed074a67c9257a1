# SPDX-License-Identifier: Apache-2.0
"""`packages` of a capsule: acceptance 5, 30, 31, 67 and field case O-30, from a repository of the tests'
own; sqlite3 itself comes from Debian where this machine reaches it."""
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "net"))
from conftest import Api, debian_is_there  # noqa: E402
from lab import Lab, PRIVATE4, PUBLIC4  # noqa: E402
import repo  # noqa: E402

SMALL = {"limits": {"memory": "128MiB", "disk": "64MiB", "pids": 64}}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    r = repo.Repository(tmp_path_factory.mktemp("repository") / "debs")
    r.add("hello-tool", files={"usr/bin/hello-tool": "#!/bin/sh\necho hello of 1.0\n"})
    r.add("needs-hello", depends="hello-tool", files={"usr/share/needs-hello": "x"})
    r.add("asks", scripts={"postinst": 'echo "Do you agree?"; if read answer; then exit 7; fi\n'})
    r.add("lonely", depends="hello-tool, a-thing-of-the-past")
    r.add("breaks", scripts={"postinst": "echo the disk is made of cheese >&2; exit 9\n"})
    r.add("service", files={"etc/init.d/service": repo.DAEMON},
          scripts={"postinst": "invoke-rc.d service start || [ $? = 101 ]\nsleep 1000 >/dev/null 2>&1 &\n"})
    r.add("owners", files={"usr/bin/owners-suid": "#!/bin/sh\nid -u\n"}, scripts={
        "postinst": "cp /bin/true /usr/bin/owners-cap; chown 65535:65535 /usr/bin/owners-cap; chmod 6755"
                    " /usr/bin/owners-suid\nchown 100:101 /usr/share/doc; ln -s /etc /usr/share/owners-link\n"})
    r.add("looks", scripts={"postinst": "mknod /dev/sda b 8 0 && exit 1; mount -t tmpfs x /mnt && exit 1\n"
                                        "chroot / true || exit 1; id -u > /usr/share/looks-id\n"})
    return r


@pytest.fixture(scope="module")
def lab():
    made = Lab()
    yield made
    made.end()


@pytest.fixture(scope="module")
def mirror(repository, lab):
    m = repo.Mirror(repository, lab.world, PUBLIC4)
    yield m
    m.close()


class Own(Api):
    """A server whose packages come from that source."""

    def __init__(self, lab, source, folder, **options):
        (folder / "sources.list").write_text(source)
        super().__init__(lab.server(runner_options=["--apt-sources", str(folder / "sources.list")], **options))

    def layers(self):
        return self.server.dir / "state" / "layers"

    def whole(self):
        return sorted(p.name for p in self.layers().iterdir() if len(p.name) == 64)

    def half(self):
        return sorted(p.name for p in self.layers().iterdir() if len(p.name) != 64)

    def story(self, run):
        """Nothing of a run that no runner has taken yet."""
        answer = self.call("GET", f"/v1/capsule-runs/{run['id']}?story=true")
        return [line["what"] for line in answer.get("story") or []]

    def built(self, run):
        return any(what.startswith("packages done") for what in self.story(run))

    def log(self):
        return (self.server.dir / "mt-runner.log").read_text()


@pytest.fixture(scope="module")
def own(lab, mirror, tmp_path_factory):
    api = Own(lab, mirror.source(), tmp_path_factory.mktemp("own"))
    with api.server:
        yield api


@pytest.fixture()
def other(lab, mirror, tmp_path):
    """As `own`, for tests that kill or hold."""
    api = Own(lab, mirror.source(), tmp_path)
    with api.server:
        yield api


@pytest.fixture()
def ns(own):
    return own.namespace("packages")


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def install(api, ns, packages, line="true", seconds=90, **properties):
    return api.shell(ns, line, packages=packages, seconds=seconds, **{**SMALL, **properties})


def prune_until(api, left):
    """Prunes until so many layers are left; what went. Who has just ended uses its layer until it is gone."""
    gone = {"layersRemoved": 0, "bytesFreed": 0}

    def look():
        answer = api.call("POST", "/v1/images/prune")
        for name in gone:
            gone[name] += answer[name]
        return len(api.whole()) == left

    wait_for(look, f"{left} layers are left")
    return gone


def details(api, ns, packages, **properties):
    run = install(api, ns, packages, **properties)
    assert (run["status"], run["endReason"]) == ("Error", "startFailed"), run
    return run["failureDetails"]


# ---- what is installed works ----

def test_a31_packages_are_there_for_every_user(own, ns):
    for user in ("maitento", "sandbox", "root"):
        own.capsule(ns, [{"command": "hello-tool | grep -qx 'hello of 1.0'", "runAsUser": user}],
                    users=[{"name": "sandbox"}], packages=["hello-tool"], autoTerminate=True, **SMALL)
        run = own.run(ns, "c", seconds=90)
        assert run["status"] == "Finished", run["failureDetails"]


def test_a67_what_was_not_asked_for_is_not_there(own, ns):
    run = own.shell(ns, "python3 -c 'import sqlite3' && ! command -v sqlite3 && hello-tool", **SMALL)
    assert "hello-tool: not found" in run["failureDetails"]


def test_a05_packages_added_by_a_deploy_count_from_the_next_start(own, ns):
    own.capsule(ns, [], maxDuration="00:10:00", **SMALL)
    before = own.get(own.start(ns, "c"), until="ready")
    own.capsule(ns, [{"command": "test -e /usr/share/needs-hello && hello-tool"}], packages=["needs-hello"],
                autoTerminate=True, **SMALL)
    after = own.run(ns, "c", seconds=90)
    assert after["status"] == "Finished", after
    assert own.call("GET", f"/v1/capsule-runs/{before['id']}")["status"] == "Running"
    own.terminate(before)


def test_a_second_start_installs_nothing(own, ns, mirror):
    first = install(own, ns, ["hello-tool", "needs-hello"])
    assert first["status"] == "Finished"
    asked, layers = len(mirror.asked), own.whole()
    for packages in (["needs-hello", "hello-tool"], ["needs-hello", "hello-tool", "needs-hello"]):
        again = install(own, ns, packages, "hello-tool")
        assert again["status"] == "Finished", again
        assert not own.built(again) and not any("installing" in w for w in own.story(again))
    assert len(mirror.asked) == asked and own.whole() == layers


def test_a_capsule_without_network_gets_its_packages_all_the_same(own, ns):
    run = install(own, ns, ["hello-tool", "owners"], "hello-tool && test ! -e /sys/class/net/eth0", network="none")
    assert run["status"] == "Finished", run


def test_the_story_says_what_is_installed(own, ns):
    prune_until(own, 0)
    run = install(own, ns, ["hello-tool=1.0"])
    assert run["status"] == "Finished", run
    assert "the package lists of the image are read first" in own.story(run)
    assert "installing packages: hello-tool=1.0" in own.story(run) and own.built(run)


def test_a_layer_has_owners_of_an_image_and_no_traces(own, ns):
    run = install(own, ns, ["owners"], "test $(stat -c %u /usr/bin/owners-cap) = 65535 && "
                                       "test $(stat -c %g /usr/share/doc) = 101 && "
                                       "test $(/usr/bin/owners-suid) = 1000")
    assert run["status"] == "Finished", run
    root = next(p for d in own.whole() if (p := own.layers() / d / "root" / "usr/bin/owners-cap").exists()).parents[2]
    assert (root / "usr/bin/owners-cap").stat().st_uid == 65535
    for path in root.rglob("*"):
        assert path.lstat().st_uid <= 65535 and path.lstat().st_gid <= 65535
    for path in ("var/lib/apt/lists", "var/cache/apt", "tmp", "run/maitento-build", "usr/sbin/policy-rc.d",
                 "etc/resolv.conf", "etc/hosts", "etc/apt", "var/log/apt"):
        assert not (root / path).exists(), path
    assert (own.layers().stat().st_mode & 0o777, own.layers().stat().st_uid) == (0o700, 0)


def test_package_scripts_are_root_of_the_builder_only(own, ns):
    run = install(own, ns, ["looks"], "grep -qx 0 /usr/share/looks-id && test ! -e /dev/sda")
    assert run["status"] == "Finished", run


def test_no_service_is_started_and_nothing_is_left_running(own, ns):
    run = install(own, ns, ["service"], "test -z \"$(pgrep -x sleep)\"")
    assert run["status"] == "Finished", run


# ---- O-30: what cannot be installed says why ----

def test_o30_a_question_has_no_one_to_answer_it(own, ns):
    assert install(own, ns, ["asks"])["status"] == "Finished"


def test_a30_o30_unknown_packages_are_named(own, ns):
    text = details(own, ns, ["hello-tool", "no-such-pkg-xyz", "nor-this"])
    assert "hello-tool, no-such-pkg-xyz, nor-this could not be installed" in text
    assert "E: Unable to locate package no-such-pkg-xyz" in text and "package nor-this" in text
    assert "package hello-tool" not in text


@pytest.mark.parametrize("name", ["hello-tool-", "hello-too.", "hello-tool+", "hello"])
def test_o30_a_name_is_a_name_and_no_pattern(own, ns, name):
    assert f"E: Unable to locate package {name}" in details(own, ns, [name])


def test_o30_unknown_versions_are_named(own, ns):
    assert "Version '0.0.1' for 'hello-tool' was not found" in details(own, ns, ["hello-tool=0.0.1"])


def test_o30_missing_dependencies_are_named(own, ns):
    assert "lonely : Depends: a-thing-of-the-past" in details(own, ns, ["lonely"])


def test_o30_a_package_that_breaks_says_so_itself(own, ns):
    text = details(own, ns, ["breaks"])
    assert "dpkg: error processing package breaks" in text and "exit status 9" in text
    assert not any("breaks" in p.name for d in own.whole() for p in (own.layers() / d).rglob("breaks*"))


@pytest.mark.parametrize("name", ["-oX=Y", "jq;id", "Jq", "", "a", "jq jq", "jq=", "jq=$(id)", "jq/stable", "../x"])
def test_o30_names_are_refused_at_deploy_with_their_place(own, ns, name):
    found = own.deploy(ns, {"capsules/c.mtr": f'image = "slim"\npackages = ["sqlite3", "{name}"]\n'},
                       expect=422)["diagnostics"]
    assert (found[0]["file"], found[0]["line"]) == ("capsules/c.mtr", 2), found


def test_o30_listed_twice_is_once(own, ns):
    answer = own.deploy(ns, {"capsules/c.mtr": 'image = "slim"\nautoTerminate = true\n'
                                               'packages = ["hello-tool", "hello-tool"]\n'})
    assert "twice" in str(answer["warnings"])
    assert own.run(ns, "c", seconds=90)["status"] == "Finished"


# ---- space ----

def test_image_prune_removes_what_no_run_uses(own, ns):
    own.capsule(ns, [], name="used", packages=["hello-tool"], maxDuration="00:10:00", **SMALL)
    used = own.get(own.start(ns, "used"), until="ready", seconds=90)
    install(own, ns, ["needs-hello"])
    answer = prune_until(own, 1)
    assert answer["layersRemoved"] >= 2 and answer["bytesFreed"] > 0
    assert own.call("POST", "/v1/images/prune")["layersRemoved"] == 0
    own.terminate(used)
    own.get(used)
    prune_until(own, 0)
    run = install(own, ns, ["needs-hello"], "hello-tool")
    assert run["status"] == "Finished" and own.built(run)


def test_image_prune_is_for_administrators(own):
    own.call("POST", "/v1/users", {"name": "plain"}, 201)
    key = own.call("POST", "/v1/keys", {"name": "plain", "user": "plain"}, 201)["key"]
    assert own.error("POST", "/v1/images/prune", headers={"Authorization": f"Bearer {key}"})[0] in (403, 404)


# ---- at once, and with crashes ----

def test_o30_ten_at_once_install_once(other, mirror):
    ns = other.namespace()
    other.capsule(ns, [{"command": "hello-tool"}], packages=["hello-tool"], autoTerminate=True, **SMALL)
    mirror.asked.clear()
    runs = []
    threads = [threading.Thread(target=lambda: runs.append(other.run(ns, "c", seconds=120))) for _ in range(10)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert [r["status"] for r in runs] == ["Finished"] * 10, runs
    assert len([p for p in mirror.asked if p.endswith(".deb")]) == 1
    assert len(other.whole()) == 2  # the package lists, and the layer


def begin(api, mirror, packages=("hello-tool",), **properties):
    """A run whose packages are being fetched, from a mirror that answers when it is released."""
    ns = api.namespace()
    api.capsule(ns, [{"command": "hello-tool"}], packages=list(packages), autoTerminate=True,
                **{"maxDuration": "00:05:00", **SMALL, **properties})
    mirror.asked.clear()
    mirror.hold()
    run = api.start(ns, "c")
    wait_for(lambda: mirror.asked, "the mirror is asked")
    return ns, run


@pytest.fixture()
def held(other, mirror):
    yield other
    mirror.release()


def test_o27_terminate_while_packages_are_installed(held, mirror):
    ns, run = begin(held, mirror)
    asked = time.monotonic()
    held.terminate(run)
    ended = held.get(run, seconds=20)
    assert (ended["status"], ended["endReason"]) == ("Finished", "terminated")
    assert time.monotonic() - asked < 10
    mirror.release()
    assert held.run(ns, "c", seconds=90)["status"] == "Finished"


def test_o30_the_time_of_the_run_counts(held, mirror):
    _, run = begin(held, mirror, maxDuration="00:00:10")
    ended = held.get(run, seconds=30)
    assert (ended["status"], ended["endReason"]) == ("Error", "timeout")
    assert "while packages were installed" in ended["failureDetails"] and "hello-tool" in ended["failureDetails"]
    nothing_is_left(held)


def test_a_killed_runner_loses_no_build(held, mirror):
    ns, run = begin(held, mirror)
    os.kill(held.server.runner.pid, signal.SIGKILL)
    held.server.runner.wait()
    mirror.release()
    held.server.start_runner()
    ended = held.get(run, seconds=120)
    assert ended["status"] == "Finished", ended
    assert held.run(ns, "c", seconds=90)["status"] == "Finished"
    wait_for(lambda: not held.half(), held.half())


SETS = [["hello-tool"], ["needs-hello"], ["asks"], ["owners"], ["looks"], ["asks", "owners"], ["asks", "looks"]]


def test_more_sets_at_once_than_builders_and_a_killed_runner(held, mirror):
    ns = held.namespace()
    for n, packages in enumerate(SETS):
        held.capsule(ns, [], name=f"c{n}", packages=packages, autoTerminate=True, maxDuration="00:05:00", **SMALL)
    mirror.asked.clear()
    mirror.hold()
    runs = [held.start(ns, f"c{n}") for n in range(len(SETS))]
    wait_for(lambda: mirror.asked, "the mirror is asked")
    os.kill(held.server.runner.pid, signal.SIGKILL)  # all but the lists wait for their turn
    held.server.runner.wait()
    mirror.release()
    held.server.start_runner()
    ended = [held.get(run, seconds=180) for run in runs]
    assert [run["status"] for run in ended] == ["Finished"] * len(SETS), ended
    wait_for(lambda: not held.half(), held.half())


def janitor_of(runner):
    """The runner's janitor, a child of it; a new runner has it a little later."""
    found = []

    def look():
        for pid in Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split():
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == "mt-janitor":
                    found.append(int(pid))
            except OSError:
                pass
        return found

    wait_for(look, "there is a janitor")
    return found[0]


def test_runner_and_janitor_killed_at_any_moment(other):
    ns = other.namespace()
    for n in range(8):
        packages = random.sample(sorted({p for s in SETS for p in s}), 1 + n % 4)
        other.capsule(ns, [], packages=packages, autoTerminate=True, maxDuration="00:05:00", **SMALL)
        runs = [other.start(ns, "c") for _ in range(2)]
        time.sleep(random.uniform(0, 1.2))  # any moment of it
        if n % 3 == 2:
            os.kill(janitor_of(other.server.runner), signal.SIGKILL)
        else:
            os.kill(other.server.runner.pid, signal.SIGKILL)
            other.server.runner.wait()
            other.server.start_runner()
        ended = [other.get(run, seconds=120) for run in runs]
        assert [run["status"] for run in ended] == ["Finished"] * 2, ended
    wait_for(lambda: not other.half(), other.half())


def test_a_killed_server_finds_the_run_again(held, mirror):
    _, run = begin(held, mirror)
    os.kill(held.server.server.pid, signal.SIGKILL)
    held.server.server.wait()
    mirror.release()
    held.server.start_server()
    ended = held.get(run, seconds=120)
    assert ended["status"] == "Finished", ended


def test_killed_runner_and_builder_are_a_reason_too(held, mirror):
    ns, run = begin(held, mirror)
    pid = builder_of(held, run)
    os.kill(held.server.runner.pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    held.server.runner.wait()
    mirror.release()
    held.server.start_runner()
    ended = held.get(run, seconds=120)
    assert (ended["status"], ended["endReason"]) == ("Error", "startFailed"), ended
    assert held.run(ns, "c", seconds=90)["status"] == "Finished"


def test_a_killed_builder_is_a_reason_and_the_next_start_works(held, mirror):
    ns, run = begin(held, mirror)
    os.kill(builder_of(held, run), signal.SIGKILL)
    ended = held.get(run, seconds=60)
    assert (ended["status"], ended["endReason"]) == ("Error", "startFailed")
    assert "died" in ended["failureDetails"], ended
    mirror.release()
    assert held.run(ns, "c", seconds=90)["status"] == "Finished"
    wait_for(lambda: all(n.startswith("failed-") for n in held.half()), held.half())


# ---- a build belongs to those who wait for it ----

class Person(Api):
    """Somebody else at the same server, with a namespace of his own."""

    def __init__(self, api, name):
        super().__init__(api.server)
        api.call("POST", "/v1/users", {"name": name}, 201)
        key = api.call("POST", "/v1/keys", {"name": name, "user": name}, 201)["key"]
        self.headers = {"Authorization": f"Bearer {key}"}
        self.ns = self.namespace(name)

    def call(self, method, path, body=None, expect=(200, 201, 204), headers=None):
        return super().call(method, path, body, expect, {**self.headers, **(headers or {})})


# All of them wait for one package, which the mirror may hold; others do not.
HANGING = [["hello-tool"], ["needs-hello"], ["hello-tool", "asks"], ["hello-tool", "looks"]]


def hang(api, mirror, ns, sets=HANGING):
    """A run for each set, and the first two (as many as one user has at once) are being fetched."""
    mirror.hold("hello-tool")
    mirror.asked.clear()
    for n, packages in enumerate(sets):
        api.capsule(ns, [], name=f"h{n}", packages=packages, autoTerminate=True, maxDuration="00:05:00", **SMALL)
    runs = [api.start(ns, f"h{n}") for n in range(len(sets))]
    wait_for(lambda: len([p for p in mirror.asked if "hello-tool" in p]) >= min(2, len(sets)), "they are fetched")
    return runs


def building(api):
    return [name for name in api.half() if name.startswith("build-")]


def builders(api, *runs):
    """Ids of the runs that build."""
    return sorted({p.name for p in (api.server.dir / "state/runs").iterdir() if len(p.name) == 36} -
                  {run["id"] for run in runs})


def groups_of(run_id):
    return [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if run_id in folder]


def nothing_is_left(api, *gone):
    """Of no build: neither folder, reason, group, supervisor nor relay. gone: builders that there were."""
    wait_for(lambda: api.half() == [], api.half())
    wait_for(lambda: not any((api.server.dir / "state/runs" / run_id).exists() for run_id in gone), gone)
    wait_for(lambda: not any(groups_of(run_id) for run_id in gone), gone)


def terminate(api, *runs):
    for run in runs:
        api.terminate(run)
    for run in runs:
        ended = api.get(run, seconds=20)
        assert (ended["status"], ended["endReason"]) == ("Finished", "terminated"), ended


def test_a_queued_build_goes_with_the_run_that_waits(held, mirror):
    runs = hang(held, mirror, held.namespace())
    wait_for(lambda: len(building(held)) == 4 and len(builders(held, *runs)) == 2, "two are built, and two wait")
    before = builders(held, *runs)
    terminate(held, runs[3])
    wait_for(lambda: len(held.half()) == 3, held.half())
    assert builders(held, *runs) == before
    mirror.release()
    assert [held.get(run, seconds=90)["status"] for run in runs[:3]] == ["Finished"] * 3
    assert len(held.whole()) == 4  # the package lists, and three layers
    nothing_is_left(held, *before)


def test_a_running_build_goes_with_the_run_that_waits_and_makes_room(held, mirror):
    ns = held.namespace()
    runs = hang(held, mirror, ns)
    held.capsule(ns, [], packages=["owners"], autoTerminate=True, maxDuration="00:05:00", **SMALL)
    last = held.start(ns, "c")
    gone = builders(held, *runs, last)
    terminate(held, *runs)
    ended = held.get(last, seconds=20)  # apt gives up on the mirror after 30 s
    assert ended["status"] == "Finished", ended
    nothing_is_left(held, *gone)
    assert len(held.whole()) == 2 and "a supervisor died" not in held.log()


def test_a_build_goes_on_while_one_of_two_is_there(held, mirror):
    ns, first = begin(held, mirror)
    second = held.start(ns, "c")
    wait_for(lambda: "installing packages: hello-tool" in held.story(second), "the second waits, too")
    before = builders(held, first, second)
    terminate(held, first)
    folder = held.server.dir / "state/runs" / first["id"]
    wait_for(lambda: not (folder / "sock").exists(), "the runner has seen its end")
    assert builders(held, first, second) == before and len(before) == 1
    mirror.release()
    ended = held.get(second, seconds=90)
    assert ended["status"] == "Finished", ended
    assert len([p for p in mirror.asked if p.endswith(".deb")]) == 1


def test_a_killed_waiting_supervisor_takes_its_build_with_it(held, mirror):
    ns, run = begin(held, mirror)
    gone = builders(held, run)
    os.kill(supervisor_of(held.server.dir / "state/runs" / run["id"]), signal.SIGKILL)
    ended = held.get(run, seconds=20)
    assert (ended["status"], ended["endReason"]) == ("Error", "supervisorLost"), ended
    nothing_is_left(held, *gone)
    mirror.release()
    assert held.run(ns, "c", seconds=90)["status"] == "Finished"


@pytest.mark.parametrize("first", ["runner", "runs"])
def test_who_goes_while_no_runner_is_there_is_missed_by_the_next(held, mirror, first):
    ns = held.namespace()
    runs = hang(held, mirror, ns, HANGING[:3])
    gone = builders(held, *runs)
    if first == "runs":
        terminate(held, *runs[1:])
    os.kill(held.server.runner.pid, signal.SIGKILL)
    held.server.runner.wait()
    if first == "runner":
        terminate(held, *runs[1:])
    held.server.start_runner()
    wait_for(lambda: len(held.half()) == 1, held.half())
    mirror.release()
    assert held.get(runs[0], seconds=90)["status"] == "Finished"
    nothing_is_left(held, *gone)
    assert len(held.whole()) == 2


def test_wanted_again_while_it_is_stopped(held, mirror):
    ns = held.namespace()
    for packages in HANGING:
        held.capsule(ns, [], packages=packages, autoTerminate=True, maxDuration="00:05:00", **SMALL)
        mirror.hold("hello-tool")
        mirror.asked.clear()
        run = held.start(ns, "c")
        wait_for(lambda: any("hello-tool" in p for p in mirror.asked), "it is fetched")
        held.terminate(run)
        held.get(run, seconds=20)
        mirror.release()
        again = held.run(ns, "c", seconds=60)
        assert again["status"] == "Finished", again
    nothing_is_left(held)


def test_one_users_builds_do_not_hold_up_anothers(held, mirror):
    runs = hang(held, mirror, held.namespace())
    other = Person(held, "other")
    other.capsule(other.ns, [], packages=["owners"], autoTerminate=True, maxDuration="00:05:00", **SMALL)
    ended = other.run(other.ns, "c", seconds=25)  # apt gives up on the mirror after 30 s
    assert ended["status"] == "Finished", ended
    assert [held.call("GET", f"/v1/capsule-runs/{run['id']}")["status"] for run in runs] == ["Starting"] * 4
    mirror.release()
    assert [held.get(run, seconds=90)["status"] for run in runs] == ["Finished"] * 4


def test_one_user_does_not_fill_the_queue(held, mirror):
    tiny = {"limits": {"memory": "16MiB", "disk": "16MiB", "pids": 16}, "maxDuration": "00:05:00"}
    ns = held.namespace()
    mirror.hold()
    for n in range(65):
        held.capsule(ns, [], name=f"c{n}", packages=[f"package-{n}"], **tiny)
    runs = [held.start(ns, f"c{n}") for n in range(65)]
    ended = held.get(runs[64], seconds=20)
    assert ended["status"] == "Error" and "64 other capsules that you started" in ended["failureDetails"], ended
    other = Person(held, "other")
    other.capsule(other.ns, [], packages=["owners"], autoTerminate=True, **tiny)
    run = other.start(other.ns, "c")
    wait_for(lambda: len(building(held)) == 66, building(held))  # with the package lists
    terminate(held, *runs[:64])
    mirror.release()
    assert other.get(run, seconds=60)["status"] == "Finished"
    nothing_is_left(held)


def builder_of(api, run):
    """The supervisor of the run that builds, the only one beside that one."""
    return supervisor_of(next(p for p in (api.server.dir / "state/runs").iterdir()
                              if len(p.name) == 36 and p.name != run["id"]))


def supervisor_of(folder):
    """As its journal names it: "PID START"."""
    data = (folder / "journal").read_bytes()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace").read()
        except OSError:
            continue
        if "mt-supervisor" in stat and f"{pid} {stat.rsplit(')')[-1].split()[19]}".encode() in data:
            return int(pid)
    raise AssertionError("no supervisor")


def test_o30_a_mirror_that_never_answers_ends_the_start_with_a_reason(lab, tmp_path):
    silence = repo.Silence(lab.world, PUBLIC4)
    api = Own(lab, silence.source(), tmp_path)
    try:
        with api.server:
            ns = api.namespace()
            text = details(api, ns, ["hello-tool"], seconds=150)
            assert "the package lists could not be read: E: " in text and silence.address in text, text
            wait_for(lambda: all(n.startswith("failed-") for n in api.half()), api.half())
            assert api.whole() == []
            run = install(api, ns, ["hello-tool"], maxDuration="00:00:03")
            assert "out of time while packages were installed" in run["failureDetails"], run
    finally:
        silence.close()


@pytest.mark.parametrize("host", [PRIVATE4, "private.test"])
def test_o30_a_mirror_that_capsules_may_not_reach_is_there_for_builders_alone(lab, repository, tmp_path, host):
    private = repo.Mirror(repository, lab.world, PRIVATE4)
    api = Own(lab, f"deb [trusted=yes] http://{host}:{private.port} ./\n", tmp_path)
    try:
        with api.server:
            ns = api.namespace()
            run = install(api, ns, ["hello-tool"], f"hello-tool && ! curl -sm 5 http://{PRIVATE4}:{private.port}")
            assert run["status"] == "Finished", run
            assert PRIVATE4 not in "".join(p.read_text() for p in api.layers().glob("*/root/etc/hosts"))
    finally:
        private.close()


def test_o30_a_proxy_on_the_host_itself(lab, repository, tmp_path):
    proxy = repo.Mirror(repository, lab.host, "127.0.0.1")
    api = Own(lab, "deb [trusted=yes] http://no-such-host.invalid ./\n", tmp_path,
              runner_environment={**os.environ, "http_proxy": f"http://user:pass-word@127.0.0.1:{proxy.port}"})
    try:
        with api.server:
            run = install(api, api.namespace(), ["hello-tool"], "hello-tool && ! env | grep -i proxy")
            assert run["status"] == "Finished", run
            assert all(path.startswith("http://no-such-host.invalid/") for path in proxy.asked) and proxy.asked
            assert "pass-word" not in api.log() + str(api.story(run))
    finally:
        proxy.close()


def test_o30_no_such_host(lab, tmp_path):
    api = Own(lab, "deb [trusted=yes] http://no-such-host.invalid ./\n", tmp_path)
    with api.server:
        text = details(api, api.namespace(), ["hello-tool"], seconds=120)
        assert "no-such-host.invalid" in text and "resolv" in text, text


# ---- Debian's own ----

@pytest.mark.skipif(not debian_is_there(), reason="needs Debian's archive")
def test_a31_o30_packages_of_debian(api):
    ns = api.namespace("debian")
    api.capsule(ns, [{"command": "sqlite3 :memory: 'select 6*7' | grep -qx 42", "runAsUser": "sandbox"},
                     {"command": "test -e /usr/share/zoneinfo/Europe/Paris"}],
                users=[{"name": "sandbox"}], packages=["sqlite3", "tzdata"], autoTerminate=True,
                **SMALL)
    run = api.run(ns, "c", seconds=180)
    assert run["status"] == "Finished", run
