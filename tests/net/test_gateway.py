# SPDX-License-Identifier: Apache-2.0
"""The gateway's processes: who may die, what is left, and what a host lacks."""
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import mtserver
import pytest

from conftest import Api
from lab import PRIVATE4, PUBLIC4, PUBLIC6, Gateway, Lab, until
from machine import Machine, gateway, lab, server  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

REACH = f'out["x"] = [tried(get, "{PUBLIC4}", 80, 3)[0], tried(get, "{PRIVATE4}", 80, 3)[0], tried(names, "four.test")[0]]'
# Reads a slow page while its server's parts die.
FOLLOW = f"""
import socket
s = socket.create_connection(("{PUBLIC4}", 80), timeout=30)
s.sendall(b"GET /slow/8 HTTP/1.0\\r\\n\\r\\n")
for line in s.makefile("rb"):
    print(line.decode().strip(), flush=True)
print("end")
"""


def works(machine):
    found = machine.python(REACH)["x"]
    return isinstance(found[0], dict) and found[1:] == ["ECONNREFUSED", [PUBLIC4]]


def kill(pid):
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture()
def own(lab):
    with lab.server() as running:
        yield running


@pytest.fixture()
def at(own):
    """A machine in a server of the test's own."""
    api = Api(own)
    return Machine(api, api.namespace("net"))


def test_the_uplink_dies(own, at):
    gateway = Gateway(own)
    assert works(at)
    for _ in range(3):
        before = gateway.uplink
        kill(before)
        until(lambda: gone(before), "it is gone")
        until(lambda: works(at), "the network is back")
        assert gateway.uplink != before


def test_mt_net_dies(own, at):
    gateway = Gateway(own)
    before, = gateway.processes("mt-net")
    kill(before)
    until(lambda: gone(before), "it is gone")
    until(lambda: works(at), "names are looked up again")
    assert gateway.processes("mt-net") != [before]


def test_the_runner_dies(own, at):
    """What a capsule is in the middle of goes on, and a new runner starts new ones."""
    gateway = Gateway(own)
    holder, uplink = gateway.holder, gateway.uplink
    page = at.background(["python3", "-c", FOLLOW], until_says="5\n")
    kill(own.runner.pid)
    own.runner.wait()
    assert works(at)  # while there is none
    own.start_runner()
    own._wait(own._runner_answers, own.runner, "mt-runner")
    assert works(at)
    assert (gateway.holder, gateway.uplink) == (holder, uplink)
    another = Machine(at.api, at.api.namespace("net"))
    assert works(another) and works(at)
    until(lambda: "end" in at.output(page), "the page has been read", 60)
    assert at.output(page).endswith("".join(f"{n}\n" for n in range(160)) + "end\n")


def test_the_holder_dies(lab):
    """The runner keeps the namespace: a new holder goes on with it, for old capsules and for new ones."""
    with lab.server(runner_options=["--spares", "0"]) as own:
        api = Api(own)
        holder_dies(Gateway(own), Machine(api, api.namespace("net")))


def holder_dies(gateway, at):
    before, uplink, names = gateway.holder, gateway.uplink, gateway.processes("mt-net")
    kill(before)
    until(lambda: gone(before) and gone(uplink), "it and its uplink are gone")
    until(lambda: works(at), "the network is back")
    assert gateway.holder != before and not gone(names[0])
    another = Machine(at.api, at.api.namespace("net"))
    assert works(another)
    at.end()
    until(lambda: gone(names[0]), "the mt-net before leaves with its last capsule")


def test_the_rules_are_there_after_every_death(own, at):
    gateway = Gateway(own)
    listed = gateway.run("nft", "list", "ruleset")
    before, uplink = gateway.holder, gateway.uplink
    kill(before)
    until(lambda: gone(before) and gone(uplink), "it and its uplink are gone")
    until(lambda: works(at), "the network is back")
    assert gateway.run("nft", "list", "ruleset").count("comment") == listed.count("comment") > 15


