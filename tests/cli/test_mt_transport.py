# SPDX-License-Identifier: Apache-2.0
"""The ways to a server: TCP, https, proxies, and connections that break."""
import json
import socket
import ssl
import subprocess
import threading

import pytest
from fake import Cut
from paper import MT, finish_next, vfs


def test_over_tcp_a_host_header_and_a_key(environment):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        seen = []

        def serve():
            connection, _ = listener.accept()
            with connection:
                seen.append(connection.recv(65536))
                body = b'{"name":"ada","role":"user","via":"key"}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                                   % len(body) + body)
        thread = threading.Thread(target=serve)
        thread.start()
        done = subprocess.run([MT, "whoami"], capture_output=True, timeout=30, check=True,
                              env={**environment, "MAITENTO_URL": f"http://127.0.0.1:{port}/",
                                   "MAITENTO_API_KEY": "mt_x"})
        thread.join(10)
    assert done.stdout == b"ada (user)\n"
    assert f"Host: 127.0.0.1:{port}\r\n".encode() in seen[0] and b"Authorization: Bearer mt_x\r\n" in seen[0]


needs_curl = pytest.mark.skipif("capsule" in MT, reason="this build is without libcurl")


@pytest.fixture()
def https(fake, tmp_path):
    """The fake behind TLS: the environment that reaches it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem", "-out",
                    tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    port = fake.start_tcp(context)
    return {"MAITENTO_URL": f"https://localhost:{port}/", "SSL_CERT_FILE": str(tmp_path / "cert.pem")}


def use_files(mt, tree, tmp_path, env):
    (tmp_path / "f").write_bytes(b"x" * 1_000_000)
    mt("cp", "f", "/vfs/data/f", env=env)
    mt("cp", "-", "/vfs/data/g", env=env, stdin=b"y" * 1_000_000)
    assert tree == {b"/f": b"x" * 1_000_000, b"/g": b"y" * 1_000_000}
    mt("cp", "/vfs/data/g", "back", env=env)
    assert (tmp_path / "back").read_bytes() == tree[b"/g"]
    assert mt("cat", "/vfs/data/f", env=env).stdout == tree[b"/f"]
    mt("cat", "/vfs/data/none", env=env, code=3)
    mt("mkdir", "/vfs/data/d", env=env)
    mt("rm", "/vfs/data/d", env=env)
    (tmp_path / "empty").write_bytes(b"")
    mt("cp", "empty", "/vfs/data/e", env=env)
    assert tree[b"/e"] == b"" and b"/d" not in tree


@needs_curl
def test_https(mt, fake, https, tmp_path):
    tree = vfs(fake)
    assert "ada" in mt("whoami", env={**https, "MAITENTO_API_KEY": "mt_good"}).out
    assert fake.requests[-1].headers["Authorization"] == "Bearer mt_good"
    mt("whoami", env={**https, "MAITENTO_API_KEY": "mt_bad"}, code=4)
    use_files(mt, tree, tmp_path, https)
    finish_next(fake)
    assert "Finished" in mt("capsule-start", "report", env=https).err


@needs_curl
def test_https_checks_the_certificate(mt, https, tmp_path):
    del https["SSL_CERT_FILE"]
    done = mt("whoami", env=https, code=6)
    assert "certificate" in done.err


@needs_curl
def test_https_cut_off(mt, fake, https):
    def cut(r, m):
        raise Cut
    fake.on("GET", "/v1/whoami", cut)
    fake.on("POST", "/v1/namespaces", cut)
    assert json.loads(mt("whoami", "--json", env=https, code=6).err)["code"] == "unreachable"
    assert json.loads(mt("namespace-create", "x", "--json", env=https, code=6).err)["code"] == "outcomeUnknown"


@needs_curl
def test_a_proxy_for_http(mt, fake, tmp_path):
    tree = vfs(fake)
    env = {"MAITENTO_URL": "http://maitento.test:1234", "http_proxy": f"http://127.0.0.1:{fake.start_tcp()}"}
    assert "ada" in mt("whoami", env=env).out
    assert fake.requests[-1].headers["Host"] == "maitento.test:1234"
    use_files(mt, tree, tmp_path, env)
    # What is on this machine never goes through it.
    mt("whoami", env={**env, "MAITENTO_URL": "http://127.0.0.1:1"}, code=6)


def test_a_post_that_is_cut_off_is_unknown(mt, fake):
    def cut(r, m):
        raise Cut
    fake.on("POST", "/v1/namespaces", cut)
    assert "outcomeUnknown" in mt("namespace-create", "x", "--json", code=6).err


def test_an_upload_that_is_cut_off_is_known_to_be_undone(mt, environment, fake, tmp_path):
    vfs(fake)
    (tmp_path / "big").write_bytes(b"x" * 50_000_000)
    path = tmp_path / "half.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(8)

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                head = peer.recv(65536)
                if head.startswith(b"PUT"):
                    peer.recv(100_000)
                else:
                    body = b'{"path":"/","type":"folder"}'
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
                peer.close()
        threading.Thread(target=serve, daemon=True).start()
        done = mt("cp", "big", "/vfs/data@work/big", env={"MAITENTO_URL": f"unix:{path}"}, code=6, cwd=tmp_path)
        assert "nothing of it is kept" in done.err and "not known" not in done.err
        listener.shutdown(socket.SHUT_RDWR)
