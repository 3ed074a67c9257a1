# SPDX-License-Identifier: Apache-2.0
"""The internet without the internet: a namespace HOST, in which a runner is started, and a namespace
WORLD behind a wire. All traffic stays in namespaces of the test's own.

    HOST                                      WORLD
    wan  192.0.2.2       2001:db8:2::2  ───   isp  192.0.2.1   2001:db8:2::1
    lo   203.0.113.5     2001:db8:5::5        lo   198.51.100.7   2001:db8:99::7   public
                                                   10.9.9.9       fd00:9::9        private
                                                   169.254.169.254                 metadata
                                                   10.9.9.53                       the host's resolver
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mtserver

HERE = Path(__file__).resolve().parent
PUBLIC4, PUBLIC6 = "198.51.100.7", "2001:db8:99::7"
PRIVATE4, PRIVATE6, METADATA = "10.9.9.9", "fd00:9::9", "169.254.169.254"
HOST4, HOST6, OTHER4, OTHER6 = "192.0.2.2", "2001:db8:2::2", "203.0.113.5", "2001:db8:5::5"
RESOLVER = "10.9.9.53"


def until(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return found


class Space:
    """A network namespace (and a mount namespace), kept by a process that sleeps."""

    def __init__(self):
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c",
                                        "echo ready; exec sleep infinity"], stdout=subprocess.PIPE)
        assert self.keeper.stdout.readline() == b"ready\n"
        self.prefix = [shutil.which("nsenter"), "--target", str(self.keeper.pid), "--net", "--mount", "--"]

    def run(self, line, check=True):
        done = subprocess.run([*self.prefix, "sh", "-ec", line], capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def end(self):
        self.keeper.kill()
        self.keeper.wait()
        self.keeper.stdout.close()


class Lab:
    def __init__(self, six=True):
        self.host, self.world = Space(), Space()
        self.dir = tempfile.TemporaryDirectory(prefix="net-lab-")
        self.resolv = Path(self.dir.name) / "resolv.conf"
        self.resolv.write_text(f"# of the lab\nnameserver {RESOLVER}\noptions edns0\n")
        self.host.run("ip link set lo up; ip link add wan type veth peer name isp netns "
                      f"/proc/{self.world.keeper.pid}/ns/net; ip addr add {HOST4}/24 dev wan; ip link set wan up; "
                      f"ip addr add {OTHER4}/32 dev lo; mount --bind {self.resolv} $(readlink -f /etc/resolv.conf)")
        self.world.run("ip link set lo up; ip addr add 192.0.2.1/24 dev isp; ip link set isp up; "
                       f"for a in {PUBLIC4} {PRIVATE4} {METADATA} {RESOLVER}; do ip addr add $a/32 dev lo; done")
        self.host.run("ip route add default via 192.0.2.1")
        if six:
            self.host.run(f"ip addr add {HOST6}/64 dev wan nodad; ip addr add {OTHER6}/128 dev lo nodad; "
                          "ip -6 route add default via 2001:db8:2::1")
            self.world.run("ip addr add 2001:db8:2::1/64 dev isp nodad; "
                           f"for a in {PUBLIC6} {PRIVATE6}; do ip addr add $a/128 dev lo nodad; done; "
                           "ip -6 route add default via 2001:db8:2::2; ip route add default via 192.0.2.2")
        everybody = [PUBLIC4, PRIVATE4, METADATA] + ([PUBLIC6, PRIVATE6] if six else [])
        self.people = [self._start(self.world, [RESOLVER], everybody),
                       self._start(self.host, [], [OTHER4] + ([OTHER6] if six else []))]

    @staticmethod
    def _start(space, resolvers, echoes):
        process = subprocess.Popen([*space.prefix, sys.executable, str(HERE / "world.py"), " ".join(resolvers),
                                    " ".join(echoes)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        return process

    def server(self, **options):
        return mtserver.Server(image="slim", runner_prefix=self.host.prefix, **options)

    def end(self):
        for process in self.people:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.host.end()
        self.world.end()
        self.dir.cleanup()


class Gateway:
    """What an instance's gateway is made of, found by its processes."""

    def __init__(self, server):
        self.server = server

    def processes(self, name):
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if (entry / "comm").read_text().strip().startswith(name) and self._is_ours(entry):
                    found.append(int(entry.name))
            except (OSError, ValueError, IndexError):
                continue
        return sorted(found)

    def _is_ours(self, entry):
        """Its own arguments name the instance, or those of the process that started it."""
        if self.server.instance.encode() in (entry / "cmdline").read_bytes():
            return True
        parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
        return self.server.instance.encode() in Path(f"/proc/{parent}/cmdline").read_bytes()

    @property
    def holder(self):
        return until(lambda: self.processes("mt-gateway"), "there is a holder")[0]

    @property
    def uplink(self):
        return until(lambda: self.processes("pas"), "there is a pasta")[0]

    def namespace(self):
        """A path to the gateway's network namespace: the holder's fd that is not the host's."""
        outside = os.stat(f"/proc/{self.holder}/ns/net").st_ino
        for fd in Path(f"/proc/{self.uplink}/fd").iterdir():
            try:
                if os.readlink(fd).startswith("net:") and os.stat(fd).st_ino != outside:
                    return str(fd)
            except OSError:
                continue
        raise AssertionError("pasta has no other namespace")

    def run(self, *command):
        done = subprocess.run(["nsenter", f"--net={self.namespace()}", "--", *command], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout
