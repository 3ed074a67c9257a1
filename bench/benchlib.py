# SPDX-License-Identifier: Apache-2.0
"""What the benches share: the server's API, tools to compare with, and the spawner that times them."""
import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGES = "/var/cache/maitento/images"
PAYLOAD = ["-l", "-c", "/bin/true"]
NAMESPACE = "bench"
# As spawner.c's.
ENVIRONMENT = ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/etc/skel", "USER=root", "LANG=C.UTF-8"]


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=90)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(90)
        self.sock.connect(self.path)


class Server:
    def __init__(self, url, key):
        self.port = None
        if url.startswith("unix:"):
            self.http = Unix(url[5:])
        else:
            u = urllib.parse.urlsplit(url)
            self.port = u.port
            self.http = http.client.HTTPConnection(u.hostname, u.port, timeout=90)
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = "Bearer " + key

    def ask(self, method, path, body=None, ok=(200, 201)):
        self.http.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        reply = self.http.getresponse()
        text = reply.read()
        if reply.status not in ok:
            sys.exit("bench: %s %s: %d %s" % (method, path, reply.status, text.decode("utf-8", "replace")))
        return json.loads(text) if text else None

    def deploy(self, capsules):
        """capsules: name -> text"""
        self.ask("POST", "/v1/namespaces", {"name": NAMESPACE}, ok=(201, 409))
        self.ask("POST", "/v1/namespaces/%s/deploy" % NAMESPACE,
                 {"files": [{"path": "capsules/%s.mtr" % name, "content": text} for name, text in capsules.items()]})

    def start(self, capsule):
        """A run that is ready; its id."""
        run = self.ask("POST", "/v1/namespaces/%s/capsules/%s/runs" % (NAMESPACE, capsule), {})["id"]
        found = self.ask("GET", "/v1/capsule-runs/%s?wait=60&until=ready" % run)
        if found["status"] != "Running":
            sys.exit("bench: the run is not ready: %s" % found)
        return run

    def exec(self, run, command, arguments=()):
        """A command that has ended."""
        return self.ask("POST", "/v1/capsule-runs/%s/commands?wait=60" % run,
                        {"command": command, "arguments": list(arguments)})

    def terminate(self, run):
        self.ask("POST", "/v1/capsule-runs/%s/terminate" % run)


def server_of_environment():
    """The server that with-server gives, or None."""
    url = os.environ.get("MAITENTO_URL")
    return Server(url, os.environ.get("MAITENTO_API_KEY")) if url else None


def image_root(images=IMAGES, name="slim"):
    with open("%s/names/%s" % (images, name)) as f:
        return "%s/%s/root" % (images, f.read().strip())


def bubblewrap(root):
    return [shutil.which("bwrap"), "--unshare-all", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev"]


def crun_bundle(folder, root, command):
    """A bundle as `crun spec` writes it, with that root and command and no terminal."""
    os.makedirs(folder)
    subprocess.run(["crun", "spec"], cwd=folder, check=True)
    with open(folder + "/config.json") as f:
        spec = json.load(f)
    spec["root"] = {"path": root, "readonly": True}
    spec["process"]["terminal"] = False
    spec["process"]["args"] = command
    spec["process"]["env"] = ENVIRONMENT
    spec["linux"]["cgroupsPath"] = "/maitento-bench-%s" % os.path.basename(folder)
    with open(folder + "/config.json", "w") as f:
        json.dump(spec, f)


def crun(work):
    return [shutil.which("crun"), "--root", work + "/state", "--cgroup-manager=cgroupfs"]


class Spawner:
    """Times starts. In a mount namespace of its own, where the cgroup 2 mount beside version 1 is hidden:
    crun refuses both. before: a command to run there first. whats: (name, what) as spawner.c takes them."""

    def __init__(self, whats, work, before=None):
        program = work + "/spawner"
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        subprocess.run([compiler, "-O2", "-static", "-o", program, HERE + "/spawner.c"], check=True)
        whats = list(whats)
        self.names = [name for name, _ in whats]
        inside = "umount -l /sys/fs/cgroup/unified 2>/dev/null; %s exec \"$@\"" % (before + ";" if before else "")
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", inside,
                                         "sh", program] + [name + "=" + what for name, what in whats],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in list(self.names):
            status = self.run(name)[1]
            if status:
                print("%s cannot run here (status %d): left out" % (name, status), file=sys.stderr)
                self.names.remove(name)

    def run(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        us, status = self.process.stdout.readline().split()
        return float(us), int(status)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def p95(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def table(times, base):
    """Medians, and the overhead over base."""
    least = statistics.median(times[base])
    print("%-12s %9s %9s %12s" % ("", "median ms", "p95 ms", "overhead ms"))
    for name, values in sorted(times.items(), key=lambda i: statistics.median(i[1])):
        over = statistics.median(values) - least
        print("%-12s %9.2f %9.2f %12s" % (name, statistics.median(values) / 1000, p95(values) / 1000,
                                          "%.2f" % (over / 1000) if name != base else "-"))


def arguments(doc, rounds, pause=20, more=lambda parser: None):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=rounds)
    p.add_argument("--pause", type=float, default=pause, help="milliseconds between two: what came before is then done")
    p.add_argument("--images", default=IMAGES)
    p.add_argument("--json", help="writes the figures there, too")
    more(p)
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: chroot, mounts and crun need root")
    return args


def finish(args, result):
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, indent=2)
    return 0
