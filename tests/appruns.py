# SPDX-License-Identifier: Apache-2.0
"""Apps that tests deploy into a namespace of their own, and run."""
import time


class Apps:
    """The apps of one namespace, as one user sees them."""

    def __init__(self, api, ns, headers=None):
        self.api, self.ns, self.headers = api, ns, headers

    def call(self, method, path, body=None, expect=(200, 201), headers=None):
        return self.api.call(method, path, body, expect, {**(self.headers or {}), **(headers or {})})

    def refused(self, method, path, body=None):
        """(status, the whole problem) of what is not done."""
        status, answer = self.api.server.request(method, path, body, self.headers)
        assert status >= 400 and answer["status"] == status, (method, path, status, answer)
        return status, answer

    def deploy(self, **programs):
        """NAME = the text of NAME.mtc, or a dict of the app's files."""
        files = {}
        for name, program in programs.items():
            for file, text in ({f"{name}.mtc": program} if isinstance(program, str) else program).items():
                files[f"apps/{name}/{file}"] = text
        self.api.deploy(self.ns, files)

    def runs_of(self, name):
        return f"/v1/namespaces/{self.ns}/apps/{name}/runs"

    def start(self, name, inputs=None, headers=None, expect=201, **body):
        return self.call("POST", self.runs_of(name), {"inputs": inputs or {}, **body}, expect, headers)

    def end(self, run, seconds=60):
        """Waits until the run has ended; with its console."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0, min(30, int(deadline - time.monotonic())))
            answer = self.call("GET", f"/v1/app-runs/{run['id']}?wait={left}&console=true")
            if answer["endReason"]:
                return answer
            assert time.monotonic() < deadline, f"the run has not ended in {seconds} s: {answer}"

    def run(self, name, inputs=None, **body):
        return self.end(self.start(name, inputs, **body))

    def lines(self, run, after=0, what="console", more=""):
        return self.call("GET", f"/v1/app-runs/{run['id']}/{what}?after={after}&wait=30{more}")

    def cancel(self, run):
        return self.call("POST", f"/v1/app-runs/{run['id']}/cancel?wait=30", expect=200)

    def list(self, query=""):
        return self.call("GET", f"/v1/app-runs?namespace={self.ns}{query}")["items"]

    def open_gate(self):
        """Lets programs go on that wait in gate() (programs.py)."""
        self.api.write(self.ns, "work", "/go", "")
