# SPDX-License-Identifier: Apache-2.0
"""Known ways out of a sandbox, one a test, named by their class and the CVE that it stands for. Each
is tried from inside as the default user, an extra user and the capsule's root, and has to fail for
the right reason: an errno that merely happens to come first would hide a hole behind it. What is
tried are startup commands; what they found goes to a file of a VFS.
"""
import ctypes
import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import mtserver
import pytest
from conftest import Ref

WORK = {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}
USERS = ("maitento", "sandbox", "root")
PEOPLE = ("maitento", "sandbox")  # without capabilities

# What every probe begins with. sc(): a raw system call, its result or the name of its errno.
PRELUDE = r'''
import ctypes, errno, fcntl, json, os, resource, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
out = {}

def sc(number, *arguments):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]

def tried(f, *arguments):
    try:
        return repr(f(*arguments))
    except OSError as e:
        return errno.errorcode[e.errno]

def read(path, n=4096):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, n).decode(errors="replace")
    finally:
        os.close(fd)

def put(path, text=b"1"):
    fd = os.open(path, os.O_WRONLY)
    try:
        return os.write(fd, text)
    finally:
        os.close(fd)

def apart(f):
    """f() in a process of its own, for what cannot be taken back."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(w, json.dumps(f()).encode())
        finally:
            os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else "died"

class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

class pair(ctypes.Structure):
    _fields_ = [("cur", ctypes.c_ulong), ("max", ctypes.c_ulong)]
'''


@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


def inside(code, user, name):
    code = (PRELUDE + code + f"\nwith open('/tmp/{name}', 'w') as f: f.write(json.dumps(out))\n"
            f"os.chmod('/tmp/{name}', 0o644)\n")
    return {"command": "python3", "arguments": ["-c", code], "runAsUser": user}


def deploy_probe(api, ns, code, users, name, **properties):
    startup = [inside(code, user, f"{name}.{user}") for user in users]
    startup += [{"command": f"cp /tmp/{name}.{user} /mnt/work/"} for user in users]
    api.capsule(ns, startup, name, **{"autoTerminate": True, "users": [{"name": "sandbox"}], **WORK, **properties})


def probe(api, ns, code, users=USERS, name="probe", seconds=60, **properties):
    """{user: what the code put into `out`}"""
    deploy_probe(api, ns, code, users, name, **properties)
    run = api.run(ns, name, seconds=seconds)
    assert run["status"] == "Finished", (run["endReason"], run["failureDetails"][-800:])
    return {user: json.loads(api.read(ns, "work", f"/{name}.{user}")) for user in users}


def all_are(found, expected):
    for user, results in found.items():
        wrong = {k: v for k, v in results.items() if v not in (expected if isinstance(expected, tuple) else (expected,))}
        assert not wrong and results, (user, wrong)


def host_call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    r = libc.syscall(ctypes.c_long(number), *arguments)
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]


# ---- the kernel's doors ----

def test_namespaces_cannot_be_made_or_joined_cve_2022_0185(api, work):
    found = probe(api, work, r'''
for name, flag in dict(user=0x10000000, mnt=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000,
                       uts=0x4000000, cgroup=0x2000000, time=0x80).items():
    out["unshare " + name] = sc(272, flag)
    out["setns " + name] = sc(308, os.open("/proc/self/ns/" + name, os.O_RDONLY), flag)
    if name != "time":  # for clone that bit is something else
        out["clone " + name] = sc(56, flag | 17, 0, 0, 0, 0)
        out["clone, high half, " + name] = sc(56, (1 << 32) | flag | 17, 0, 0, 0, 0)
''')
    all_are(found, "EPERM")
    found = probe(api, work, '''
out["clone3"] = sc(435, ctypes.byref((ctypes.c_ulong * 11)(0x10000000)), 88)
out["x32"] = sc(0x40000000 + 272, 0x10000000)
''')
    all_are(found, "ENOSYS")
    found = probe(api, work, 'out["left"] = read("/proc/sys/user/max_user_namespaces").strip()')
    all_are(found, "0")


def test_nothing_can_be_mounted_cve_2022_0185(api, work):
    found = probe(api, work, r'''
os.makedirs("/tmp/m%d" % os.getuid(), exist_ok=True)
at = b"/tmp/m%d" % os.getuid()
out["mount proc"] = sc(165, b"proc", at, b"proc", 0, 0)
out["bind /"] = sc(165, b"/", at, 0, 4096, 0)
out["remount /proc/sys"] = sc(165, 0, b"/proc/sys", 0, 32 | 4096, 0)
out["umount /proc/sys"] = sc(166, b"/proc/sys", 2)
out["pivot_root"] = sc(155, b".", b".")
out["fsopen"] = sc(430, b"ext4", 0)
out["fsconfig"] = sc(431, 0, 0, 0, 0, 0)
out["fspick"] = sc(433, -100, b"/", 0)
out["open_tree"] = sc(428, -100, b"/", 1)
out["move_mount"] = sc(429, -100, b"/", -100, at, 0)
out["mount_setattr"] = sc(442, -100, b"/", 0, ctypes.byref((ctypes.c_ulong * 4)()), 32)
out["quotactl"] = sc(179, 0, 0, 0, 0)
out["swapon"] = sc(167, b"/tmp/x", 0)
''')
    all_are(found, "EPERM")