def test_nothing_is_left(lab):
    def host():
        return lab.host.run("nft list ruleset; ip -o link; ip -o addr; ip rule; cat /proc/sys/net/ipv4/ip_forward "
                            "/proc/sys/net/ipv6/conf/all/forwarding; ls /run/netns 2>/dev/null || true")

    until(lambda: "tentative" not in host(), "the lab's addresses have settled")
    before = host()
    with lab.server() as running:
        gateway = Gateway(running)
        api = Api(running)
        machine = Machine(api, api.namespace("net"))
        assert works(machine)
        assert host() == before  # nor while it runs
        pids = gateway.processes("mt-") + [gateway.uplink]
        links = gateway.run("ip", "-o", "link")
        assert "mtc" in links and "uplink" in links
    assert host() == before
    until(lambda: all(gone(p) for p in pids), "all processes are gone")
    assert not Path(f"/run/maitento-ids/gateway-{running.instance}").exists()


def test_namespaces_end_with_their_runs(own, at):
    gateway = Gateway(own)

    def links():
        return {line.split(":")[1].strip() for line in gateway.run("ip", "-o", "link").splitlines() if "mtc" in line}

    assert works(at)
    mine = [name for name in links() if slot(name) == at_slot(at)]
    assert len(mine) == 1
    at.end()
    until(lambda: not set(mine) & links(), "its veth is gone with it")


def slot(name):
    return int(name.split("@")[0].removeprefix("mtc"), 16)


def at_slot(machine):
    address = machine.python('''
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect(("198.51.100.7", 9))
    out["own"] = s.getsockname()[0]
''')["own"]
    a, b, c, d = map(int, address.split("."))
    return (b - 126) << 16 | c << 8 | d


# ---- what a host lacks ----

def tools_but(folder, *missing):
    """A PATH with what the runner needs but for these programs."""
    folder.mkdir()
    for name in {"mkfs.btrfs", "nft", "pasta"} - set(missing):
        (folder / name).symlink_to(shutil.which(name))
    return {**os.environ, "PATH": str(folder)}


@pytest.mark.parametrize("program,sentence", [
    ("pasta", "pasta is not installed on this host (Debian package passt)"),
    ("nft", "nft is not installed on this host (Debian package nftables)")])
def test_without_a_program_it_is_shut(lab, tmp_path, program, sentence):
    environment = tools_but(tmp_path / "bin", program)
    with lab.server(runner_environment=environment) as running:
        api = Api(running)
        ns = api.namespace("net")
        ended = api.shell(ns, "true")
        assert ended["status"] == "Error" and ended["endReason"] == "startFailed"
        assert ended["failureDetails"].startswith(sentence), ended["failureDetails"]
        alone = api.shell(ns, "true", name="alone", network="none")
        assert alone["status"] == "Finished", alone
        assert sentence in doctor(running)
        (tmp_path / "bin" / program).symlink_to(shutil.which(program))  # installed
        until(lambda: api.shell(ns, "true")["status"] == "Finished", "it works without another start of the runner")
        until(lambda: sentence not in doctor(running), "the doctor has nothing to say")


def test_without_tun_it_is_shut():
    lab = Lab()
    try:
        lab.host.run("mount -t tmpfs none /dev/net")
        with lab.server() as running:
            api = Api(running)
            ended = api.shell(api.namespace("net"), "true")
            sentence = "this host has no /dev/net/tun (kernel module tun)"
            assert ended["endReason"] == "startFailed" and ended["failureDetails"].startswith(sentence), ended
            assert sentence in doctor(running)
    finally:
        lab.end()


def test_a_pasta_that_does_not_work_is_told_of(lab, tmp_path):
    environment = tools_but(tmp_path / "bin", "pasta")
    broken = tmp_path / "bin" / "pasta"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with lab.server(runner_environment=environment) as running:
        api = Api(running)
        ns = api.namespace("net")
        until(lambda: "pasta, which connects capsules to the internet, ended with 3" in
              api.shell(ns, "true")["failureDetails"], "the start says what is wrong")
        broken.unlink()
        broken.symlink_to(shutil.which("pasta"))
        until(lambda: api.shell(ns, "true")["status"] == "Finished", "it is tried again")


