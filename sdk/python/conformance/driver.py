#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios of sdk/conformance against a live server and prints TAP: driver.py FILE.json…

sdk/conformance/README.md has the form of the files; the server is the one of MAITENTO_URL.
"""
from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from maitento import CapsuleCommandAbortedError, Maitento, MaitentoError

OPERATIONS = json.loads(
    (Path(__file__).resolve().parents[2] / "conformance" / "operations.json").read_text(encoding="utf-8")
)
WORDS = {"async": "run_async", "from": "start"}  # where Python has another word


class Failed(Exception):
    """What a scenario wanted is not so."""


def snake(name: str) -> str:
    return WORDS.get(name) or re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found.group().lower(), name)


def member(value: Any, name: str) -> Any:
    """A member by its name in the API, read as Python spells it."""
    if isinstance(value, (list, tuple)):
        return value[int(name)] if int(name) < len(value) else None
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, BaseException):
        if name == "message":
            return str(value)
        if name == "kind":
            return "CapsuleCommandAbortedError" if isinstance(value, CapsuleCommandAbortedError) else "MaitentoError"
    return getattr(value, snake(name), None)


def at(value: Any, path: str) -> Any:
    for name in [] if path == "." else path.split("."):
        value = member(value, name)
    return value


# ---- what is expected ----


def equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return isinstance(value, (list, tuple)) and len(value) == len(wanted) and all(map(equal, value, wanted))
    if isinstance(wanted, dict):
        return all(equal(member(value, name), item) for name, item in wanted.items()) and (
            not isinstance(value, Mapping) or len(value) == len(wanted)
        )
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    return bool(value == wanted)


MATCHERS: Dict[str, Callable[[Any, Any], bool]] = {
    "$matches": lambda value, wanted: isinstance(value, str) and re.search(wanted, value) is not None,
    "$contains": lambda value, wanted: value is not None and wanted in value,
    "$starts": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "$ends": lambda value, wanted: isinstance(value, str) and value.endswith(wanted),
    "$length": lambda value, wanted: value is not None and len(value) == wanted,
    "$atLeast": lambda value, wanted: value is not None and value >= wanted,
    "$atMost": lambda value, wanted: value is not None and value <= wanted,
    "$has": lambda value, wanted: any(not differences(item, wanted) for item in value or []),
    "$not": lambda value, wanted: not fits(value, wanted),
}


def fits(value: Any, matcher: Any) -> bool:
    if isinstance(matcher, dict) and matcher and all(name in MATCHERS for name in matcher):
        return all(MATCHERS[name](value, wanted) for name, wanted in matcher.items())
    return equal(value, matcher)


def differences(value: Any, wanted: Mapping[str, Any]) -> List[str]:
    found = [(path, at(value, path), matcher) for path, matcher in wanted.items()]
    return [
        f"{path} is {item!r:.300}, wanted {json.dumps(matcher):.300}"
        for path, item, matcher in found
        if not fits(item, matcher)
    ]


# ---- values ----


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$repeat", "times"}:
            return value["$repeat"] * value["times"]
        return {name: filled(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if not isinstance(value, str):
        return value

    def saved(path: str) -> Any:
        first, _, rest = path.partition(".")
        if first not in names:
            raise Failed(f"nothing is saved as {first}")
        return at(names[first], rest or ".")

    whole = re.fullmatch(r"\$\{([^}]+)\}", value)
    return saved(whole[1]) if whole else re.sub(r"\$\{([^}]+)\}", lambda found: str(saved(found[1])), value)


# ---- operations ----


def write_project(folder: Path, files: Mapping[str, Any]) -> None:
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and "link" in content:
            place.symlink_to(content["link"])
        elif isinstance(content, dict):
            place.write_bytes(base64.b64decode(content["base64"]))
        else:
            text = content if isinstance(content, str) else "".join(line + "\n" for line in content)
            place.write_bytes(text.encode("utf-8"))


def call_files(client: Maitento, what: str, args: Dict[str, Any], folder: Path) -> Any:
    if "vfs" in args:
        files: Any = client.vfs.open(args.pop("vfs"))
    elif "vfsId" in args:
        files = client.vfs.open_by_id(args.pop("vfsId"))
    else:
        files = client.capsule_runs.files(args.pop("run"), args.pop("user", None))
    if what == "read":
        return base64.b64encode(files.read(args["path"])).decode()
    if what == "write":
        return files.write(args["path"], base64.b64decode(args["base64"]))
    if what not in ("upload", "download"):
        return positionally(getattr(files, snake(what)), f"files.{what}", args)
    progress: List[int] = []
    local = folder / "transfer"
    if what == "upload":
        local.write_text(args["text"], encoding="utf-8", newline="")
        files.upload(args["path"], local, on_progress=lambda done, _=None: progress.append(done))
        return {"progress": progress}
    files.download(args["path"], local, on_progress=lambda done, _=None: progress.append(done))
    return {"text": local.read_bytes().decode("utf-8"), "progress": progress}


def next_event(events: Any, match: Mapping[str, Any]) -> Any:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        event = events.next(timeout=end - time.monotonic())
        if event is not None and not differences(event, match):
            return event
    raise Failed(f"no event of {json.dumps(match)} came within 20 s")


def positionally(function: Callable[..., Any], name: str, args: Dict[str, Any]) -> Any:
    first = [args.pop(word) for word in OPERATIONS[name]["positional"] if word in args]
    return function(*first, **{snake(word): value for word, value in args.items()})


def call(client: Maitento, name: str, args: Dict[str, Any], folder: Path, output: Optional[Dict[str, str]]) -> Any:
    if name not in OPERATIONS:
        raise Failed(f"{name} is no operation")
    group, _, what = name.rpartition(".")
    if group == "files":
        return call_files(client, what, args, folder)
    if name == "events.next":
        return next_event(args["events"], args["match"])
    if name == "events.close":
        return args["events"].close()
    if name == "deploy":
        write_project(folder, args.pop("files"))
        args["folder"] = folder
    if group == "secrets" and "valueBase64" in args:
        args["value"] = base64.b64decode(args.pop("valueBase64"))
    if name == "shells.type":
        args["data"] = args.pop("text").encode("utf-8")
    if output is not None:

        def heard(chunk: Any) -> None:
            output[chunk.stream] += chunk.text

        args["onOutput"] = heard
    target = getattr(client, snake(group)) if group else client
    result = positionally(getattr(target, snake(what)), name, args)
    if name in ("capsuleRuns.output", "shells.output"):
        data = b"".join(result)
        return {"text": data.decode("utf-8", "replace"), "base64": base64.b64encode(data).decode()}
    if name == "events.open":
        result.start()
        return result
    return list(result) if isinstance(result, Iterator) else result


# ---- steps ----


class Scenario:
    def __init__(self, clients: Dict[str, Maitento], names: Dict[str, Any]):
        self.clients, self.names = dict(clients), dict(names)
        self.background: Dict[str, Any] = {}

    def run(self, steps: List[Dict[str, Any]]) -> None:
        for number, step in enumerate(steps, 1):
            name = next((step[kind] for kind in ("call", "join", "client", "check") if kind in step), "?")
            try:
                self.step(step)
            except Failed as failed:
                raise Failed(f"step {number}, {name}: {failed}") from failed
            except MaitentoError as error:
                raise Failed(f"step {number}, {name}: {type(error).__name__} {error.code}: {error}") from error
            except Exception as error:
                raise Failed(f"step {number}, {name}: {type(error).__name__}: {error}") from error

    def step(self, step: Dict[str, Any]) -> None:
        if "client" in step:
            options = filled(step.get("with", {}), self.names)
            try:
                self.clients[step["client"]] = Maitento(**{snake(name): value for name, value in options.items()})
                self.judge(step, None, None, 0.0)
            except MaitentoError as error:
                self.judge(step, None, error, 0.0)
        elif "check" in step:
            self.judge(step, filled(step["check"], self.names), None, 0.0)
        elif "join" in step:
            thread, outcome = self.background.pop(step["join"])
            thread.join(120)
            if thread.is_alive():
                raise Failed("it has not ended after 120 s")
            self.judge(step, *outcome)
        elif "background" in step:
            outcome: List[Any] = []
            thread = threading.Thread(target=lambda: outcome.extend(self.ask(step)), daemon=True)
            thread.start()
            self.background[step["background"]] = (thread, outcome)
        elif "until" in step:
            end = time.monotonic() + float(step.get("within", 20))
            while True:
                value, error, seconds = self.ask(step)
                if not error and not (wrong := differences(value, filled(step["until"], self.names))):
                    return self.judge(step, value, error, seconds)
                if time.monotonic() > end:
                    raise Failed(f"it did not come to it: {error or wrong[0]}")
                time.sleep(0.1)
        else:
            self.judge(step, *self.ask(step))

    def ask(self, step: Dict[str, Any]) -> Any:
        """What came of a call: result, error, seconds."""
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="maitento-conformance-"))
        output = {"standard": "", "error": ""} if "output" in step else None
        try:
            args = filled(step.get("with", {}), self.names)
            return (
                call(self.clients[step.get("on", "")], step["call"], args, folder, output),
                None,
                time.monotonic() - began,
            )
        except Exception as error:
            return None, error, time.monotonic() - began
        finally:
            shutil.rmtree(folder)
            if output is not None:
                self.names[step["output"]] = output

    def judge(self, step: Dict[str, Any], value: Any, error: Optional[Exception], seconds: float) -> None:
        if error and ("error" not in step or not isinstance(error, MaitentoError)):
            raise error
        if "error" in step and not error:
            raise Failed(f"it did not fail: {value!r:.300}")
        wanted = filled(step.get("error") or step.get("expect") or {}, self.names)
        wrong = differences(error or value, wanted)
        if "seconds" in step and not fits(seconds, step["seconds"]):
            wrong.append(f"it took {seconds:.1f} s, wanted {json.dumps(step['seconds'])}")
        if wrong:
            raise Failed("; ".join(wrong))
        if "save" in step:
            self.names[step["save"]] = error or value


class Tap:
    count = failed = 0

    def tell(self, name: str, why: Optional[str] = None, skip: str = "") -> None:
        self.count += 1
        self.failed += why is not None
        print(f"{'not ' if why is not None else ''}ok {self.count} - {name}{f' # SKIP {skip}' if skip else ''}")
        for line in (why or "").splitlines():
            print(f"# {line}")
        sys.stdout.flush()


def run_file(tap: Tap, path: str) -> None:
    theme = json.loads(Path(path).read_text(encoding="utf-8"))
    names = {
        "unique": "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(8)),
        "url": os.environ.get("MAITENTO_URL"),
        "provider": os.environ.get("MT_PROVIDER"),
        "stranger": os.environ.get("MT_STRANGER"),
    }
    lacking = {name for name in ("provider", "stranger") if not names[name]}
    needs = set(theme.get("needs", ()))
    namespace = filled(theme["namespace"], names) if "namespace" in theme else None
    with Maitento(namespace=namespace) as client:
        setup, broken = Scenario({"": client}, names), None
        try:
            if not needs & lacking:
                setup.run(theme.get("setup", []))
        except Failed as failed:
            broken = f"setup: {failed}"
        for scenario in theme["scenarios"]:
            title, missing = f"{theme['theme']}: {scenario['name']}", (needs | set(scenario.get("needs", ()))) & lacking
            try:
                if missing:
                    tap.tell(title, skip="no " + ", ".join(sorted(missing)))
                elif broken:
                    tap.tell(title, broken)
                else:
                    Scenario(setup.clients, setup.names).run(scenario["steps"])
                    tap.tell(title)
            except Failed as failed:
                tap.tell(title, str(failed))
        for step in theme.get("teardown", []):
            try:
                setup.step(step)
            except Exception as error:
                print(f"# teardown: {error}")


def main(paths: List[str]) -> int:
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    tap = Tap()
    for path in paths:
        run_file(tap, path)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
