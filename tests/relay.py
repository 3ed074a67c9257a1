# SPDX-License-Identifier: Apache-2.0
"""A TCP relay between a client and a server that can be cut, held off, and made silent."""
import socket
import threading


class Relay:
    """url is where clients come; what they send goes to 127.0.0.1:port."""

    def __init__(self, port):
        self.port = port
        self.pairs = []
        self.came = 0  # connections so far
        self.shut = False
        self.dead = set()  # pairs that pass nothing on, and tell nobody
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.shut:
                client.close()
                continue
            try:
                upstream = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            self.came += 1
            pair = (client, upstream)
            self.pairs.append(pair)
            for one, two in (pair, (upstream, client)):
                threading.Thread(target=self._pump, args=(one, two, pair), daemon=True).start()

    def _pump(self, one, two, pair):
        try:
            while data := one.recv(65536):
                if pair in self.dead:
                    return  # what came is lost, and both ends stay open
                two.sendall(data)
        except OSError:
            pass
        for s in (one, two):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mute(self):
        """The connections of now pass nothing on any more, without a word; those that come later work."""
        self.dead |= set(self.pairs)

    def cut(self, seconds=0):
        """Breaks all connections, and takes none for so long."""
        self.shut = True
        for pair in self.pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        timer = threading.Timer(seconds, self.open)
        timer.daemon = True  # no test's end waits for it
        timer.start()

    def open(self):
        self.shut = False

    def close(self):
        self.cut(0)
        self.listener.close()