@pytest.mark.parametrize("name,number", [
    ("bpf_cve_2021_3490", 321), ("userfaultfd", 323), ("perf_event_open_cve_2013_2094", 298),
    ("io_uring_setup_cve_2022_29582", 425), ("io_uring_enter", 426), ("io_uring_register", 427),
    ("keyctl_cve_2016_0728", 250), ("add_key", 248), ("request_key", 249), ("init_module", 175),
    ("finit_module", 313), ("kexec_load", 246), ("kexec_file_load", 320), ("reboot", 169), ("acct", 163),
    ("syslog", 103), ("settimeofday", 164), ("clock_settime", 227), ("iopl", 172), ("ioperm", 173),
    ("fanotify_init", 300), ("pidfd_getfd", 438), ("move_pages", 279), ("vhangup", 153),
    ("sethostname", 170)])
def test_call_is_refused_by_the_filter(api, work, name, number):
    # With arguments that the kernel itself would answer with another errno, or with success.
    all_are(probe(api, work, f'out["{name}"] = sc({number}, 0, 0, 0, 0, 0, 0)'), "EPERM")


def test_file_handles_do_not_open_cve_2014_3519(api, work):
    found = probe(api, work, r'''
handle = ctypes.create_string_buffer(struct.pack("<II", 8, 1) + struct.pack("<II", 2, 0) + bytes(120))
out["root inode"] = sc(304, os.open("/", os.O_RDONLY), handle, os.O_RDONLY)
out["of the vfs"] = sc(304, os.open("/tmp", os.O_RDONLY), handle, os.O_RDONLY)
''')
    all_are(found, "EPERM")


def test_a_tracer_gains_no_call_cve_2022_30594(api, work):
    found = probe(api, work, r'''
def child_at_a_call():
    pid = os.fork()
    if pid == 0:
        libc.ptrace(0, 0, 0, 0)                   # TRACEME
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0 if libc.syscall(39) > 0 else ctypes.get_errno())  # getpid
    os.waitpid(pid, 0)
    return pid

class regs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulong) for n in
                "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs gs ds es fsb gsb".split()]

libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = child_at_a_call()
out["suspend seccomp"] = errno.errorcode[ctypes.get_errno()] if libc.ptrace(0x4200, pid, None, 1 << 21) < 0 else "set"
# the call is exchanged for unshare(CLONE_NEWUSER) after the tracer's stop
changed = "not reached"
while True:
    libc.ptrace(24, pid, None, None)              # SYSCALL: to the next stop
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) or os.WIFSIGNALED(status):
        break
    r = regs()
    libc.ptrace(12, pid, None, ctypes.addressof(r))
    if r.orig_rax == 39 and changed == "not reached":
        r.orig_rax, r.rdi = 272, 0x10000000
        libc.ptrace(13, pid, None, ctypes.addressof(r))
        changed = "asked"
    elif changed == "asked":
        changed = errno.errorcode.get(-ctypes.c_long(r.rax).value, "DONE")
out["exchanged call"] = changed
''')
    all_are(found, "EPERM")


def test_sockets_are_of_the_plain_families_cve_2017_7308_cve_2017_6074(api, work):
    found = probe(api, work, r'''
for name, family, kind, protocol in (("packet", 17, 3, 768), ("vsock", 40, 1, 0), ("alg", 38, 5, 0), ("key", 15, 3, 2),
                                     ("bluetooth", 31, 3, 1), ("can", 29, 3, 1), ("rds", 21, 5, 0), ("tipc", 30, 1, 0),
                                     ("xdp", 44, 3, 0), ("smc", 43, 1, 0), ("x25", 9, 5, 0)):
    out[name] = sc(41, family, kind, protocol)
''')
    all_are(found, "EAFNOSUPPORT")
    found = probe(api, work, r'''
for family in (2, 10):
    for name, kind, protocol in (("sctp", 1, 132), ("dccp", 6, 33), ("dccp by type", 6, 0), ("sctp by type", 5, 0),
                                 ("l2tp", 2, 115)):
        out["%s %d" % (name, family)] = sc(41, family, kind, protocol)
for protocol in list(range(1, 23)):
    out["netlink %d" % protocol] = sc(41, 16, 3, protocol)
''')
    all_are(found, ("EPROTONOSUPPORT", "ESOCKTNOSUPPORT"))
    found = probe(api, work, 'out["raw"] = sc(41, 2, 3, 1)')
    all_are(found, "EPERM")


# ---- the host's files ----

def test_pid_1_is_not_to_be_touched(api, work):
    found = probe(api, work, r'''
there, here = ctypes.create_string_buffer(16), iovec()
here.base, here.len = ctypes.addressof(there), 16
far = iovec(0x400000, 16)
out["attach"] = sc(101, 16, 1, 0, 0)
out["seize"] = sc(101, 0x4206, 1, 0, 0)
out["read memory"] = sc(310, 1, ctypes.byref(here), 1, ctypes.byref(far), 1, 0)
out["write memory"] = sc(311, 1, ctypes.byref(here), 1, ctypes.byref(far), 1, 0)
out["kcmp"] = sc(312, 1, os.getpid(), 0, 0, 0)
out["take its fd"] = sc(438, sc(434, 1, 0), 3, 0)
out["set its limits"] = sc(302, 1, 7, ctypes.byref(pair(0, 0)), 0)
''')
    all_are(found, "EPERM")
    found = probe(api, work, r'''
for name in ("mem", "environ", "maps", "exe", "root/etc/shadow", "cwd/x", "fd/3", "map_files", "stack", "ns/user", "ns/mnt"):
    out[name] = tried(os.listdir if name == "map_files" else read, "/proc/1/" + name)
''')
    all_are(found, "EACCES")
    found = probe(api, work, r'''
for name in range(1, 65):
    if name not in (32, 33):
        sc(62, 1, name)
time.sleep(0.05)
out["lives"] = read("/proc/1/comm")
''')
    all_are(found, "mt-init\n")


