# SPDX-License-Identifier: Apache-2.0
"""What a capsule reaches and what it does not, in a world of the tests' own (lab.py)."""
import os
import re
import subprocess

import pytest

from lab import HOST4, HOST6, METADATA, OTHER4, OTHER6, PRIVATE4, PRIVATE6, PUBLIC4, PUBLIC6, until
from machine import Machine, gateway, lab, machine, server  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

SHUT = [PRIVATE4, METADATA, HOST4, OTHER4, "10.255.255.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.126.0.1", "100.126.0.17",
        "100.100.100.200",
        "168.63.129.16", "224.0.0.1", "255.255.255.255", "0.0.0.0", PRIVATE6, HOST6, OTHER6, "fe80::1%eth0",
        "::ffff:10.9.9.9", "64:ff9b::10.9.9.9", "fd4d:6169:7465::1", "ff02::1%eth0", "2002:a09:909::1"]
# 0.0.0.0 is the capsule itself, to the kernel; a broadcast and a multicast address take no TCP at all.
ERRORS = ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL", "EADDRNOTAVAIL")


def test_the_world_is_there(lab):
    """Without a firewall all that is refused below would be reached: the tests would see a hole."""
    for address in (PUBLIC4, PRIVATE4, METADATA, f"[{PUBLIC6}]", f"[{PRIVATE6}]", OTHER4, f"[{OTHER6}]"):
        assert '"here"' in lab.host.run(f"curl -sS -m 20 -g http://{address}/"), address
    assert '"here"' in lab.host.run(f"curl -sS -m 20 http://{PUBLIC4}:25/")


def test_public_addresses(machine):
    found = machine.python(f'''
for a in ("{PUBLIC4}", "{PUBLIC6}"):
    out[a] = tried(get, a)
    out["udp " + a] = tried(udp, a)
out["submission"] = tried(get, "{PUBLIC4}", 587)
''')
    assert found[PUBLIC4][0] == {"here": PUBLIC4, "from": HOST4}
    assert found[PUBLIC6][0] == {"here": PUBLIC6, "from": HOST6}
    assert found[f"udp {PUBLIC4}"][0] == found[f"udp {PUBLIC6}"][0] == "HELLO"
    assert found["submission"][0]["here"] == PUBLIC4


def test_shut_addresses_fail_at_once(machine):
    found = machine.python(f'''
for a in {SHUT!r}:
    out[a] = [tried(get, a), tried(get, a, 8080), tried(udp, a, 7007, 1)]
''')
    for address, results in found.items():
        # Nobody answers a datagram to many, not even with an error (RFC 1122).
        for result, quick in results[:2] if address == "224.0.0.1" else results:
            assert result in ERRORS and quick, (address, results)


def test_refused_again_and_again(machine):
    """Not only the first few times: the kernel limits how many errors it sends, unless told not to."""
    found = machine.python(f'''
out["tcp"] = [tried(get, "{PRIVATE4}") for _ in range(50)]
out["udp"] = [tried(udp, "{METADATA}") for _ in range(50)]
''')
    assert all(r == ["ECONNREFUSED", True] for r in found["tcp"]), found
    assert all(r in (["EHOSTUNREACH", True], ["EACCES", True]) for r in found["udp"]), found


def test_a_closed_port_outside_is_refused_at_once(machine):
    found = machine.python(f'''
out["four"] = [tried(get, "{PUBLIC4}", 81, 20) for _ in range(5)]
out["six"] = [tried(get, "{PUBLIC6}", 81, 20) for _ in range(5)]
''', seconds=60)
    assert found == {"four": [["ECONNREFUSED", True]] * 5, "six": [["ECONNREFUSED", True]] * 5}


def test_no_mail(machine):
    found = machine.python(f'out["four"] = tried(get, "{PUBLIC4}", 25); out["six"] = tried(get, "{PUBLIC6}", 25)')
    assert found == {"four": ["ECONNREFUSED", True], "six": ["ECONNREFUSED", True]}


OWN = '''
def own(family, to):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.connect((to, 9))
        return s.getsockname()[0]
out["own"] = [own(socket.AF_INET, "198.51.100.7"), own(socket.AF_INET6, "2001:db8:99::7")]
'''
LISTEN = """
import socket
s = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True)
print("up", flush=True)
s.accept()
"""


def test_other_capsules(api, ns, machine):
    other = Machine(api, ns)
    try:
        addresses = other.python(OWN)["own"]
        other.background(["python3", "-c", LISTEN], until_says="up")
        assert other.python('out["itself"] = tried(lambda: socket.create_connection(("127.0.0.1", 9000), 5).close())')
        found = machine.python(f"for a in {addresses!r}: out[a] = [tried(get, a, 9000), tried(udp, a)]")
    finally:
        other.end()
    assert len(found) == 2
    for address, results in found.items():
        for result, quick in results:
            assert result in ERRORS and quick, (address, results)


def test_none_is_alone(api, ns):
    alone = Machine(api, ns, network="none")
    try:
        found = alone.python(f'''
out["links"] = [l.split(":")[0].strip() for l in open("/proc/net/dev") if ":" in l]
out["four"], out["six"] = tried(get, "{PUBLIC4}"), tried(get, "{PUBLIC6}")
out["name"] = tried(names, "public.test")
out["server"] = tried(udp, "127.0.0.53", 53)
with socket.create_server(("127.0.0.1", 80)) as s:
    out["own"] = tried(lambda: socket.create_connection(("127.0.0.1", 80), 5).close())
''')
    finally:
        alone.end()
    assert found["links"] == ["lo"]
    assert found["four"] == found["six"] == ["ENETUNREACH", True]
    assert found["name"][0].startswith("gai") and found["name"][1], found
    assert found["server"] == ["ECONNREFUSED", True] and found["own"] == [None, True]


# ---- names ----

def test_names(machine):
    found = machine.python('''
for n in ("public.test", "four.test", "nothing.test", "many.test"):
    out[n] = tried(names, n)
out["conf"] = open("/etc/resolv.conf").read()
out["open"] = sorted(urllib.request.urlopen("http://public.test/").read().decode()[:8])
''')
    assert found["public.test"][0] == sorted([PUBLIC4, PUBLIC6])
    assert found["four.test"][0] == [PUBLIC4]
    assert found["nothing.test"][0] == "gai -2"
    assert len(found["many.test"][0]) == 199  # by TCP, as it does not fit in a datagram
    assert found["conf"] == "nameserver 127.0.0.53\n"


@pytest.mark.parametrize("name", ["private.test", "metadata.test", "loopback.test", "rebind.test", "mapped.test"])
def test_names_never_lead_to_shut_addresses(machine, lab, name):
    found = machine.python(f'''
for f in (0, socket.AF_INET, socket.AF_INET6):
    out[str(f)] = tried(names, "{name}", int(f))
''')
    for result, quick in found.values():
        assert isinstance(result, str) and result.startswith("gai -") and quick, found


ASK = r'''
def ask(name, kind=1, flags=0x100, opt=b"", tcp=False, more=b""):
    q = struct.pack("!6H", 0x4242, flags, 1, 0, 0, 1 if opt else 0)
    q += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack("!HH", kind, 1) + opt
    if tcp:
        with socket.create_connection(("127.0.0.53", 53), 10) as s:
            s.sendall(struct.pack("!H", len(q)) + q + more)
            size = struct.unpack("!H", s.recv(2, socket.MSG_WAITALL))[0]
            return s.recv(size, socket.MSG_WAITALL)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect(("127.0.0.53", 53))
        s.send(q)
        return s.recv(70000)

ONE = struct.pack("!6H", 0x4242, 0x100, 1, 0, 0, 0) + b"\4four\4test\0\0\1\0\1"
OPT = b"\0\0\x29\x10\0\0\0\0\0\0\0"
def look(m):
    ident, flags, _, answers, _, more = struct.unpack("!6H", m[:12])
    return {"id": ident, "rcode": flags & 15, "cut": bool(flags & 0x200), "answers": answers, "more": more, "len": len(m)}
'''


