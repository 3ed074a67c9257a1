# SPDX-License-Identifier: Apache-2.0
"""The world as tests of the network have it, in the namespace that it is started in: an HTTP server on
every address and on the ports of mail, and a name server. Prints a line when it is ready.
"""
import http.server
import json
import socket
import socketserver
import struct
import sys
import threading
import time
from ipaddress import ip_address

# name -> type -> addresses
NAMES = {
    "public.test": {1: ["198.51.100.7"], 28: ["2001:db8:99::7"]},
    "four.test": {1: ["198.51.100.7"]},
    "private.test": {1: ["10.9.9.9"], 28: ["fd00:9::9"]},
    "metadata.test": {1: ["169.254.169.254"]},
    "loopback.test": {1: ["127.0.0.1"], 28: ["::1"]},
    "rebind.test": {1: ["198.51.100.7", "10.9.9.9"]},
    "mapped.test": {28: ["::ffff:10.9.9.9"]},
    "many.test": {1: [f"198.51.100.{n}" for n in range(1, 200)]},
}
SILENT = "silent.test"  # is never answered
asked = []  # (name, type, protocol)


def read_name(m, at):
    labels = []
    while m[at]:
        labels.append(m[at + 1:at + 1 + m[at]].decode())
        at += 1 + m[at]
    return ".".join(labels).lower(), at + 1


def answer(m, protocol):
    name, at = read_name(m, 12)
    kind, = struct.unpack_from("!H", m, at)
    question = m[12:at + 4]
    asked.append((name, kind, protocol))
    if name == SILENT:
        return None
    if name == "asked.test":  # what was asked so far, as a text
        text = json.dumps(asked[-20:]).encode()[:250]
        records = [b"\xc0\x0c" + struct.pack("!HHIHB", 16, 1, 0, len(text) + 1, len(text)) + text]
        rcode = 0
    else:
        found = NAMES.get(name)
        rcode = 0 if found else 3
        records = [b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(ip_address(a).packed)) + ip_address(a).packed
                   for a in (found or {}).get(kind, [])]
    body = question + b"".join(records)
    if protocol == "udp" and len(body) > 500:
        return m[:2] + struct.pack("!5H", 0x8380, 1, 0, 0, 0) + question
    return m[:2] + struct.pack("!5H", 0x8180 | rcode, 1, len(records), 0, 0) + body


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        reply = answer(self.request[0], "udp")
        if reply:
            self.request[1].sendto(reply, self.client_address)


class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        while size := self.request.recv(2, socket.MSG_WAITALL):
            reply = answer(self.request.recv(struct.unpack("!H", size)[0], socket.MSG_WAITALL), "tcp")
            self.request.sendall(struct.pack("!H", len(reply)) + reply)


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"here": self.connection.getsockname()[0].removeprefix("::ffff:"),
                           "from": self.client_address[0].removeprefix("::ffff:")}).encode()
        self.send_response(200)
        if self.path.startswith("/slow"):  # a line every 50 ms, for as many seconds as the path says
            self.end_headers()
            for n in range(int(self.path.split("/")[2]) * 20):
                self.wfile.write(b"%d\n" % n)
                self.wfile.flush()
                time.sleep(0.05)
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Everywhere(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(self.request[0].upper(), self.client_address)


class UdpAt(socketserver.ThreadingUDPServer):
    """On one address, from which it answers."""

    def __init__(self, address):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 7007), Echo)


def main():
    resolvers, echoes = (words.split() for words in sys.argv[1:3])
    servers = [Everywhere(("::", port), Web) for port in (80, 25, 587)]
    servers += [UdpAt(address) for address in echoes]
    for address in resolvers:
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        servers.append(socketserver.ThreadingUDPServer((address, 53), Udp))
        servers.append(socketserver.ThreadingTCPServer((address, 53), Tcp))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()  # until whoever started it goes


main()