def test_program_files_of_the_host_cve_2019_5736(api, work):
    programs = [Path(mtserver.program(name)) for name in ("mt-init", "mt-session", "mt-runner", "mt")]
    programs.append(mtserver.build_dir() / "src/cli/mt-capsule")
    before = [(p.read_bytes(), p.stat().st_mtime_ns) for p in programs]
    found = probe(api, work, r'''
for name in ("/proc/1/exe", "/proc/%d/exe" % os.getppid()):
    out[name] = tried(os.open, name, os.O_WRONLY)
''')
    all_are(found, ("EACCES", "ETXTBSY"))
    found = probe(api, work, r'''
# an overwritten interpreter that leads back to the program that executes it
with open("/tmp/again%d" % os.getuid(), "w") as f: f.write("#!/proc/self/exe\n")
os.chmod(f.name, 0o755)
def go():
    try: os.execv(f.name, [f.name])
    except OSError as e: return errno.errorcode[e.errno]
out["#!/proc/self/exe"] = apart(go)
''')
    all_are(found, ("ELOOP", "ENOEXEC", "died", "EACCES"))
    # mt is shared by all capsules: by its name, by what runs from it, by its mount, by its folder.
    found = probe(api, work, r'''
import subprocess, hashlib
mt = "/usr/local/bin/mt"
whole = open(mt, "rb").read()
waits = subprocess.Popen([mt, "capsule-run-await", "x" * 60], stderr=-3)
os.kill(waits.pid, signal.SIGSTOP)
fd = os.open(mt, os.O_PATH)
ro = os.open(mt, os.O_RDONLY)
for name in (mt, "/proc/%d/exe" % waits.pid, "/proc/%d/map_files/../exe" % waits.pid, "/proc/self/fd/%d" % fd,
             "/proc/self/fd/%d" % ro, "/proc/self/root" + mt):
    out[name] = tried(os.open, name, os.O_WRONLY)
out["truncate"] = tried(os.truncate, mt, 0)
out["chmod"] = tried(os.chmod, mt, 0o777)
out["chown"] = tried(os.chown, mt, os.getuid(), os.getgid())
out["setxattr"] = tried(os.setxattr, mt, "user.x", b"x")
out["utime"] = tried(os.utime, mt)
out["fchmod"] = tried(os.fchmod, ro, 0o777)
waits.kill(); waits.wait()
import mmap
try:
    mmap.mmap(ro, 0, mmap.MAP_SHARED, mmap.PROT_WRITE | mmap.PROT_READ)[0:1] = b"x"
    out["mmap"] = "written"
except OSError as e:
    out["mmap"] = errno.errorcode[e.errno]
assert open(mt, "rb").read() == whole
''')
    all_are(found, ("EROFS", "EACCES", "EPERM", "ETXTBSY", "ENOENT"))
    found = probe(api, work, r'''
mt = "/usr/local/bin/mt"
out["unlink"] = tried(os.unlink, mt)
out["rename"] = tried(os.rename, mt, "/tmp/mt%d" % os.getuid())
out["replace"] = tried(os.rename, "/usr/bin/true", mt)
''')
    all_are(found, ("EBUSY", "EACCES", "EXDEV", "EPERM"))
    assert before == [(p.read_bytes(), p.stat().st_mtime_ns) for p in programs]


def test_the_socket_of_the_sign_in(api, work):
    found = probe(api, work, r'''
at = "/run/maitento"
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(at + "/api.sock")
for name, f, *arguments in (("unlink", os.unlink, at + "/api.sock"), ("rename", os.rename, at + "/api.sock", at + "/x"),
                            ("chmod", os.chmod, at + "/api.sock", 0o666), ("mkdir", os.mkdir, at + "/x"),
                            ("chown", os.chown, at + "/api.sock", os.getuid(), os.getgid()),
                            ("link", os.link, at + "/api.sock", at + "/y"), ("bind", socket.socket(socket.AF_UNIX).bind, at + "/z"),
                            ("chmod folder", os.chmod, at, 0o777)):
    out[name] = tried(f, *arguments)
''')
    all_are(found, ("EROFS", "EACCES", "EPERM"))
    found = probe(api, work, r'''
at = "/run/maitento"
out["folder"] = tried(os.rmdir, at)
out["moved"] = tried(os.rename, at, "/tmp/m%d" % os.getuid())
out["out of it"] = tried(os.link, at + "/api.sock", "/tmp/l%d" % os.getuid())
''')
    all_are(found, ("EBUSY", "EACCES", "EXDEV", "EPERM"))
    found = probe(api, work, r'''
s = socket.socket(socket.AF_UNIX)
out["connect"] = tried(s.connect, "/run/maitento/api.sock")
out["mounts"] = [l.split()[3:5] + l.split()[-3:-1] for l in open("/proc/self/mountinfo") if "maitento" in l.split()[4] or "bin/mt" in l]
''')
    for user in USERS:
        assert found[user]["connect"] == ("EACCES" if user == "sandbox" else "None"), found
        # Nothing there names a place on the host.
        assert found[user]["mounts"] == [["/mt", "/usr/local/bin/mt", "tmpfs", "tmpfs"],
                                         ["/", "/run/maitento", "tmpfs", "tmpfs"]], found[user]


