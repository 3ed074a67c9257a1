# SPDX-License-Identifier: Apache-2.0
"""Interactions and their runs for the server made of paper."""
import time

from fake import NOW, Problem

MODEL = "deepseek.deepseek-v4-flash"


class Interactions:
    """Runs that end when a test says so: say(), answer(), wrong() and fail() are the model."""

    def __init__(self, fake):
        self.fake = fake
        self.names = ["next"]
        self.schema = {"solution": "answer"}  # {}: any text is an answer
        self.runs = []  # the newest first
        at = "/v1/namespaces/work/interactions"
        fake.on("GET", at, lambda r, m: fake.page(r, [self.item(name) for name in self.names]))
        fake.on("GET", f"{at}/([^/]+)", lambda r, m: self.shown_interaction(m.group(1)))
        fake.on("POST", f"{at}/([^/]+)/runs", lambda r, m: self.start(r, m.group(1)))
        fake.on("GET", "/v1/interaction-runs", self.list)
        fake.on("GET", "/v1/interaction-runs/([^/]+)", lambda r, m: self.get(r, self.find(m.group(1))))
        fake.on("GET", "/v1/interaction-runs/([^/]+)/attempts",
                lambda r, m: self.attempts(r, self.find(m.group(1))))
        fake.on("GET", "/v1/interaction-runs/([^/]+)/text", lambda r, m: self.text(r, self.find(m.group(1))))
        fake.on("POST", "/v1/interaction-runs/([^/]+)/cancel", lambda r, m: self.cancel(self.find(m.group(1))))

    @staticmethod
    def item(name):
        return {"name": name, "namespace": "work", "version": 2, "dateCreated": NOW, "dateUpdated": NOW}

    def shown_interaction(self, name):
        if name not in self.names:
            raise Problem(404, "notFound", f"no interaction '{name}' in namespace 'work'")
        inputs = [{"name": "question", "description": "", "required": True},
                  {"name": "transcript", "description": "What was run so far", "required": False}]
        return {**self.item(name), "versions": [{"version": 2}, {"version": 1}],
                "definition": {"inputs": {"prompts": inputs}, "attempts": 3, **({"schema": self.schema} if self.schema else {})}}

    def start(self, r, name):
        if name not in self.names:
            raise Problem(404, "notFound", f"no interaction '{name}' in namespace 'work'")
        known = [run for run in self.runs if run["key"] == r.headers["Idempotency-Key"]]
        if known:
            return 200, self.shown(known[0])
        run = {"id": f"01a22acb-0203-7000-b000-{len(self.runs):012x}", "key": r.headers["Idempotency-Key"],
               "namespace": "work", "interaction": name, "version": 2, "model": MODEL, "status": "Running",
               "endReason": None, "failureDetails": "", "output": None, "inputs": r.json.get("inputs", {}),
               "startedBy": "ada", "dateCreated": NOW, "dateEnded": None, "maxDuration": "00:05:00",
               "attemptCount": 0, "tokensIn": None, "tokensOut": None, "cost": None, "attempts": [], "said": b"", "stream": 7}
        self.runs.insert(0, run)
        self.ask(run)
        return 201, self.shown(run)

    # ---- what happens ----

    @staticmethod
    def ask(run):
        before = run["attempts"]
        messages = [{"role": "system", "content": "You answer."}, {"role": "user", "content": "Which\nregion?"}]
        for attempt in before:
            messages += [{"role": "assistant", "content": attempt["answer"]},
                         {"role": "user", "content": "Wrong: " + attempt["faults"][0]}]
        run["attempts"].append({"number": len(before) + 1, "outcome": None, "faults": [], "messages": messages, "answer": "",
                                "reasoning": "", "model": None, "httpStatus": None, "requests": 1, "tokensIn": None,
                                "tokensOut": None, "dateStarted": NOW, "dateEnded": None})
        run["attemptCount"] = len(run["attempts"])
        Interactions.say_anew(run)

    def say(self, text):
        self.runs[0]["said"] += text.encode()

    @staticmethod
    def say_anew(run):
        run.update(said=b"", stream=run["stream"] + 1)

    def end_attempt(self, outcome, text, **more):
        self.runs[0]["attempts"][-1].update(outcome=outcome, answer=text, model="flash", httpStatus=200, tokensIn=20,
                                            tokensOut=5, dateEnded=NOW.replace(":17.", ":19."), **more)

    def wrong(self, text, fault):
        self.end_attempt("wrongAnswer", text, faults=[fault], reasoning="It must be North.", requests=2)
        self.ask(self.runs[0])

    def answer(self, text):
        self.end_attempt("answered", text)
        self.runs[0].update(status="Finished", endReason="answered", output=text, dateEnded=NOW, tokensIn=20, tokensOut=5,
                            cost="0.0001")

    def fail(self, reason, details, text=""):
        self.end_attempt(reason, text)
        self.runs[0].update(status="Error", endReason=reason, failureDetails=details, dateEnded=NOW)

    def cancel(self, run):
        if not run["endReason"]:
            run.update(status="Error", endReason="cancelled", cancelledBy="ada", failureDetails="cancelled by ada")
        return self.shown(run)

    # ---- answers ----

    @staticmethod
    def attempts(r, run):
        """Pages of one, as of long answers."""
        rest = [a for a in run["attempts"] if a["number"] > int(r.query.get("after", 0))]
        return {"items": rest[:1], "next": str(rest[0]["number"]) if len(rest) > 1 else None}

    def find(self, run_id):
        for run in self.runs:
            if run["id"] == run_id:
                return run
        raise Problem(404, "notFound", f"no interaction run '{run_id}'")

    @staticmethod
    def shown(run):
        return {k: v for k, v in run.items() if k not in ("key", "attempts", "said", "stream")}

    @staticmethod
    def text(r, run):
        stream, start = int(r.query.get("stream", 0)), int(r.query.get("from", 0))
        deadline = time.monotonic() + int(r.query.get("wait", 0))
        while not run["endReason"] and stream == run["stream"] and len(run["said"]) <= start and time.monotonic() < deadline:
            time.sleep(0.01)
        if run["endReason"]:
            return {"stream": stream, "attempt": 0, "from": start, "text": "", "next": start, "ended": True}
        start = start if stream == run["stream"] else 0
        said = run["said"][start:]
        return {"stream": run["stream"], "attempt": run["attemptCount"], "from": start, "text": said.decode(),
                "next": start + len(said), "ended": False}

    def get(self, r, run):
        deadline = time.monotonic() + int(r.query.get("wait", 0))
        while not run["endReason"] and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.shown(run)

    def list(self, r, _):
        return self.fake.page(r, [self.shown(run) for run in self.runs
                                  if run["id"].endswith(r.query.get("idEnding", ""))
                                  and (r.query.get("mine") != "true" or run["startedBy"] == "ada")])