def test_a_holder_of_another_version_is_left_alone(lab):
    running = lab.server()
    Path("/run/maitento-ids").mkdir(mode=0o700, exist_ok=True)
    path = f"/run/maitento-ids/gateway-{running.instance}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(path)
        other.listen(4)
        other.settimeout(60)
        starting = threading.Thread(target=running.start)
        starting.start()
        connection, _ = other.accept()
        connection.send(b"\xff" * 824)  # as large as ours, and as another's
        try:
            starting.join()
            api = Api(running)
            assert works(Machine(api, api.namespace("net")))
            assert connection.recv(824) == b"" and "another version holds" in running.said("mt-runner")
        finally:
            connection.close()
            running.stop()


def test_purge_ends_all_of_it(lab):
    running = lab.server()
    try:
        running.start()
        gateway = Gateway(running)
        api = Api(running)
        assert works(Machine(api, api.namespace("net")))
        pids = gateway.processes("mt-") + [gateway.uplink]
        for process in (running.server, running.runner):
            kill(process.pid)
            process.wait()
    finally:
        running.stop()  # which purges
    until(lambda: all(gone(p) for p in pids), "all processes are gone")
    assert not Path(f"/run/maitento-ids/gateway-{running.instance}").exists()


def doctor(running):
    done = subprocess.run([mtserver.program("mt"), "doctor"], env={**os.environ, **running.environment()},
                          capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_host_without_ipv6():
    lab = Lab(six=False)
    try:
        with lab.server() as running:
            api = Api(running)
            machine = Machine(api, api.namespace("net"))
            found = machine.python(f'out["six"] = [tried(get, "{PUBLIC6}"), tried(udp, "{PUBLIC6}")]\n' + REACH)
            assert isinstance(found["x"][0], dict)
            for result, quick in found["six"]:
                assert result in ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EACCES") and quick, found
    finally:
        lab.end()


def test_a_host_without_a_way_out(lab):
    """Capsules start and reach nothing; when the host has a way, they have it, too."""
    offline = Lab(six=False)
    try:
        offline.host.run("ip route del default")
        with offline.server() as running:
            api = Api(running)
            machine = Machine(api, api.namespace("net"))
            found = machine.python(f'out["x"] = tried(get, "{PUBLIC4}")')
            assert found["x"][0] in ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH") and found["x"][1], found
            assert "no route to the internet" in doctor(running)
            offline.host.run("ip route add default via 192.0.2.1")
            until(lambda: works(machine), "the network is there")
            until(lambda: "no route to the internet" not in doctor(running), "the doctor has nothing to say")
    finally:
        offline.end()


def test_mt_net_has_nothing(own, at):
    assert works(at)  # it answers: it has given away what it is not to have
    pid, = Gateway(own).processes("mt-net")
    status = Path(f"/proc/{pid}/status").read_text()
    assert "Uid:\t61235\t61235\t61235\t61235" in status and "Gid:\t61235\t61235\t61235\t61235" in status
    assert "Groups:\t \n" in status and "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    for line in status.splitlines():
        if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb")):
            assert line.endswith("\t0000000000000000"), line
    kinds = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            kinds.add(os.readlink(fd).split(":")[0])
        except FileNotFoundError:
            pass  # closed meanwhile
    assert {k for k in kinds if k.startswith("/")} <= {"/dev/null", os.readlink(f"/proc/{pid}/fd/2")}


def test_one_capsule_cannot_have_all_connections(own, at):
    """The kernel's table of connections is one for all capsules."""
    found = at.python(f'''
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(20000, 25000):
    for again in range(3):
        try:
            s.sendto(b"x", ("{PUBLIC4}", port))
            break
        except OSError:
            pass  # an error of one before
out["more"] = tried(get, "{PUBLIC4}")
''')
    assert found["more"] == ["ECONNREFUSED", True]
    another = Machine(at.api, at.api.namespace("net"))
    assert works(another)