def test_replies_on_the_wire(machine):
    found = machine.python(ASK + '''
out["plain"] = look(ask("four.test"))
out["opt"] = look(ask("four.test", opt=OPT))
out["tcp"] = look(ask("four.test", tcp=True))
out["large"] = look(ask("many.test"))
out["large by tcp"] = look(ask("many.test", tcp=True))
shut = ask("rebind.test", opt=OPT)
out["shut"] = look(shut)
out["why"] = list(shut[-6:])
out["transfer"] = look(ask("four.test", kind=252))
with socket.create_connection(("127.0.0.53", 53), 10) as s:  # one after the other, and in pieces
    for piece in (b"\\0", b"\\x1b", ONE[:5], ONE[5:] + b"\\0\\x1b" + ONE, b"\\0\\x1b" + ONE[:20], ONE[20:]):
        s.sendall(piece)
        time.sleep(0.02)
    f = s.makefile("rb")
    out["pieces"] = [look(f.read(struct.unpack("!H", f.read(2))[0])) for _ in range(3)]
out["silent"] = look(ask("silent.test"))
''', seconds=60)
    assert found["plain"] == {"id": 0x4242, "rcode": 0, "cut": False, "answers": 1, "more": 0, "len": 43}
    assert found["opt"]["more"] == 1 and found["tcp"] == found["plain"]
    assert found["pieces"] == [found["plain"]] * 3
    assert found["large"]["cut"] and found["large"]["answers"] == 0
    assert found["large by tcp"]["answers"] == 199 and not found["large by tcp"]["cut"]
    assert found["shut"]["answers"] == 0 and found["shut"]["rcode"] == 0 and found["why"] == [0, 15, 0, 2, 0, 17]
    assert found["transfer"]["rcode"] == 5 and found["silent"]["rcode"] == 2


def test_a_hostile_asker_hurts_itself_alone(machine, api, ns, server):
    """Floods of what is never answered, of broken messages and of idle connections."""
    hostile = Machine(api, ns, limits={"memory": "256MiB", "disk": "64MiB", "pids": 64})
    flood = r'''
import os, random, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
held = []
end = time.monotonic() + 15
n = 0
q = b"\x42\x42\1\0\0\1\0\0\0\0\0\0\6silent\4test\0\0\1\0\1"
while time.monotonic() < end:
    n += 1
    try:
        s.sendto(q if n % 2 else random.randbytes(random.randrange(600)), ("127.0.0.53", 53))
    except OSError:
        pass
    if n % 100 == 0:
        c = socket.socket()
        c.setblocking(False)
        try:
            c.connect(("127.0.0.53", 53))
        except OSError:
            pass
        held.append(c)
        del held[:-400]
    if n == 1000:
        print("flooding", flush=True)
'''
    try:
        hostile.background(["python3", "-c", flood], until_says="flooding")
        found = machine.python('out["n"] = [tried(names, "four.test")[0] for _ in range(20)]')
    finally:
        hostile.end()
    assert found["n"] == [[PUBLIC4]] * 20
    assert "mt-net ended" not in server.said("mt-runner")


def test_the_hosts_resolvers_may_change(lab, machine):
    before = lab.resolv.read_text()
    ask = 'out["n"] = tried(names, "four.test")[0]'
    assert machine.python(ask)["n"] == [PUBLIC4]
    try:
        lab.resolv.write_text("nameserver 10.9.9.99\n")  # nobody
        until(lambda: machine.python(ask)["n"] != [PUBLIC4], "the new one is asked", 60)
        lab.resolv.write_text(f"nameserver 10.9.9.99\nnameserver 10.9.9.53\n")
        until(lambda: machine.python(ask)["n"] == [PUBLIC4], "the second one is asked", 60)
    finally:
        lab.resolv.write_text(before)
    until(lambda: machine.python(ask)["n"] == [PUBLIC4], "it is as before")


# ---- what its root may ----