def test_descriptors_and_working_folder_cve_2024_21626_cve_2016_9962(api, work):
    found = probe(api, work, r'''
mine = os.open("/proc/self/fd", os.O_RDONLY)
fds = [int(n) for n in os.listdir(mine)]
out["fds"] = sorted(n for n in fds if n not in (mine,) and tried(os.fstat, n)[0] == "o")
out["targets"] = [os.readlink("/proc/self/fd/%d" % n).split(":")[0] for n in (0, 1, 2)]
out["cwd"] = os.getcwd() == os.environ["HOME"]
out["by number"] = [n for n in range(3, 40) if n != mine and tried(os.listdir, "/proc/self/fd/%d" % n)[0] == "["]
out["of others"] = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (os.getpid(), os.getppid())
                    and any(os.path.isdir("/proc/%s/fd/%d" % (p, n)) for n in range(64))]
''')
    for user in USERS:
        assert found[user] == {"fds": [0, 1, 2], "targets": ["/dev/null", "/dev/null", "pipe"], "cwd": True,
                               "by number": [], "of others": []}, (user, found[user])


def test_control_groups_are_read_only_cve_2022_0492(api, work):
    found = probe(api, work, r'''
files = [os.path.join(d, f) for d, _, fs in os.walk("/sys/fs/cgroup") for f in fs]
assert files
for f in files:
    r = tried(put, f)
    if r not in ("EROFS", "EACCES"): out[f] = r
out["release_agent"] = [f for f in files if f.endswith("release_agent")]
out["made"] = [tried(os.mkdir, os.path.join(d, "x")) for d, _, _ in os.walk("/sys/fs/cgroup")][-1]
out["own place"] = sorted({l.rstrip("\n").rsplit("/", 1)[0].split(":")[-1] for l in open("/proc/self/cgroup")})
''')
    for user in USERS:
        assert found[user]["release_agent"] == [] and found[user]["made"] in ("EROFS", "EACCES"), found[user]
        assert set(found[user]) == {"release_agent", "made", "own place"}, (user, found[user])
        assert found[user]["own place"] == [""], (user, found[user])


def test_kernel_settings_are_read_only_cve_2015_1318(api, work):
    found = probe(api, work, r'''
for name in ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/randomize_va_space", "vm/drop_caches",
             "vm/overcommit_memory", "user/max_user_namespaces", "fs/suid_dumpable", "net/ipv4/ip_forward",
             "kernel/sysrq", "kernel/ns_last_pid", "kernel/unprivileged_bpf_disabled"):
    path = "/proc/sys/" + name
    if os.path.exists(path): out[name] = tried(put, path)
''')
    all_are(found, ("EACCES", "EROFS"))
    found = probe(api, work, r'''
out["sysrq"] = tried(put, "/proc/sysrq-trigger", b"b")
out["kcore"] = tried(read, "/proc/kcore")
out["mem"] = tried(read, "/dev/mem")
for name in ("keys", "kmsg", "kallsyms", "timer_list", "interrupts"): out[name] = tried(read, "/proc/" + name)
''')
    all_are(found, ("ENOENT", "''", "EACCES", "EROFS"))


def test_core_dumps_reach_no_program_of_the_host_cve_2015_1318(api, work):
    # A kernel runs a piped core_pattern unless the limit is exactly 1.
    found = probe(api, work, r'''
before = resource.getrlimit(resource.RLIMIT_CORE)
for want in ((0, 0), (0, 1), (1 << 20, 1 << 20)):
    sc(160, 4, ctypes.byref(pair(*want)))
    sc(302, 0, 4, ctypes.byref(pair(*want)), 0)
out["limit"] = [before, resource.getrlimit(resource.RLIMIT_CORE)]
os.chdir("/tmp")
def crash(): os.kill(os.getpid(), signal.SIGSEGV)
apart(crash)
out["files"] = [f for f in os.listdir("/tmp") if "core" in f]
''')
    for user in USERS:
        assert found[user] == {"limit": [[1, 1], [1, 1]], "files": []}, (user, found[user])


def test_devices_cannot_be_made(api, work):
    found = probe(api, work, r'''
for name, mode, number in (("disk", 0o60660, 0x800), ("mem", 0o20660, 0x101), ("kmsg", 0o20660, 0x10b), ("null", 0o20666, 0x103)):
    for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
        out[name + " " + folder] = sc(133, ("%s/%s.%d" % (folder, name, os.getuid())).encode(), mode, number)
''')
    all_are(found, "EPERM")
    found = probe(api, work, r'''
# A whiteout may be made by anybody; it leads nowhere.
path = "/dev/shm/w%d" % os.getuid()
sc(133, path.encode(), 0o20666, 0)
out["opened"] = tried(read, path)
''')
    all_are(found, ("ENXIO", "EACCES"))
    found = probe(api, work, 'out["dev"] = sorted(os.listdir("/dev"))')
    all_are(found, ["fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
                    "urandom", "zero"])


def test_setuid_programs_give_nothing(api, work):
    api.capsule(work, [
        {"command": "cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && cp /usr/bin/id /mnt/work/id && chmod 6755 /mnt/work/id",
         "runAsUser": "root"},
        {"command": "(/tmp/id; /mnt/work/id) > /mnt/work/maitento"},
        {"command": "/tmp/id > /tmp/out; chmod 644 /tmp/out", "runAsUser": "sandbox"},
        {"command": "cp /tmp/out /mnt/work/sandbox"}], "suid", autoTerminate=True, users=[{"name": "sandbox"}], **WORK)
    run = api.run(work, "suid")
    assert run["status"] == "Finished", run
    for name in PEOPLE:
        text = api.read(work, "work", f"/{name}").decode()
        assert "uid=" in text and "euid" not in text and "egid" not in text and "root" not in text, text
    found = probe(api, work, r'''
out["status"] = [l.split()[1] for l in open("/proc/self/status") if l.startswith("NoNewPrivs")]
out["without nosuid"] = [l.split()[4] for l in open("/proc/self/mountinfo") if "nosuid" not in l.split()[5]]
out["su"] = os.system("su -c true root </dev/null >/dev/null 2>&1") == 0
''')
    for user in USERS:
        assert found[user] == {"status": ["1"], "without nosuid": [], "su": user == "root"}, (user, found[user])


