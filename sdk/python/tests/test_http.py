# SPDX-License-Identifier: Apache-2.0
"""Requests against a server that misbehaves: framing, breaks, repeats, first contact, many at once."""
import io
import ssl
import subprocess
import threading
import time

import pytest
from maitento import MaitentoError, Whoami, _wire
from scripted import SERVER, Scripted, problem

WHO = {"id": "u1", "name": "ada", "role": "user", "via": "key", "defaultNamespace": "work"}


def fails(call, code):
    with pytest.raises(MaitentoError) as error:
        call()
    assert error.value.code == code, error.value
    return error.value


def raw(text):
    return lambda x: x.send(text)


# ---- answers ----


@pytest.mark.parametrize(
    "answer",
    [
        'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"name":"ada"}',
        'HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\n{"nam\r\n9\r\ne":"ada"}\r\n0\r\nTrailer: 1\r\n\r\n',
        'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:14\r\n\r\n{"name":"ada"}',
    ],
    ids=["length", "chunked", "continue"],
)
def test_how_answers_are_framed(server, mt, answer):
    server.on("GET", "/v1/whoami", raw(answer))
    for _ in range(3):
        assert mt.whoami().name == "ada"
    assert server.connections == 1, "one connection serves them all"


def test_an_answer_that_goes_to_the_end_of_the_connection(server, mt):
    def answer(x):
        x.send('HTTP/1.0 200 OK\r\n\r\n{"name":"ada"}')
        x.cut()

    server.on("GET", "/v1/whoami", answer)
    assert mt.whoami().name == "ada" and mt.whoami().name == "ada"


