#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends the same bytes to src/http and to Node's HTTP parser. Usage: differential.py HTTP-TESTD.

Each case is one connection. Both servers report the requests that they took (method, target, body);
a refusal is an answer 4xx or 5xx that closes. What Node refuses we must refuse, and what both take
must be read alike. Where we refuse and Node does not is written down in STRICTER. Prints TAP.
"""

import json
import random
import shutil
import socket
import subprocess
import sys

WAIT = 20

NODE = r"""
const http = require('http');
const server = http.createServer({ keepAliveTimeout: 20000 }, (q, a) => {
  const parts = [];
  q.on('data', d => parts.push(d));
  q.on('end', () => {
    const b = Buffer.from(JSON.stringify({ method: q.method, target: q.url,
      body: Buffer.concat(parts).toString('latin1') }));
    a.writeHead(200, { 'Content-Length': q.method === 'HEAD' ? 0 : b.length });
    a.end(b);
  });
});
server.on('checkContinue', (q, a) => server.emit('request', q, a));
server.listen(0, '127.0.0.1', () => console.log('port', server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
"""

H = b"Host: a\r\n"


def post(fields, body=b"", version=b"1.1"):
    return b"POST /p HTTP/%s\r\n%s%s\r\n%s" % (version, H, fields, body)


def get(fields=b"", target=b"/", version=b"1.1", method=b"GET"):
    return b"%s %s HTTP/%s\r\n%s%s\r\n" % (method, target, version, H, fields)


def chunked(body):
    return post(b"Transfer-Encoding: chunked\r\n", body)


CASES = {
    "plain": get(),
    "length": post(b"Content-Length: 5\r\n", b"hello"),
    "chunks": chunked(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    "pipelined": get(target=b"/1") + post(b"Content-Length: 2\r\n", b"ab") + get(target=b"/3"),
    # The odd requests of docs/decisions/0001-http-core.md.
    "length twice, differing": post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!"),
    "length twice, the same": post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"),
    "length and chunked": post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                               b"0\r\n\r\n"),
    "chunked and length": post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                               b"0\r\n\r\n"),
    "blank before the colon": post(b"Content-Length : 5\r\n", b"hello"),
    "plus sign": post(b"Content-Length: +5\r\n", b"hello"),
    "minus sign": post(b"Content-Length: -5\r\n", b"hello"),
    "hexadecimal length": post(b"Content-Length: 0x5\r\n", b"hello"),
    "length as a list": post(b"Content-Length: 5, 5\r\n", b"hello"),
    "xchunked": post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
    "chunked with a vertical tab": post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
    "chunked, identity": post(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"),
    "chunked twice": post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                          b"0\r\n\r\n"),
    "chunked in HTTP/1.0": post(b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"1.0"),
    "bare LF": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare LF after a field": b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "bare LF at the end": b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    "bare CR in a value": get(b"X: a\rb\r\n"),
    "CR CR LF": b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
    "folded": get(b"X: a\r\n b\r\n"),
    "folded with a tab": get(b"X: a\r\n\tb\r\n"),
    "two Hosts": get(H),
    "two Hosts, differing": get(b"Host: b\r\n"),
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "NUL in a value": get(b"X: a\0b\r\n"),
    "NUL in a name": get(b"X\0Y: b\r\n"),
    "DEL in a value": get(b"X: a\x7fb\r\n"),
    "escape character in a value": get(b"X: a\x1bb\r\n"),
    "above 127 in a value": get(b"X: \xe9\r\n"),
    "above 127 in a name": get(b"X\xe9: a\r\n"),
    "empty name": get(b": a\r\n"),
    "no colon": get(b"X\r\n"),
    "blank in a name": get(b"X Y: a\r\n"),
    "bracket in a name": get(b"X(: a\r\n"),
    "empty value": get(b"X:\r\n"),
    "blanks round a value": get(b"X: \t a \t \r\n"),
    "blank before the first field": b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "unknown method": get(method=b"BREW"),
    "lower-case method": get(method=b"get"),
    "WebDAV method": get(method=b"PROPFIND"),
    "TRACE": get(method=b"TRACE"),
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD": get(method=b"HEAD"),
    "DELETE": get(method=b"DELETE"),
    "PATCH with a body": post(b"Content-Length: 2\r\n", b"ab").replace(b"POST", b"PATCH"),
    "GET with a body": get(b"Content-Length: 2\r\n") + b"ab" + get(target=b"/next"),
    "OPTIONS *": get(method=b"OPTIONS", target=b"*"),
    "HTTP/1.0": b"GET / HTTP/1.0\r\n\r\n",
    "HTTP/1.0 POST without length": b"POST / HTTP/1.0\r\n\r\n",
    "HTTP/0.9": get(version=b"0.9"),
    "HTTP/1.2": get(version=b"1.2"),
    "HTTP/2.0": get(version=b"2.0"),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "version of one digit": b"GET / HTTP/1\r\nHost: a\r\n\r\n",
    "version with more": b"GET / HTTP/1.1x\r\nHost: a\r\n\r\n",
    "lower-case version": b"GET / http/1.1\r\nHost: a\r\n\r\n",
    "blank after the version": b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "two blanks before the target": b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "two blanks after the target": b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
    "tab before the target": b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "blank in the target": get(target=b"/a b"),
    "NUL in the target": get(target=b"/a\0b"),
    "relative target": get(target=b"a"),
    "empty target": b"GET  HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": get(target=b"/a#b"),
    "quote in the target": get(target=b'/a"b'),
    "brackets in the query": get(target=b"/?a[]=1"),
    "above 127 in the target": get(target=b"/\xc3\xa9"),
    "bad escape": get(target=b"/%zz"),
    "escaped NUL": get(target=b"/%00"),
    "absolute target": get(target=b"http://a/x"),
    "absolute target, another host": get(target=b"http://b/x"),
    "an empty line first": b"\r\n" + get(),
    "three empty lines first": b"\r\n\r\n\r\n" + get(),
    "LF first": b"\n" + get(),
    "blank first": b" " + get(),
    "unknown expectation": post(b"Expect: x\r\nContent-Length: 2\r\n", b"ab"),
    "odd Connection": get(b"Connection: a b\r\n"),
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40,
    "long header": get(b"X: " + b"a" * 50000 + b"\r\n"),
    "150 fields": get(b"X: y\r\n" * 150),
    # Chunks.
    "extension": chunked(b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    "quoted extension": chunked(b'5;a="b c"\r\nhello\r\n0\r\n\r\n'),
    "empty extension": chunked(b"5;\r\nhello\r\n0\r\n\r\n"),
    "extension without a name": chunked(b"5;=b\r\nhello\r\n0\r\n\r\n"),
    "extension with LF": chunked(b"5;a\n\r\nhello\r\n0\r\n\r\n"),
    "extension with CR": chunked(b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    "extension in an open quote": chunked(b'5;a="\r\nhello\r\n0\r\n\r\n'),
    "long extension": chunked(b"5;" + b"a" * 20000 + b"\r\nhello\r\n0\r\n\r\n"),
    "blank after the size": chunked(b"5 \r\nhello\r\n0\r\n\r\n"),
    "blank before the size": chunked(b" 5\r\nhello\r\n0\r\n\r\n"),
    "0x size": chunked(b"0x5\r\nhello\r\n0\r\n\r\n"),
    "signed size": chunked(b"+5\r\nhello\r\n0\r\n\r\n"),
    "underscore in the size": chunked(b"0_5\r\nhello\r\n0\r\n\r\n"),
    "huge size": chunked(b"ffffffffffffffff1\r\nhello\r\n0\r\n\r\n"),
    "wrapping size": chunked(b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "zeros before the size": chunked(b"0005\r\nhello\r\n0\r\n\r\n"),
    "no size": chunked(b"\r\nhello\r\n0\r\n\r\n"),
    "LF after the size": chunked(b"5\nhello\r\n0\r\n\r\n"),
    "LF after the data": chunked(b"5\r\nhello\n0\r\n\r\n"),
    "data too long": chunked(b"5\r\nhello!\r\n0\r\n\r\n"),
    "CR alone after the size": chunked(b"5\rXhello\r\n0\r\n\r\n"),
    "LF at the end": chunked(b"5\r\nhello\r\n0\r\n\n"),
    "trailer": chunked(b"5\r\nhello\r\n0\r\nX-T: v\r\n\r\n") + get(target=b"/next"),
    "trailer with LF": chunked(b"0\r\nX: y\n\r\n"),
    "trailer folded": chunked(b"0\r\nX: y\r\n z\r\n\r\n"),
    "trailer blank before the colon": chunked(b"0\r\nX : y\r\n\r\n"),
    "trailer Content-Length": chunked(b"0\r\nContent-Length: 5\r\n\r\n"),
    "trailer Transfer-Encoding": chunked(b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailer NUL": chunked(b"0\r\nX: a\0\r\n\r\n"),
    # What hides a second request.
    "smuggled by length": post(b"Content-Length: 0\r\nContent-Length: 44\r\n",
                               get(target=b"/hidden")),
    "smuggled by LF": b"GET / HTTP/1.1\r\nHost: a\r\nX: y\n\r\nGET /hidden HTTP/1.1\r\n\r\n",
    "smuggled by chunk": chunked(b"1\r\nZ\r\nQ\r\n\r\n") + get(target=b"/hidden"),
}

# Where Node takes what we refuse, and why we do.
STRICTER = {
    "length twice, the same": "one field once",
    "two Hosts": "RFC 9112 3.2",
    "two Hosts, differing": "RFC 9112 3.2",
    "WebDAV method": "not known",
    "TRACE": "not known",
    "two blanks before the target": "grammar",
    "two blanks after the target": "grammar",
    "fragment": "RFC 3986",
    "quote in the target": "RFC 3986",
    "brackets in the query": "RFC 3986",
    "above 127 in the target": "RFC 3986",
    "bad escape": "RFC 3986",
    "escaped NUL": "no name holds a NUL",
    "absolute target, another host": "two hosts",
    "three empty lines first": "one is passed over",
    "LF first": "grammar",
    "odd Connection": "grammar",
    "150 fields": "limit",
    "HTTP/1.0 POST without length": "its body could not be framed",
    "gzip, chunked": "one coding is known",
    "chunked twice": "one field once",
    "chunked in HTTP/1.0": "RFC 9112 6.1",
    "length as a list": "a plain number",
    "empty extension": "grammar",
    "extension without a name": "grammar",
    "extension in an open quote": "grammar",
    "trailer Transfer-Encoding": "framing in a trailer",
    "trailer Content-Length": "framing in a trailer",
}


class Child:
    def __init__(self, *args):
        self.p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        self.port = int(self.p.stdout.readline().split()[1])

    def end(self):
        self.p.stdin.close()
        self.p.wait(WAIT)
        self.p.stdout.close()


def answers(port, data, patience):
    """The requests that the server took, and whether it refused or waits for more."""
    s = socket.create_connection(("127.0.0.1", port), WAIT)
    # What follows tells that the connection still lives and is in step. (After HTTP/1.0 it ends.)
    data += b"" if b"HTTP/1.0" in data else b"GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    got = b""
    try:
        s.sendall(data)
        s.settimeout(patience)
        while chunk := s.recv(65536):
            got += chunk
        end = "closed"
    except socket.timeout:
        end = "waits"
    except ConnectionError:
        end = "closed"
    s.close()
    taken, refused = [], False
    while b"\r\n\r\n" in got:
        head, got = got.split(b"\r\n\r\n", 1)
        status = int(head.split(b" ", 2)[1])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        if status == 100:
            continue
        if status != 200:
            refused = True
            break
        # To HEAD, ours says a length and sends nothing.
        if got[:1] == b"{":
            q = json.loads(got[:length])
            got = got[length:]
            taken.append((q["method"], q["target"], q["body"]))
        else:
            taken.append(("HEAD", "", ""))
    return taken, refused or (end == "closed" and not taken), end


def check(name, data, ours, nodes, patience=0.7):
    a, a_refused, a_end = answers(ours.port, data, patience)
    b, b_refused, b_end = answers(nodes.port, data, patience)
    if a == b and a_refused == b_refused:
        return None
    # Node may lose the answers before a refusal: it cuts the connection at once.
    if a_refused and b_refused and b == a[:len(b)]:
        return None
    if a_refused and a == b[:len(a)]:
        if b_refused or b_end == "waits":
            return None  # both refuse, or Node waits for what will never be whole
        return None if name in STRICTER or name.startswith("random") else \
            f"only we refuse: {b} {b_end}"
    return f"ours {a} {a_refused} {a_end}; Node {b} {b_refused} {b_end}"


def mutations(count):
    """Cases with a byte or two changed, added or left out; the same ones each time."""
    rng = random.Random(20261130)
    names = sorted(n for n, d in CASES.items() if len(d) < 400)
    odd = [b"\r", b"\n", b"\0", b" ", b"\t", b":", b";", b",", b"\r\n", b"\x0b", b"\xff", b"0", b"+"]
    for i in range(count):
        name = rng.choice(names)
        data = bytearray(CASES[name])
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(data))
            kind = rng.randrange(3)
            if kind == 0:
                data[at:at + 1] = rng.choice(odd)
            elif kind == 1:
                data[at:at] = rng.choice(odd)
            else:
                del data[at]
        yield f"random {i} of {name}", bytes(data)


def main():
    node = shutil.which("node")
    if not node:
        print("1..0 # SKIP needs node")
        return 0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    ours, nodes = Child(sys.argv[1]), Child(node, "-e", NODE)
    failed = 0
    cases = list(CASES.items()) + list(mutations(count))
    for i, (name, data) in enumerate(cases, 1):
        # One that waits for more is told from one that is slow by its time: where they differ it is a long one.
        why = check(name, data, ours, nodes) and check(name, data, ours, nodes, WAIT / 2)
        failed += why is not None
        print(f"{'not ok' if why else 'ok'} {i} - {name}")
        if why:
            print(f"# {data[:200]!r}\n# {why}", flush=True)
    ours.end()
    nodes.end()
    print(f"1..{len(cases)}")
    return 1 if failed else 0


sys.exit(main())