def test_chroot_leads_nowhere(api, work):
    found = probe(api, work, r'''
def climb():
    jail, root = "/tmp/jail%d" % os.getuid(), os.open("/", os.O_RDONLY)
    os.makedirs(jail, exist_ok=True)
    first = sc(161, jail.encode())
    os.fchdir(root)
    for _ in range(64): os.chdir("..")
    sc(161, b".")
    return [first, sorted(os.listdir("/")), os.path.exists("/oldroot"), os.stat("/..").st_ino == os.stat("/").st_ino]
out["climb"] = apart(climb)
out["home"] = sorted(os.listdir("/"))
''')
    for user in USERS:
        first, names, old, same = found[user]["climb"]
        assert (first, old, same) == (0 if user == "root" else "EPERM", False, True)
        assert names == found[user]["home"]


def test_no_file_of_the_host_is_in_sight(api, work, server):
    folder = Path(tempfile.mkdtemp(prefix="mt-canary-"))
    try:
        (folder / "canary").write_text("canary")
        folder.chmod(0o755)
        found = probe(api, work, f'folder, state = {str(folder)!r}, {str(server.dir)!r}\n' + r'''
out["canary"] = os.path.exists(folder) or os.path.exists(state)
types = {}
for line in open("/proc/self/mountinfo"):
    left, right = line.split(" - ")
    types.setdefault(right.split()[0], []).append(left.split()[4])
out["disks"] = sorted(p for t, ps in types.items() if t not in ("overlay", "tmpfs", "proc", "devpts", "mqueue", "cgroup", "cgroup2") for p in ps)
out["root"] = types["overlay"]
''')
        for user in USERS:
            assert found[user] == {"canary": False, "disks": ["/mnt/work"], "root": ["/"]}, (user, found[user])
    finally:
        shutil.rmtree(folder)


def test_files_of_host_ids_in_a_file_system_stay_the_hosts(api, work, server):
    """What root of the host, or a hostile server by a hard link, has put there."""
    vfs = api.call("GET", f"/v1/namespaces/{work}/vfs/work")["id"]
    files = server.dir / "state/vfs" / vfs / "files"
    (files / "hosts").write_text("host secret")
    (files / "hosts").chmod(0o600)
    shutil.copy("/usr/bin/id", files / "id")
    (files / "id").chmod(0o6755)
    found = probe(api, work, r'''
os.chdir("/mnt/work") if os.getuid() != 1001 else os.chdir("/tmp")
if os.getuid() != 1001:
    out["read"] = tried(read, "hosts")
    out["write"] = tried(put, "hosts")
    out["chmod"] = tried(os.chmod, "hosts", 0o777)
    out["chown"] = tried(os.chown, "hosts", 0, 0)
    out["runs as"] = repr("euid" in os.popen("./id 2>/dev/null").read())
else:
    out["list"] = tried(os.listdir, "/mnt/work")
''')
    assert found["sandbox"] == {"list": "EACCES"}
    for user in ("maitento", "root"):
        assert found[user] == {"read": "EACCES", "write": "EACCES", "chmod": found[user]["chmod"], "chown": "EPERM",
                               "runs as": "False"}, found[user]
        assert found[user]["chmod"] in ("EOVERFLOW", "EPERM")
    assert (files / "hosts").read_text() == "host secret" and (files / "hosts").stat().st_mode & 0o777 == 0o600


def test_ids_stay_in_their_block(api, work, server):
    found = probe(api, work, r'''
out["beyond"] = [sc(117, n, n, n) for n in (65536, 0x70000000, 61234)]
if os.getuid() == 0:
    for n in (0, 1, 1000, 1001, 65535):
        path = "/mnt/work/u%d" % n
        open(path, "w").close()
        os.chown(path, n, n)
''')
    assert found["root"]["beyond"][:2] == ["EINVAL", "EINVAL"] and found["maitento"]["beyond"][0] in ("EINVAL", "EPERM")
    vfs = api.call("GET", f"/v1/namespaces/{work}/vfs/work")["id"]
    service, first = mtserver.SERVICE_ID, 0x6fff0000
    for path in (server.dir / "state/vfs" / vfs / "files").iterdir():
        st = path.stat()
        assert st.st_uid == service or first <= st.st_uid < first + 65536, (path.name, st.st_uid)
        assert st.st_gid == service or first <= st.st_gid < first + 65536, (path.name, st.st_gid)


# ---- the host's sockets and terminals ----

def test_sockets_of_the_host_cve_2020_15257(api, work, server):
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0mt-escape-test")
    abstract.listen(1)
    tcp = socket.create_server(("127.0.0.1", 0))
    try:
        found = probe(api, work, f"port, apis = {tcp.getsockname()[1]}, {server.socket!r}\n" + r'''
def go(family, address):
    s = socket.socket(family)
    s.settimeout(2)
    s.connect(address)
    return "connected"
out["abstract"] = tried(go, socket.AF_UNIX, "\0mt-escape-test")
out["loopback"] = tried(go, socket.AF_INET, ("127.0.0.1", port))
out["seen"] = repr("mt-escape-test" in open("/proc/net/unix").read())
out["run"] = repr([os.path.join(d, f) for d, _, fs in os.walk("/run") for f in fs if f.endswith((".sock", "socket"))])
out["api"] = tried(go, socket.AF_UNIX, apis)
out["links"] = repr([l.split(":")[0].strip() for l in open("/proc/net/dev") if ":" in l])
''')
        for user in USERS:
            assert found[user] == {"abstract": "ECONNREFUSED", "loopback": "ECONNREFUSED", "seen": "False",
                                   "run": "['/run/maitento/api.sock']",  # its own sign-in's
                                   "api": "ENOENT", "links": "['lo', 'eth0']"}, (user, found[user])
        abstract.settimeout(0)
        with pytest.raises(BlockingIOError):
            abstract.accept()
    finally:
        abstract.close()
        tcp.close()