def test_what_is_sent(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    mt.whoami()
    first, asked = server.seen
    assert first.target == "/v1/server" and "authorization" not in first.headers, "the key waits for first contact"
    assert asked.headers["authorization"] == "Bearer mt_key"
    assert asked.headers["user-agent"] == f"maitento-python/{_wire.VERSION}"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"


# ---- first contact ----


def test_first_contact_is_made_once(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    threads = [threading.Thread(target=mt.whoami) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked("/v1/server")) == 1 and len(server.asked("/v1/whoami")) == 8


@pytest.mark.parametrize(
    "what, said",
    [
        (problem(404, "notFound"), "status 404"),
        (lambda x: x.answer(b"<html>hello</html>"), "no JSON"),
        ({"product": "other", "apiVersion": 1}, "no product 'maitento'"),
        ([1], "no JSON"),
        ({**SERVER, "apiVersion": 2}, "version 2"),
        (raw("SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n"), "no HTTP"),
    ],
)
def test_what_is_no_maitento_server_gets_neither_key_nor_request(server, mt, what, said):
    server.on("GET", "/v1/server", what)
    error = fails(mt.whoami, "notMaitento")
    assert f"what answers at {server.url} is not a Maitento server: " in str(error) and said in str(error)
    assert {x.target for x in server.seen} == {"/v1/server"}
    assert not any("authorization" in x.headers for x in server.seen)


def test_a_server_that_is_starting_is_waited_for(server, mt):
    server.on("GET", "/v1/server", problem(503, "unavailable"), once=True)
    server.on("GET", "/v1/whoami", WHO)
    assert mt.whoami().name == "ada" and len(server.asked("/v1/server")) == 2


@pytest.mark.parametrize("url, why", [("unix:/nonexistent/api.sock", "No such file"), ("http://127.0.0.1:9", "efused")])
def test_nobody_is_there(clients, monkeypatch, url, why):
    began = time.monotonic()
    monkeypatch.setenv("MAITENTO_URL", url)
    error = fails(clients().whoami, "unreachable")
    assert time.monotonic() - began < 15 and error.status is None
    assert url in str(error) and "(from MAITENTO_URL)" in str(error) and why in str(error) and "mt login" in str(error)
    assert "the client's own" in str(fails(clients(url).whoami, "unreachable"))


# ---- breaks and repeats ----


def test_an_idle_connection_that_died_is_no_matter(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    for _ in range(3):
        began = time.monotonic()
        assert mt.whoami().name == "ada" and time.monotonic() - began < 1
        server.cut()


def test_one_that_dies_as_it_is_used_is_retried_at_once(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    mt.whoami()
    server.on("GET", "/v1/whoami", lambda x: x.cut(), once=True)
    began = time.monotonic()
    assert mt.whoami().name == "ada" and time.monotonic() - began < 0.15


def test_a_get_outlives_a_restart(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    mt.whoami()
    server.stop()
    threading.Timer(1.0, server.start).start()
    assert mt.whoami().name == "ada"


def test_unavailable_is_asked_again_after_the_time_that_it_names(server, mt):
    server.on("GET", "/v1/whoami", WHO)
    server.on("GET", "/v1/whoami", problem(503, "unavailable", headers={"Retry-After": "1"}), once=True)
    server.on("GET", "/v1/whoami", problem(502, "unavailable"), once=True)
    began = time.monotonic()
    assert mt.whoami().name == "ada" and 1 <= time.monotonic() - began < 10


def test_an_answer_that_breaks_off_is_asked_for_again(server, mt):
    def half(x):
        x.answer(b'{"name":', length=40)
        x.cut()

    server.on("GET", "/v1/whoami", WHO)
    server.on("GET", "/v1/whoami", half, once=True)
    assert mt.whoami() == Whoami(WHO)


def test_a_delete_whose_answer_was_lost_is_done(server, mt):
    server.on("DELETE", "/v1/keys/k1", problem(404, "notFound"))
    server.on("DELETE", "/v1/keys/k1", lambda x: x.cut(), once=True)
    mt.keys.delete("k1")
    fails(lambda: mt.keys.delete("k1"), "notFound")


def test_a_post_without_a_key_is_never_repeated(server, mt):
    server.on("POST", "/v1/namespaces", lambda x: x.cut())
    fails(lambda: mt.namespaces.create("x"), "outcomeUnknown")
    assert len(server.asked("/v1/namespaces")) == 1


def test_a_start_is_repeated_with_its_key(server, mt):
    run = {"id": "r1", "status": "Starting"}
    server.on("POST", "/v1/namespaces/work/capsules/c/runs", run)
    for _ in range(2):
        server.on("POST", "/v1/namespaces/work/capsules/c/runs", lambda x: x.cut(), once=True)
    assert mt.capsules.start("c", environment={"A": "é"}).id == "r1"
    starts = server.asked("/v1/namespaces/work/capsules/c/runs")
    assert len(starts) == 3 and len({x.headers["idempotency-key"] for x in starts}) == 1
    assert {x.json["environment"]["A"] for x in starts} == {"é"}


def test_patience_ends(server, mt, monkeypatch):
    monkeypatch.setattr(_wire, "PATIENCE", 1.0)
    server.on("GET", "/v1/whoami", WHO)
    mt.whoami()
    server.stop()
    assert "no server for 1 s" in str(fails(mt.whoami, "outcomeUnknown"))


# ---- bodies ----


class Zeros(io.RawIOBase):
    """A pipe without an end of its own."""

    def __init__(self, length):
        self.left = length

    def read(self, size=-1):
        size = min(size, self.left)
        self.left -= size
        return bytes(size)


ENTRY = {
    "path": "/x",
    "name": "x",
    "type": "file",
    "size": 1,
    "mode": "0660",
    "dateModified": None,
    "nameEscaped": False,
}


def test_files_are_sent_with_their_length_and_pipes_in_chunks(server, mt, tmp_path):
    server.on("PUT", "/v1/namespaces/work/vfs/v/files", ENTRY)
    files, told = mt.vfs.open("v"), []
    (tmp_path / "local").write_bytes(b"ab" * 400_000)
    files.upload("/x", tmp_path / "local", lambda done, total: told.append((done, total)))
    assert told[-1] == (800_000, 800_000) and [done for done, _ in told] == sorted({done for done, _ in told})
    told.clear()
    files.upload("/x", Zeros(700_000), lambda done, total: told.append((done, total)))
    assert told[-1] == (700_000, None)
    files.write("/x", [b"one", b"", b"two"])
    files.write("/x", bytearray(b"z") * 300_000)
    files.write("/x", b"")
    bodies = [x.body for x in server.asked(".*/files")]
    assert bodies == [b"ab" * 400_000, bytes(700_000), b"onetwo", b"z" * 300_000, b""]
    with pytest.raises(TypeError):
        files.write("/x", "text")


def test_a_refusal_while_a_body_is_sent_is_told(server, mt):
    def refuse(x):
        x.answer({"code": "diskFull", "detail": "no room", "status": 507}, 507, {"Connection": "close"})
        x.socket.settimeout(5)
        threading.Event().wait(0.2)
        x.cut()

    refuse.reads_itself = True
    server.on("PUT", ".*/files", refuse)
    for content in (Zeros(200 << 20), io.BytesIO(bytes(64 << 20))):
        assert "no room" in str(fails(lambda c=content: mt.vfs.open("v").write("/x", c), "diskFull"))
    assert len(server.asked(".*/files")) == 2


def test_an_upload_is_sent_again_where_it_can_be_read_again(server, mt):
    server.on("PUT", ".*/files", ENTRY)
    for content, code in ((io.BytesIO(b"x" * 600_000), None), (Zeros(600_000), "outcomeUnknown")):
        server.on("PUT", ".*/files", lambda x: x.cut(), once=True)
        if code:
            assert "cannot be read again" in str(fails(lambda c=content: mt.vfs.open("v").upload("/x", c), code))
        else:
            mt.vfs.open("v").upload("/x", content)
    assert [len(x.body) for x in server.asked(".*/files")] == [600_000] * 3


def serve(data, tag, breaks):
    """A file whose first answers break off, in ranges."""

    def answer(x):
        at = int(x.headers.get("range", "bytes=0-")[6:-1])
        headers = {"ETag": tag, "Content-Range": f"bytes {at}-{len(data) - 1}/{len(data)}"}
        part = data[at:]
        if breaks:
            x.answer(part[: breaks.pop()], 206 if at else 200, headers, len(part))
            x.cut()
        else:
            x.answer(part, 206 if at else 200, headers)

    return answer


def test_a_download_goes_on_where_it_broke(server, mt, tmp_path):
    data = bytes(range(256)) * 4000
    server.on("GET", ".*/files", serve(data, '"1"', [100_000, 300_000]))
    told = []
    assert mt.vfs.open("v").download("/x", tmp_path / "x", lambda done, total: told.append((done, total))) == len(data)
    assert (tmp_path / "x").read_bytes() == data and told[-1] == (len(data), len(data))
    assert [x.headers.get("range") for x in server.asked(".*/files")] == [None, "bytes=300000-", "bytes=400000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_file_that_was_changed_meanwhile_is_not_mixed(server, mt, tmp_path):
    (tmp_path / "x").write_bytes(b"before")
    server.on("GET", ".*/files", serve(b"new" * 100_000, '"2"', []))
    server.on("GET", ".*/files", serve(b"old" * 100_000, '"1"', [1000]), once=True)
    fails(lambda: mt.vfs.open("v").download("/x", tmp_path / "x"), "conflict")
    assert (tmp_path / "x").read_bytes() == b"before" and [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_part_of_a_file(server, mt):
    def answer(x):
        x.answer(b"345", 206, {"ETag": '"1"', "Content-Range": "bytes 3-5/10"})

    server.on("GET", ".*/files", answer)
    assert b"".join(mt.vfs.open("v").chunks("/x", 3, 3)) == b"345"
    assert server.asked(".*/files")[0].headers["range"] == "bytes=3-5"


# ---- TLS ----


@pytest.fixture()
def secure(tmp_path, monkeypatch):
    """A server with a certificate that nobody else has signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Scripted(context)
    yield server, certificate
    server.stop()


def test_tls_is_for_servers_whose_certificate_is_good(secure, clients, monkeypatch):
    server, certificate = secure
    server.on("GET", "/v1/whoami", WHO)
    error = fails(clients(server.url, "mt_key").whoami, "unreachable")
    assert "certificate" in str(error) and server.seen == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    mt, told = clients(server.url, "mt_key", "work"), []
    server.on("PUT", ".*/files", ENTRY)
    for _ in range(2):
        assert mt.whoami().name == "ada"
        mt.vfs.open("v").upload("/x", io.BytesIO(b"xy" * 500_000), lambda done, _: told.append(done))
    assert [x.body for x in server.asked(".*/files")] == [b"xy" * 500_000] * 2 and told[-1] == 1_000_000


# ---- lists ----


def test_lists_are_read_page_by_page(server, mt):
    def page(x):
        at, size = int(x.query.get("after", 0)), int(x.query["limit"])
        items = [{"id": str(n)} for n in range(at, min(at + size, 2500))]
        x.answer({"items": items, "next": str(at + size) if at + size < 2500 else None})

    server.on("GET", "/v1/capsule-runs", page)
    assert [r.id for r in mt.capsule_runs.list(limit=None)] == [str(n) for n in range(2500)]
    assert len(mt.capsule_runs.list(limit=1200)) == 1200
    assert [x.query["limit"] for x in server.asked("/v1/capsule-runs")] == ["1000", "1000", "1000", "1000", "200"]


# ---- many at once ----


def test_attempts_of_an_interaction_come_whole_though_a_page_holds_few(server, mt):
    def page(x):
        number = int(x.query.get("after", 0)) + 1
        x.answer({"items": [{"number": number, "answer": "x"}], "next": str(number) if number < 3 else None})

    server.on("GET", "/v1/interaction-runs/7/attempts", page)
    assert [attempt.number for attempt in mt.interaction_runs.attempts("7")] == [1, 2, 3]


def test_connections_are_bounded_and_everybody_gets_his_turn(server, clients):
    mt = clients(server.url, max_connections=5)
    server.on("GET", "/v1/whoami", lambda x: (threading.Event().wait(0.01), x.answer(WHO)))
    done = []
    threads = [threading.Thread(target=lambda: done.append(mt.whoami().name)) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert done == ["ada"] * 60 and server.most <= 5


def test_long_waits_make_room_where_others_queue(server, clients):
    mt = clients(server.url, max_connections=2)
    server.on(
        "GET",
        "/v1/capsule-runs/r",
        lambda x: (
            threading.Event().wait(min(1.5, float(x.query.get("wait", 0)))),
            x.answer({"id": "r", "status": "Running"}),
        ),
    )
    server.on("GET", "/v1/whoami", WHO)
    waiters = [threading.Thread(target=lambda: mt.capsule_runs.wait("r", timeout=4)) for _ in range(6)]
    for thread in waiters:
        thread.start()
    server.wait_for("/v1/capsule-runs/r", 2)
    assert mt.whoami().name == "ada"
    for thread in waiters:
        thread.join(30)
    assert {x.query["wait"] for x in server.asked("/v1/capsule-runs/r") if "wait" in x.query} >= {"1"}