@pytest.mark.parametrize("user", ["maitento", "root"])
def test_nobody_inside_changes_the_network(machine, user):
    found = machine.python(r'''
out["raw"] = tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)[0]
out["raw6"] = tried(socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58)[0]
out["packet"] = tried(socket.socket, 17, socket.SOCK_RAW, 0x300)[0]
out["nft"] = tried(socket.socket, 16, socket.SOCK_RAW, 12)[0]
def link_down():
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"eth0", 0))
def new_address():
    with socket.socket(16, socket.SOCK_RAW, 0) as s:
        m = struct.pack("=BBBBI", 2, 32, 0, 0, 2) + struct.pack("=HH4s", 8, 2, socket.inet_aton("198.51.100.99"))
        s.send(struct.pack("=IHHII", 16 + len(m), 20, 5, 1, 0) + m)
        return struct.unpack("=i", s.recv(100)[16:20])[0]
out["down"] = tried(link_down)[0]
out["address"] = tried(new_address)[0]
out["forward"] = tried(lambda: open("/proc/sys/net/ipv4/conf/all/rp_filter", "w").write("0"))[0]
''', user=user)
    assert found["raw"] == found["raw6"] == "EPERM"
    assert found["packet"] in ("EPERM", "EAFNOSUPPORT")
    assert found["nft"] in ("EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT")
    assert found["down"] == "EPERM"
    assert found["address"] in (-1, "EPERM", "EAFNOSUPPORT")  # -EPERM
    assert found["forward"] in ("EROFS", "EACCES", "EPERM")


# ---- false senders ----

SEND = r'''
import socket, struct, sys
source, target, port = sys.argv[1:4]
def checksum(b):
    t = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    t = (t >> 16) + (t & 0xffff)
    return ~(t + (t >> 16)) & 0xffff
udp = struct.pack("!4H", 7007, int(port), 8 + 4, 0) + b"fake"
if ":" in target:
    s, t = socket.inet_pton(10, source), socket.inet_pton(10, target)
    udp = udp[:6] + struct.pack("!H", checksum(s + t + struct.pack("!II", len(udp), 17) + udp)) + udp[8:]
    packet = struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + s + t + udp
    out = socket.socket(10, socket.SOCK_RAW, 255)
    out.setsockopt(41, 36, 1)
    out.sendto(packet, (target, 0))
else:
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 7, 0, 64, 17, 0, socket.inet_aton(source),
                       socket.inet_aton(target))
    out = socket.socket(2, socket.SOCK_RAW, 255)
    out.sendto(head + udp, (target, 0))
'''


@pytest.mark.parametrize("target,sources", [
    (PUBLIC4, ["100.126.0.1", "100.126.1.1", "100.64.1.1", "192.0.2.2", "198.51.100.99", "127.0.0.1", "10.0.0.1"]),
    (PUBLIC6, ["fd4d:6169:7465::1", "fd4d:6169:7465::77", "2001:db8:2::2", "2001:db8::99", "fe80::99"])])
def test_false_senders_are_dropped(machine, gateway, target, sources):
    """Even with all the rights that nobody inside has. Its own address goes through: it is counted."""
    own = machine.python(OWN)["own"][":" in target]
    inside = f"--net=/proc/{machine.process()}/ns/net"

    def send(source):
        subprocess.run(["nsenter", inside, "--", "python3", "-c", SEND, source, target, "7007"], check=True)

    gateway.run("nft", "add table inet seen; add chain inet seen out { type filter hook postrouting priority -10; }; "
                       "add counter inet seen n; add rule inet seen out udp sport 7007 counter name n")
    try:
        def count():
            return int(re.search(r"packets (\d+)", gateway.run("nft", "list", "counter", "inet", "seen", "n"))[1])
        for source in sources:
            send(source)
        assert count() == 0
        send(own)
        until(lambda: count() == 1, "its own has gone through")
    finally:
        gateway.run("nft", "delete", "table", "inet", "seen")


# ---- the rules ----

def test_the_rule_for_segments_without_flags(gateway):
    """Without it connections through a real pasta hang now and then; nothing here would show it."""
    listed = gateway.run("nft", "list", "chain", "inet", "maitento", "input")
    assert re.search(r'iifname "uplink" ct state invalid drop', listed), listed
    assert listed.index("invalid drop") < listed.index('"mtc*" drop'), listed


def test_the_hosts_new_addresses_are_shut(lab, machine):
    def reached():
        return machine.python('out["x"] = tried(get, "198.51.100.77", 80, 5)[0]')["x"]

    lab.world.run("ip addr add 198.51.100.77/32 dev lo")
    assert reached()["here"] == "198.51.100.77"
    lab.world.run("ip addr del 198.51.100.77/32 dev lo")
    lab.host.run("ip addr add 198.51.100.77/32 dev lo")
    try:
        until(lambda: reached() == "ECONNREFUSED", "the new address is shut")
    finally:
        lab.host.run("ip addr del 198.51.100.77/32 dev lo")
