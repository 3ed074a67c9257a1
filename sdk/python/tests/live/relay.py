# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that cuts, holds off and falls silent."""
import socket
import threading


class Relay:
    def __init__(self, port):
        self.port = port
        self.away = False  # whoever comes is sent away
        self._muted = set()  # pairs that pass nothing on any more
        self.most = 0
        self._pairs = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.away:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            pair = (client, server)
            self._pairs.append(pair)
            self.most = max(self.most, len(self._pairs))
            for one, two in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(one, two, pair), daemon=True).start()

    def _pump(self, one, two, pair):
        try:
            while data := one.recv(65536):
                if pair not in self._muted:
                    two.sendall(data)
        except OSError:
            pass
        self._end(pair)

    def _end(self, pair):
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if pair in self._pairs:
            self._pairs.remove(pair)

    def cut(self, seconds=0.0):
        """Cuts all connections, and sends away who comes within so many seconds."""
        self.away = seconds > 0
        for pair in list(self._pairs):
            self._end(pair)
        if seconds:
            timer = threading.Timer(seconds, self._open)
            timer.daemon = True
            timer.start()

    def _open(self):
        self.away = False

    def mute(self):
        """The connections that are there say nothing any more; new ones work."""
        self._muted.update(self._pairs)

    def close(self):
        self.cut()
        self._listener.close()
