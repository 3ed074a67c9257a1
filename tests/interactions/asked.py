# SPDX-License-Identifier: Apache-2.0
"""Interactions that tests deploy into a namespace of their own, and run."""
import time

AGENT = 'model = @ref("deepseek.deepseek-v4-flash")\nprompt = "You answer questions."\n'
TASK = "Answer: %%question%%{{#if hint}} (%%hint%%){{/if}}\n"
SCHEMA = '{"type": "object", "required": ["answer"], "additionalProperties": false, "properties": {"answer": {"type": "string"}}}'


class Interactions:
    """The interactions of one namespace, as one user sees them."""

    def __init__(self, api, ns, headers=None):
        self.api, self.ns, self.headers = api, ns, headers

    def call(self, method, path, body=None, expect=(200, 201), headers=None):
        return self.api.call(method, path, body, expect, {**(self.headers or {}), **(headers or {})})

    def refused(self, method, path, body=None, headers=None):
        """The problem of what is not done."""
        status, answer = self.api.server.request(method, path, body, {**(self.headers or {}), **(headers or {})})
        assert status >= 400 and answer["status"] == status, (method, path, status, answer)
        return answer

    def deploy(self, name="next", schema=None, task=TASK, more="", **files):
        """An interaction that takes question, and hint where it is given."""
        files = {"agents/analyst.mtr": AGENT, f"prompts/{name}.md": task, **files}
        if schema:
            files[f"json/{name}.json"] = schema
            more += f'schema.solution = @json("{name}")\n'
        files[f"interactions/one-shot/{name}.mtr"] = (
            'agent = { name = "Analyst" agent = @ref("analyst") }\n' + f'task = @prompt("{name}")\n'
            + 'inputs.prompts = [{ name = "question" }, { name = "hint" required = false }]\n' + more)
        self.api.deploy(self.ns, files)

    def runs_of(self, name="next"):
        return f"/v1/namespaces/{self.ns}/interactions/{name}/runs"

    def start(self, inputs=None, name="next", headers=None, expect=201, **body):
        inputs = {"question": "Which region?"} if inputs is None else inputs
        return self.call("POST", self.runs_of(name), {"inputs": inputs, **body}, expect, headers)

    def get(self, run, wait=0):
        return self.call("GET", f"/v1/interaction-runs/{run['id']}?wait={wait}", expect=200)

    def end(self, run, seconds=60):
        """Waits until the run has ended."""
        deadline = time.monotonic() + seconds
        while not (answer := self.get(run, max(0, min(30, int(deadline - time.monotonic())))))["endReason"]:
            assert time.monotonic() < deadline, f"the run has not ended in {seconds} s: {answer}"
        return answer

    def run(self, inputs=None, name="next", **body):
        return self.end(self.start(inputs, name, **body))

    def attempts(self, run):
        """All of them, page by page."""
        found, after = [], 0
        while after is not None:
            page = self.call("GET", f"/v1/interaction-runs/{run['id']}/attempts?after={after}", expect=200)
            found, after = found + page["items"], page["next"]
        return found

    def cancel(self, run):
        return self.call("POST", f"/v1/interaction-runs/{run['id']}/cancel?wait=30", expect=200)

    def list(self, query=""):
        return self.call("GET", f"/v1/interaction-runs?namespace={self.ns}{query}", expect=200)["items"]
