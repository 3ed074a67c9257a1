# SPDX-License-Identifier: Apache-2.0
"""Apps and their runs for the server made of paper."""
import time

from fake import NOW, Problem


class Apps:
    """Runs that end when a test says so: print() and finish() are the program."""

    def __init__(self, fake):
        self.fake = fake
        self.apps = {"greet": ([{"name": "name", "type": "string"}, {"name": "times", "type": "int"}], "string")}
        self.runs = []  # the newest first
        fake.on("GET", "/v1/namespaces/work/apps", lambda r, m: fake.page(r, [self.item(name) for name in self.apps]))
        fake.on("GET", "/v1/namespaces/work/apps/([^/]+)", lambda r, m: self.shown_app(m.group(1)))
        fake.on("POST", "/v1/namespaces/work/apps/([^/]+)/runs", lambda r, m: self.start(r, m.group(1)))
        fake.on("GET", "/v1/app-runs", self.list)
        fake.on("GET", "/v1/app-runs/([^/]+)", lambda r, m: self.get(r, self.find(m.group(1))))
        fake.on("GET", "/v1/app-runs/([^/]+)/(console|log)", lambda r, m: self.lines(r, self.find(m.group(1)), m.group(2)))
        fake.on("POST", "/v1/app-runs/([^/]+)/cancel", lambda r, m: self.cancel(self.find(m.group(1))))
        fake.on("POST", "/v1/app-runs/([^/]+)/rerun", lambda r, m: self.rerun(r, self.find(m.group(1))))

    @staticmethod
    def item(name):
        return {"name": name, "namespace": "work", "version": 2, "dateCreated": NOW, "dateUpdated": NOW}

    def shown_app(self, name):
        if name not in self.apps:
            raise Problem(404, "notFound", f"no app '{name}' in namespace 'work'")
        inputs, returns = self.apps[name]
        return {**self.item(name), "versions": [{"version": 2}, {"version": 1}], "definition": {"duration": {}},
                "inputs": inputs, "returns": returns}

    # ---- starts ----

    def start(self, r, name, inputs=None, **more):
        if name not in self.apps:
            raise Problem(404, "notFound", f"no app '{name}' in namespace 'work'")
        known = [run for run in self.runs if run["key"] == r.headers["Idempotency-Key"]]
        if known:
            return 200, self.shown(known[0])
        run = {"id": f"01a22acb-0203-7000-a000-{len(self.runs):012x}", "key": r.headers["Idempotency-Key"],
               "namespace": "work", "app": name, "version": 2, "status": "Running", "endReason": None,
               "failureDetails": "", "failureCode": None, "failurePlace": None, "failureStack": [], "waitingFor": None,
               "inputs": r.json.get("inputs", {}) if inputs is None else inputs, "outputs": {}, "returnValue": None,
               "startedBy": "ada", "rerunOf": None, "dateCreated": NOW, "dateEnded": None, "maxDuration": "00:10:00",
               "consoleOutputsFullCount": 0, "console": [], "log": [], "first": 0, **more}
        self.runs.insert(0, run)
        return 201, self.shown(run)

    def rerun(self, r, run):
        return self.start(r, run["app"], run["inputs"], rerunOf=run["id"])

    # ---- what happens ----

    def print(self, text, run=None):
        run = run or self.runs[0]
        run["consoleOutputsFullCount"] += 1
        run["console"].append({"number": run["consoleOutputsFullCount"], "text": text, "date": NOW})

    def log(self, level, text):
        log = self.runs[0]["log"]
        log.append({"number": len(log) + 1, "level": level, "text": text, "date": NOW})

    def finish(self, value=None, run=None):
        (run or self.runs[0]).update(status="Finished", endReason="returned", returnValue=value, dateEnded=NOW)

    def fail(self, details, stack=(), place=None, reason="failed"):
        self.runs[0].update(status="Error", endReason=reason, failureDetails=details, failurePlace=place, dateEnded=NOW,
                            failureStack=[{"function": f, "place": p} for f, p in stack])

    def cancel(self, run):
        if not run["endReason"]:
            run.update(status="Error", endReason="cancelled", cancelledBy="ada", failureDetails="cancelled by ada")
        return self.shown(run)

    # ---- answers ----

    def find(self, run_id):
        for run in self.runs:
            if run["id"] == run_id:
                return run
        raise Problem(404, "notFound", f"no app run '{run_id}'")

    @staticmethod
    def shown(run, console=False):
        return {k: v for k, v in run.items() if k not in ("key", "console", "log", "first")} | (
            {"consoleOutputs": run["console"]} if console else {})

    @staticmethod
    def until(r, condition):
        deadline = time.monotonic() + int(r.query.get("wait", 0))
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)

    def get(self, r, run):
        self.until(r, lambda: run["endReason"])
        return self.shown(run, r.query.get("console") == "true")

    def lines(self, r, run, what):
        after, limit = int(r.query["after"]), int(r.query.get("limit", 3))

        def there():
            return [line for line in run[what] if line["number"] > after]
        self.until(r, lambda: there() or run["endReason"])
        ended, items = bool(run["endReason"]), there()[:limit]
        return {"items": items, "ended": ended and len(items) < limit,
                "next": items[-1]["number"] if items else after, "fullCount": run["consoleOutputsFullCount"]}

    def list(self, r, _):
        return self.fake.page(r, [self.shown(run) for run in self.runs
                                  if run["id"].endswith(r.query.get("idEnding", ""))
                                  and (r.query.get("mine") != "true" or run["startedBy"] == "ada")])