def test_terminals_cve_2017_5226_cve_2023_1523_cve_2017_2636(api, work):
    found = probe(api, work, r'''
_, tty = os.openpty()
out["TIOCSTI"] = sc(16, tty, 0x5412, b"x")
out["TIOCSTI, high half"] = sc(16, tty, (1 << 32) | 0x5412, b"x")
out["TIOCLINUX"] = sc(16, tty, 0x541c, b"\x02")
for n in range(31): out["TIOCSETD %d" % n] = sc(16, tty, 0x5423, ctypes.byref(ctypes.c_int(n)))
''')
    all_are(found, "EPERM")


def test_other_runs_are_out_of_reach(api, work):
    """Processes, files and sockets of a run that lives beside."""
    api.capsule(work, [{"command": "python3", "wait": False, "arguments": ["-c", (
        "import socket,time\ns=socket.socket(socket.AF_UNIX); s.bind('\\0of-another-run'); s.listen(1)\n"
        "t=socket.create_server(('127.0.0.1', 7777)); open('/tmp/of-another-run','w'); time.sleep(300)")]}], "other",
        users=[{"name": "sandbox"}])
    other = api.get(api.start(work, "other"), until="ready")
    try:
        found = probe(api, work, r'''
def go(family, address):
    s = socket.socket(family); s.settimeout(2); s.connect(address)
out["abstract"] = tried(go, socket.AF_UNIX, "\0of-another-run")
out["port"] = tried(go, socket.AF_INET, ("127.0.0.1", 7777))
out["file"] = tried(os.stat, "/tmp/of-another-run")
out["processes"] = repr(max(int(p) for p in os.listdir("/proc") if p.isdigit()) < 200)
''')
        for user in USERS:
            assert found[user] == {"abstract": "ECONNREFUSED", "port": "ECONNREFUSED", "file": "ENOENT",
                                   "processes": "True"}, (user, found[user])
    finally:
        api.terminate(other)


# ---- what belongs to all ----

HOG = r'''
def count(f, most):
    n = 0
    while n < most:
        r = f()
        if isinstance(r, str): return n
        n += 1
    return n
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
class attr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in "flags max size now a b c d".split()]
names = iter(range(100000))
def queue():
    a = attr(0, 10, 8192)
    return sc(240, b"q%d" % next(names), os.O_RDWR | os.O_CREAT, 0o600, ctypes.byref(a))
def pty():
    try: return os.open("/dev/ptmx", os.O_RDWR)
    except OSError: return "full"
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
info = (ctypes.c_int * 32)(40, 0, -1)
out["inotify"] = count(lambda: sc(294, 0), 5000)
out["queues"] = count(queue, 5000)
out["ptys"] = count(pty, 5000)
out["signals"] = count(lambda: sc(129, os.getpid(), 40, info), 300000)
out["aio"] = sc(206, 1024, ctypes.byref(ctypes.c_ulong()))
'''


def test_allowances_of_a_user_are_each_runs_own(api, work):
    """inotify instances, message queues, terminals, pending signals: used up by one run, they are
    there for the host's root and for the next run."""
    deploy_probe(api, work, HOG + "json.dump(out, open('/tmp/hog', 'w')); os.system('cp /tmp/hog /mnt/work/hog'); time.sleep(300)",
                 ("maitento",), "hog")
    hog = api.start(work, "hog")
    try:
        deadline = time.monotonic() + 60
        while True:
            status, _, data = api.raw("GET", api.files(work, "work", "/hog"))
            if status == 200 and data:
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        taken = json.loads(data)
        assert taken["inotify"] > 0 and taken["queues"] > 0 and taken["signals"] > 1000, taken
        assert 0 < taken["ptys"] <= 256 and taken["aio"] == "ENOSYS", taken
        for what in (host_call(294, 0), host_call(222, 0, None, ctypes.byref(ctypes.c_int()))):  # inotify, a timer
            assert not isinstance(what, str), what
        master, slave = os.openpty()
        os.close(master)
        os.close(slave)
        beside = probe(api, work, HOG, users=("maitento",), name="beside")["maitento"]
        for name in ("inotify", "queues", "signals", "ptys"):
            assert beside[name] >= taken[name] - 2, (name, beside, taken)
    finally:
        api.terminate(hog)


