# SPDX-License-Identifier: Apache-2.0
"""mt's commands for secrets, against the server made of paper: where values come from, and where they never are."""
import base64
import json
import os
import pty
import subprocess
import termios
import time
from pathlib import Path

import pytest
from fake import NOW, Problem
from paper import MT
from test_python_client import maitento, py  # noqa: F401

SECRETS = "/v1/namespaces/work/secrets"
CANARY = "CANARY-7f3a"


@pytest.fixture()
def kept(fake):
    """What the server has: name -> bytes."""
    values = {}

    def shown(name):
        return {"id": f"s-{name}", "name": name, "namespace": "work", "dateCreated": NOW, "dateUpdated": NOW}

    def value(r):
        given = {k: v for k, v in r.json.items() if k.startswith("value")}
        assert len(given) == 1, r.json
        return base64.b64decode(given["valueBase64"], validate=True) if "valueBase64" in given else \
            given["value"].encode()

    def create(r, _):
        if r.json["name"] in values:
            raise Problem(409, "alreadyExists", f"secret '{r.json['name']}' exists already in namespace 'work'")
        values[r.json["name"]] = value(r)
        return 201, shown(r.json["name"])

    def change(r, m):
        if m[1] not in values:
            raise Problem(404, "notFound", f"no secret '{m[1]}' in namespace 'work'")
        values[m[1]] = value(r)
        return shown(m[1])

    def look(r, m):
        if m[1] not in values:
            raise Problem(404, "notFound", f"no secret '{m[1]}' in namespace 'work'")
        return shown(m[1])

    def delete(r, m):
        if m[1] == "used" and r.query.get("force") != "true":
            raise Problem(409, "conflict", "secret 'used' is in use: named by capsules hello")
        values.pop(m[1], None)
        return 204, None

    fake.on("POST", SECRETS, create)
    fake.on("GET", SECRETS, lambda r, _: fake.page(r, [shown(n) for n in sorted(values)]))
    fake.on("PUT", f"{SECRETS}/([^/]+)", change)
    fake.on("GET", f"{SECRETS}/([^/]+)", look)
    fake.on("DELETE", f"{SECRETS}/([^/]+)", delete)
    return values


@pytest.mark.parametrize("value", [b"plain", b"with a line\n", b"\n", b"\0\xff\r\n\0", "ünï".encode(), b"x" * 65536],
                         ids=["plain", "line", "only-a-line", "bytes", "text", "most"])
def test_byte_for_byte_from_standard_input_and_from_a_file(mt, kept, tmp_path, value):
    done = mt("secret-create", "a", stdin=value)
    assert kept["a"] == value and "secret a made in namespace work" in done.err and done.out == ""
    assert ("ends with a line break" in done.err) == value.endswith(b"\n")
    (tmp_path / "v").write_bytes(value)
    mt("secret-create", "b", "--file", "v")
    assert kept["b"] == value
    mt("secret-set", "a", "-f", tmp_path / "v")
    assert kept["a"] == value


def test_refused(mt, kept, tmp_path):
    assert "empty" in mt("secret-create", "a", code=2).err
    assert "65536 bytes" in mt("secret-create", "a", stdin=b"x" * 65537, code=2).err
    assert "cannot read 'none'" in mt("secret-create", "a", "--file", "none", code=3).err
    for command in ("secret-create", "secret-set"):  # no value by argument, and none in what is said of it
        said = mt(command, "a", CANARY, code=2).err
        assert "never an argument" in said and CANARY not in said
    assert CANARY not in mt("secret-create", "a", "--value", CANARY, code=2).out
    mt("secret-create", "a", stdin=b"1")
    assert "exists already" in mt("secret-create", "a", stdin=b"2", code=5).err
    assert "no secret 'none'" in mt("secret-set", "none", stdin=b"2", code=3).err
    assert kept == {"a": b"1"}


def test_list_json_and_delete(mt, kept):
    made = json.loads(mt("secret-create", "used", "--json", stdin=b"v").out)
    assert set(made) == {"id", "name", "namespace", "dateCreated", "dateUpdated"}
    mt("secret-create", "b", "-q", stdin=b"v")
    assert [line.split()[0] for line in mt("secret-list").out.splitlines()] == ["b", "used"]
    assert [v["name"] for v in json.loads(mt("secret-list", "--json").out)] == ["b", "used"]
    assert "deleted" in mt("secret-delete", "b").err
    assert "named by capsules hello" in mt("secret-delete", "used", code=5).err
    done = mt("secret-delete", "used", "--force")
    assert "warning: secret 'used' is in use" in done.err and "deleted" in done.err and not kept


def test_a_terminal_is_asked_without_echo(kept, environment):
    master, slave = pty.openpty()
    with subprocess.Popen([MT, "secret-create", "typed"], env=environment, stdin=slave, stdout=slave,
                          stderr=slave) as p:
        seen = b""
        deadline = time.monotonic() + 20
        while b"Value of secret typed: " not in seen:
            seen += os.read(master, 1000)
        while termios.tcgetattr(slave)[3] & termios.ECHO:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.write(master, b" two words \n")
        assert p.wait(20) == 0
    assert termios.tcgetattr(slave)[3] & termios.ECHO  # as it was
    os.close(slave)
    while True:
        try:
            piece = os.read(master, 1000)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert kept == {"typed": b" two words "} and b"two words" not in seen, seen


def test_it_is_nobody_elses_to_see(fake, kept, environment):
    """Neither arguments nor environment have it while the request is under way."""
    looked = []

    def slow(r, _):
        for line in Path("/proc").iterdir():
            if line.name.isdigit() and int(line.name) != os.getpid():
                try:
                    text = (line / "cmdline").read_bytes()
                    if text.startswith(MT.encode() + b"\0secret-create"):
                        looked.append(text + (line / "environ").read_bytes())
                except OSError:
                    pass
        return 201, {}
    fake.on("POST", SECRETS, slow)
    subprocess.run([MT, "secret-create", "a"], input=CANARY.encode(), env=environment, check=True, timeout=20,
                   capture_output=True)
    assert looked and not any(CANARY.encode() in text for text in looked)


def test_the_python_client(py, fake, kept):  # noqa: F811
    assert py.secrets.find("a") is None
    made = py.secrets.create("a", "ünï\n")
    assert made.name == "a" and made.date_updated == NOW and not hasattr(made, "value")
    assert kept["a"] == "ünï\n".encode()
    py.secrets.set("a", b"\0\xff")
    assert kept["a"] == b"\0\xff" and py.secrets.find("a").name == "a"
    assert [s.name for s in py.secrets.list()] == ["a"]
    py.secrets.create("used", "x", "work")
    with pytest.raises(maitento.MaitentoError) as error:
        py.secrets.delete("used")
    assert error.value.code == "conflict"
    py.secrets.delete("used", force=True)
    py.capsules.start("bench", secrets=[{"secret": "a", "mount_name": "token"}])
    assert fake.requests[-1].json == {"secrets": [{"secret": "a", "mountName": "token"}]}