def test_memory_has_no_way_around_its_limit(api, work):
    ways = {
        "shm": "head -c 300M /dev/zero > /dev/shm/x",
        "memfd": "python3 -c 'import os\nf=os.memfd_create(\"x\")\nfor i in range(300): os.write(f, bytes(1<<20))'",
        "pipes": ("python3 -c 'import os,fcntl\nfor i in range(400):\n r,w=os.pipe()\n try: fcntl.fcntl(w,1031,1<<20)\n"
                  " except OSError: pass\n os.set_blocking(w,False)\n os.write(w,bytes(1<<20))'"),
        "unix sockets": ("python3 -c 'import socket\nk=[]\nfor i in range(450):\n a,b=socket.socketpair(); a.setsockopt(1,7,1<<20);"
                         " a.setblocking(False); k+=[a,b]\n try:\n  while 1: a.send(bytes(60000))\n except BlockingIOError: pass'"),
        "tcp": ("python3 -c 'import socket\nl=socket.create_server((\"127.0.0.1\",0)); k=[]; n=0\nfor i in range(60):\n a=socket.socket();"
                " a.setsockopt(1,7,4<<20); a.connect(l.getsockname()); b,_=l.accept(); b.setsockopt(1,8,4<<20); a.setblocking(False);"
                " k+=[a,b]\n try:\n  while 1: n+=a.send(bytes(65536))\n except BlockingIOError: pass\n"
                "open(\"/mnt/work/tcp\",\"w\").write(str(n))'"),
        "files": "python3 -c 'for i in range(300000): open(\"/dev/shm/%d\" % i, \"w\").close()'",
    }
    for name, line in ways.items():
        run = api.shell(work, line + "; true", vfs="work", name="m", limits={"memory": "64MiB"}, seconds=90)
        assert run["memoryPeakBytes"] <= 65 << 20, (name, run["memoryPeakBytes"])
        # the shell itself may be the one that the kernel chose
        assert run["status"] == "Finished" or run["endReason"] == "startFailed", (name, run)
    status, _, text = api.raw("GET", api.files(work, "work", "/tcp"))
    if status == 200:  # what nobody read: a quarter of the limit at most, and some
        assert 0 < int(text) < 64 << 20, text


def forks_refused(server):
    """The groups of the instance in which a process was refused."""
    found = set()
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        for folder, _, names in os.walk(f"{root}/maitento-{server.instance}"):  # what goes meanwhile is passed over
            try:
                if "pids.events" in names and int(Path(folder, "pids.events").read_text().split()[1]):
                    found.add(folder)
            except OSError:
                pass
    return found


def test_a_fork_storm_stays_inside(api, work, server):
    storm = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n"
    for user in USERS:
        api.capsule(work, [{"command": "python3", "arguments": ["-c", storm], "runAsUser": user}], "storm",
                    maxDuration="00:05:00", users=[{"name": "sandbox"}], limits={"pids": 200})
        before, deadline = forks_refused(server), time.monotonic() + 60
        run = api.start(work, "storm")
        while not forks_refused(server) - before:
            assert time.monotonic() < deadline, "no storm"
            time.sleep(0.05)
        assert api.shell(work, "echo ok", name="beside")["status"] == "Finished"
        now = api.call("GET", f"/v1/capsule-runs/{run['id']}")
        assert not now["endReason"], "the storm was over before its neighbour was"
        api.terminate(run)
        ended = api.get(run, seconds=15)
        assert ended["endReason"] == "terminated", ended
        assert "pids" in ended["limitsReached"], ended


def test_stopping_what_is_just_being_started_holds_up_no_one(api, work):
    """A process of a user may be stopped by others of that user from a moment before it executes; PID 1
    waits for that execution."""
    storm = ("import ctypes,os,time\nfor _ in range(3):\n  if os.fork()==0: break\nend=time.time()+60\n"
             "kill=ctypes.CDLL(None).kill\nwhile time.time()<end: kill(-1,19)\n")
    startup = [{"command": "exec python3", "arguments": ["-c", storm], "runAsUser": "sandbox", "wait": False},
               {"command": "sleep 0.5"}]
    for _ in range(30):
        startup += [{"command": "true", "runAsUser": "sandbox", "wait": False}, {"command": "true"}]
    api.capsule(work, startup, "stop", maxDuration="00:00:50", users=[{"name": "sandbox"}])
    run = api.get(api.start(work, "stop"), until="ready", seconds=60)
    assert run["status"] == "Running", run
    api.terminate(run)


def test_capsules_go_first_when_the_host_has_no_memory(api, work):
    all_are(probe(api, work, 'out["oom_score_adj"] = int(read("/proc/self/oom_score_adj"))'), 500)
    all_are(probe(api, work, 'out["lowered"] = tried(put, "/proc/self/oom_score_adj", b"-500")'), "EACCES")


def test_all_runs_together_leave_the_host_processes(server):
    places = [Path(p) / f"maitento-{server.instance}/pids.max" for p in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")]
    found = [int(p.read_text()) for p in places if p.exists()]
    if not found:
        pytest.skip("no pids controller here")
    assert found[0] <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 2


# ---- files ----

def set_limit(server, vfs_id, size):
    with sqlite3.connect(server.dir / "state/store/maitento.db", timeout=20) as db:
        changed = db.execute("UPDATE vfs SET limit_bytes = ? WHERE id = ?", (size, vfs_id)).rowcount
    db.close()
    assert changed == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_many_uploads_at_once_stay_within_the_limit(api, work, server, chunked):
    set_limit(server, api.call("GET", f"/v1/namespaces/{work}/vfs/work")["id"], 4 << 20)
    answers = []

    def upload(i):
        connection = mtserver.UnixConnection(server.socket, 60)
        pieces = [b"x" * 65536] * 48  # 3 MiB
        try:
            connection.request("PUT", api.files(work, "work", f"/u{i}"), iter(pieces) if chunked else b"".join(pieces),
                               {"Transfer-Encoding": "chunked"} if chunked else {}, encode_chunked=chunked)
            answers.append(connection.getresponse().status)
        except OSError:  # refused in the middle
            answers.append(507)
        finally:
            connection.close()

    threads = [threading.Thread(target=upload, args=(i,)) for i in range(10)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(answers) == [201] + [507] * 9, answers
    items = api.call("GET", api.files(work, "work", "/", "list"))["items"]
    assert sum(i["size"] for i in items) <= 4 << 20, items


def test_a_capsule_cannot_go_on_past_the_limit_of_a_file_system(api, work, server):
    """It is watched: what is written between two looks is too much, nothing after that. Nor helps it to
    be over before the look."""
    vfs = api.call("GET", f"/v1/namespaces/{work}/vfs/work")
    set_limit(server, vfs["id"], 4 << 20)
    for way in ("while :; do head -c 1M /dev/zero >> /mnt/work/big; sleep 0.02; done",
                "i=0; while :; do i=$((i+1)); mkdir -p /mnt/work/$i/a/b/c/d/e/f/g; done"):
        run = api.shell(work, way, vfs="work")
        assert (run["status"], run["endReason"]) == ("Error", "diskFull"), (way, run)
        assert 4 << 20 < api.call("GET", f"/v1/namespaces/{work}/vfs/work")["usedBytes"] <= 128 << 20
        answer = api.error("POST", f"/v1/namespaces/{work}/capsules/c/runs")
        assert answer[:2] == (507, "diskFull"), answer
        for entry in api.call("GET", api.files(work, "work", "/", "list"))["items"]:
            api.raw("DELETE", api.files(work, "work", entry["path"]) + "&recursive=true")


def test_no_disk_is_taken_without_writing_it(api, work):
    """One call could take all of the host's disk before anybody looks. The C library writes instead."""
    found = probe(api, work, r'''
fd = os.open("/tmp/f%d" % os.getuid(), os.O_RDWR | os.O_CREAT, 0o666)
class resv(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in "type start len sysid a b c".split()]
for mode in (0, 1, 0x10, 0x40): out["fallocate %d" % mode] = sc(285, fd, mode, 0, 1 << 30)
for n in (40, 42, 57): out["ioctl %d" % n] = sc(16, fd, 0x40305800 | n, ctypes.byref(resv(0, 0, 1 << 30)))
''')
    all_are(found, "ENOTSUP")
    found = probe(api, work, r'''
fd = os.open("/tmp/g%d" % os.getuid(), os.O_RDWR | os.O_CREAT, 0o666)
os.posix_fallocate(fd, 0, 1 << 20)
out["size"] = os.fstat(fd).st_size
''')
    all_are(found, 1 << 20)


def test_odd_things_in_a_file_system_hold_up_no_reader(api, work):
    api.capsule(work, [{"command": "python3", "arguments": ["-c", PRELUDE + r'''
os.chdir("/mnt/work")
os.mkfifo("fifo"); sc(133, b"whiteout", 0o20666, 0); s = socket.socket(socket.AF_UNIX); s.bind("socket")
os.symlink("/dev/zero", "zero"); os.symlink("/proc/1/environ", "environ"); os.symlink("../../../../../etc/shadow", "up")
open("lease", "w").write("x"); fd = os.open("lease", os.O_RDWR)
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX)
open("ready", "w"); time.sleep(300)
''']}], "odd", **WORK)
    run = api.start(work, "odd")
    try:
        deadline = time.monotonic() + 60
        while api.raw("GET", api.files(work, "work", "/ready"))[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        begun = time.monotonic()
        for name in ("fifo", "whiteout", "socket", "zero", "environ", "up"):
            assert api.raw("GET", api.files(work, "work", "/" + name))[0] == 409, name
        assert api.raw("GET", api.files(work, "work", "/lease"))[0] in (503, 200)
        assert len(api.call("GET", api.files(work, "work", "/", "list"))["items"]) == 8
        api.write(work, "work", "/lease", "new")
        assert time.monotonic() - begun < 30
    finally:
        api.terminate(run)


# ---- the server, once it is somebody else's ----

def test_the_server_sees_the_host_read_only(server):
    """It keeps CAP_FOWNER for what capsules made; Landlock does not bound chmod(2) and its like."""
    writable = []
    for line in Path(f"/proc/{server.server.pid}/mountinfo").read_text().splitlines():
        fields = line.split()
        if "rw" in fields[5].split(","):
            writable.append(fields[4])
            assert {"nosuid", "nodev", "noexec"} <= set(fields[5].split(",")), line
    assert sorted(writable) == sorted(str(server.dir / "state" / n) for n in ("vfs", "store"))
    status = Path(f"/proc/{server.server.pid}/status").read_text()
    assert "CapEff:\t000000000000000a" in status and "NoNewPrivs:\t1" in status  # DAC_OVERRIDE, FOWNER


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb, which acts as the intruder")
def test_an_intruder_in_the_server_changes_nothing_outside(server):
    folder = Path(tempfile.mkdtemp(prefix="mt-canary-"))
    try:
        (folder / "file").write_text("x")
        (folder / "file").chmod(0o600)
        state = server.dir / "state"
        calls = [f'(int)chmod("{folder}/file", 06777)', f'(int)lchown("{folder}/file", 61234, 61234)',
                 f'(int)open("{folder}/file", 2)', f'(int)mkdir("{state}/runs/x", 0700)', f'(int)mkdir("{state}/x", 0700)',
                 f'(int)rename("{state}/runs", "{state}/vfs/x")', f'(int)symlink("/etc", "{state}/runs/x")',
                 f'(int)open("{server.dir}/scratch.img", 2)', '(int)open("/run/maitento-ids", 0)',
                 '(int)unshare(0x10000000)', '(int)setuid(0)', f'(int)kill({server.runner.pid}, 0)']
        done = subprocess.run(["gdb", "-q", "-batch", "-p", str(server.server.pid),
                               *[a for c in calls for a in ("-ex", f"print {c}")]],
                              capture_output=True, text=True, timeout=240, check=False)
        answers = [l.split("= ")[1] for l in done.stdout.splitlines() if l.startswith("$")]
        if len(answers) != len(calls):
            pytest.skip(f"gdb cannot do it here: {done.stderr[-300:]}")
        assert answers == ["-1"] * len(calls), list(zip(calls, answers))
        assert (folder / "file").stat().st_mode & 0o7777 == 0o600
    finally:
        shutil.rmtree(folder)
