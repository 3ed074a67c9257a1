"""Field cases as interactions meet them: O-35 to O-40, and the parts of O-04, O-14, O-26, O-31 and O-34 that are about models.
Each goes through the whole product, to a provider that says what the test tells it to.
"""
import email.utils
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mtserver
from conftest import Api, command_line

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "model"))
from provider import HANG, Provider, echo, fail, raw, say, sse, stream  # noqa: E402

KEY = "sk-CANARY-9c1e" + os.urandom(8).hex()
KEY_AT_START = "sk-CANARY-5d2f" + os.urandom(8).hex()
PROVIDERS = {"chat": "custom", "messages": "anthropic", "nobody": "ollama"}  # by the interaction that asks each
NOTE = {"type": "object", "properties": {"a": {"type": "integer"}, "note": {"type": "string"}}, "required": ["a", "note"],
        "additionalProperties": False}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Desk:
    """A server whose models a scripted provider plays, and one namespace for each project."""

    def __init__(self, server, provider):
        self.server, self.provider, self.api = server, provider, Api(server)
        for name, url, key in (("custom", provider.url, KEY), ("anthropic", provider.url, KEY),
                               ("ollama", f"http://127.0.0.1:{free_port()}/v1", None)):
            self.api.call("PUT", f"/v1/providers/{name}", {"baseUrl": url, "concurrency": 64, **({"key": key} if key else {})})

    def project(self, task="%%what%%", inputs=(("what", True),), schema=None, attempts=3, most="00:01:00", more=None):
        """A namespace with one interaction for each provider."""
        ns = self.api.namespace("models")
        files = {"prompts/task.md": task, **(more or {})}
        listing = ", ".join(f'{{ name = "{name}" required = {str(required).lower()} }}' for name, required in inputs)
        for name, provider in PROVIDERS.items():
            files[f"agents/{name}.mtr"] = f'model = @ref("{provider}.m-1")\nprompt = "You answer."\n'
            files[f"interactions/one-shot/{name}.mtr"] = (
                f'agent = {{ agent = @ref("{name}") }}\ntask = @prompt("task")\ninputs.prompts = [{listing}]\n'
                f'attempts = {attempts}\nduration.max = "{most}"\n' + ('schema.solution = @json("fits")\n' if schema else ""))
        if schema:
            files["json/fits.json"] = json.dumps(schema)
        self.api.deploy(ns, files)
        return ns

    def start(self, ns, inputs, name="chat"):
        inputs = inputs if isinstance(inputs, dict) else {"what": inputs}
        return self.api.call("POST", f"/v1/namespaces/{ns}/interactions/{name}/runs", {"inputs": inputs}, 201)

    def end(self, run, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            answer = self.api.call("GET", f"/v1/interaction-runs/{run['id']}?wait=10")
            if answer["endReason"]:
                return answer
            assert time.monotonic() < deadline, f"the run has not ended in {seconds} s: {answer}"

    def ask(self, *words, **options):
        return self.end(self.start(*words, **options))

    def attempts(self, run):
        return self.api.call("GET", f"/v1/interaction-runs/{run['id']}/attempts")["items"]

    def asked(self, word):
        """The requests that hold a word."""
        return [s for s in self.provider.seen if word.encode() in s.body]

    def tasks(self, word):
        """What the model was told first, in each of them."""
        return [next(text for role, text in s.texts if role == "user") for s in self.asked(word)]

    def log(self):
        return "".join((self.server.dir / f"{name}.log").read_text() for name in ("maitentod", "mt-runner"))


@pytest.fixture(scope="module")
def desk():
    environment = {**mtserver.without_keys(os.environ), "DEEPSEEK_API_KEY": KEY_AT_START}
    with Provider() as provider, mtserver.Server(image="slim", log_level="debug", server_environment=environment) as server:
        yield Desk(server, provider)


@pytest.fixture()
def mt(desk):
    return command_line(desk.server)


@pytest.fixture(scope="module")
def notes(desk):
    return desk.project(schema=NOTE, attempts=2)


# ---- O-04, O-35: what commands print and people write reaches the model as it is ----

TASK = "Q: %%question%%\n{{#if transcript}}\n%%transcript%%\n{{/if}}\n{{#if admin}}\nEND %%key%%\n{{/if}}\n"
INPUTS = (("question", True), ("transcript", False), ("admin", False), ("key", False))
LISTED = ["%%key%%", "{{#if question}}x{{/if}}", "{{/if}}", "%%", "100%% sure", "%%ke"]
TELL = """
string main(string line) {
	guid run = CapsuleStart("c", "", "[]", "[]", "[]");
	jsonObject done = CapsuleCommandAwait(run, CapsuleExec(run, line, "[]", "", 0, false));
	CapsuleTerminate(run);
	jsonObject inputs = JsonObjectSetString(JsonObjectCreate(), "question", "what came?");
	inputs = JsonObjectSetString(inputs, "transcript", JsonObjectGet(done, "outputStandard"));
	inputs = JsonObjectSetString(inputs, "key", "KEPT-BACK");
	jsonObject answered = InteractionAwait(InteractionStart("chat", inputs, "[]", "[]", ""));
	return(JsonObjectGet(answered, "output"));
}
"""


@pytest.fixture(scope="module")
def asker(desk):
    return desk.project(TASK, INPUTS, more={
        "apps/tell/tell.mtc": TELL, "capsules/c.mtr": 'limits.memory = "64MiB"\nlimits.disk = "64MiB"\nmaxDuration = "00:05:00"\n'})


@pytest.mark.parametrize("line, printed", [
    ("printf 'left \\377\\376 right \\303\\n'", "left \ufffd\ufffd right \ufffd\n"),
    ("echo '%%key%% {{/if}}'", "%%key%% {{/if}}\n")])
def test_o04_o35_the_transcript_of_a_command_is_given_to_a_model(desk, mt, asker, line, printed):
    before = len(desk.asked("what came?"))
    done = mt("app-run", "tell", "-q", "--input-line", line, namespace=asker, check=0)
    assert done.stdout == "ok\n"
    (task,) = desk.tasks("what came?")[before:]
    assert task == f"Q: what came?\n{printed}\n"


def test_o04_a_model_that_sends_broken_text(desk, asker):
    text = b'data: {"choices": [{"delta": {"content": "left \xff\xfe right"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    desk.provider.add(stream(text), when="broken bytes")
    run = desk.ask(asker, {"question": "broken bytes"})
    assert (run["status"], run["output"].replace("\ufffd", "")) == ("Finished", "left  right") and "\ufffd" in run["output"]
    assert desk.attempts(run)[0]["answer"] == run["output"]


def expected(question, transcript=None, admin=None, key=""):
    return f"Q: {question}\n" + (f"{transcript}\n" if transcript else "") + (f"END {key}\n" if admin else "")


@pytest.mark.parametrize("question", LISTED)
def test_o35_a_value_is_there_letter_for_letter(desk, asker, question):
    """In any order of inputs, with and without the part that only admin shows."""
    secret = "KEPT-BACK"
    for inputs in ({"question": question}, {"key": secret, "question": question}, {"question": question, "key": secret},
                   {"key": secret, "question": question, "transcript": question},
                   {"transcript": question + secret[:4], "admin": "yes", "key": question, "question": question},
                   {"admin": "yes", "question": question, "key": secret}):
        before = len(desk.provider.seen)
        run = desk.ask(asker, inputs)
        assert run["status"] == "Finished" and run["inputs"] == inputs, run
        (seen,) = desk.provider.seen[before:]
        assert seen.texts == [("system", "You answer."), ("user", expected(**inputs))]
        assert (secret in seen.body.decode()) == ("admin" in inputs and inputs["key"] == secret)


def test_o35_the_same_by_mt(desk, mt, asker):
    for question in LISTED:
        before = len(desk.provider.seen)
        done = mt("interaction-run", "chat", "-q", f"--input-question={question}", "--input-key=KEPT-BACK", namespace=asker, check=0)
        assert done.stdout == "ok\n"
        assert [s.texts[1] for s in desk.provider.seen[before:]] == [("user", expected(question))]


def test_o35_values_never_join_into_a_mark(desk):
    """And marks can be written as text."""
    ns = desk.project("%%a%%%%b%%|%%a%%y%%|\\%%a%% \\{{#if a}}|{%%b%%#if a}}", (("a", True), ("b", True), ("key", False)))
    for a, b in (("%%ke", "y%%"), ("%", "%key%%"), ("{{#if ", "a}}"), ("{{", "{"), ("\\", "%%a%%")):
        assert desk.ask(ns, {"a": a, "b": b, "key": "KEPT-BACK"})["status"] == "Finished"
        text = desk.provider.seen[-1].texts[1][1]
        assert text == f"{a}{b}|{a}y%%|%%a%% {{{{#if a}}}}|{{{b}#if a}}}}", text


# ---- O-14 ----

@pytest.mark.parametrize("size", [131000, 131072, 300000, 3000000])
def test_o14_long_values_of_a_prompt(desk, mt, asker, size):
    """Whole up to the stated limit, of 1 MiB; above it refused with words."""
    text = f"size {size} " + "x" * (size - len(f"size {size} "))
    done = mt("interaction-run", "chat", "-q", "--inputs", "-", stdin=json.dumps({"question": text}), namespace=asker)
    if size < 1 << 20:
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
        assert desk.tasks(f"size {size} ") == [expected(text)]
    else:
        assert done.returncode in (1, 2) and "more than 1024 KiB" in done.stderr and len(done.stderr) < 1000, done.stderr[:1000]
        status, _, detail = desk.api.error("POST", f"/v1/namespaces/{asker}/interactions/chat/runs", {"inputs": {"question": text}})
        assert status in (400, 413) and "more than 1024 KiB" in detail and not desk.asked(f"size {size} ")
    assert desk.ask(asker, {"question": "and another"})["status"] == "Finished"


# ---- O-26 ----

@pytest.mark.parametrize("way", ["kill", "stop"])
def test_o26_a_model_is_being_asked_when_the_server_goes(desk, asker, way):
    """It is asked again, once, and who waits gets the answer; its duration.max still counts."""
    short = desk.project(most="00:00:03")
    desk.provider.add(say("half", HANG), say("whole"), when=f"asked at {way}")
    desk.provider.add(stream(HANG), when=f"too long at {way}", times=None)
    late, run = desk.start(short, f"too long at {way}"), desk.start(asker, {"question": f"asked at {way}"})
    environment = {**os.environ, **desk.server.environment(), "MAITENTO_URL": f"unix:{desk.server.socket}"}
    with subprocess.Popen([mtserver.program("mt"), "interaction-await", run["id"]], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiter:
        desk.provider.wait_until(lambda: len(desk.asked(f"asked at {way}")) == 1 and len(desk.asked(f"too long at {way}")) == 1)
        desk.server.server.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
        assert desk.server.server.wait(30) == (-signal.SIGKILL if way == "kill" else 0)
        desk.server.start_server()
        out, err = waiter.communicate(timeout=60)
    assert (waiter.returncode, out) == (0, "whole\n"), (out, err)
    ended = desk.end(run)
    assert (ended["status"], ended["output"], len(desk.asked(f"asked at {way}"))) == ("Finished", "whole", 2)
    ended = desk.end(late)
    assert (ended["status"], ended["endReason"]) == ("Error", "timeout") and 3 <= ended["runSeconds"] < 20, ended


# ---- O-31 ----

LOOK = """mt provider-get custom --json
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'
find /home /run /tmp /mnt /etc -type f -size -64k 2>/dev/null | xargs -r grep -a -h CANARY 2>/dev/null
echo looked"""


def test_o31_keys_of_providers_come_back_to_nobody(desk, mt, asker, notes):
    desk.provider.add(echo, when="say it all", times=None)
    desk.provider.add(say("The key is ", KEY[:9], KEY[9:], reasoning=[KEY]), when="tell the key", times=None)
    desk.provider.add(fail(401, f"Incorrect API key provided: {KEY}"), when="a bad key", times=None)
    desk.provider.add(say(f'{{"a": "{KEY}", "{KEY}": 1}}'), when="a wrong answer", times=None)
    texts = []
    for ns, name, question, reason in [
            (ns, name, question, reason) for name in ("chat", "messages") for ns, question, reason in (
                (asker, "say it all", "badRequest"), (asker, "tell the key", "answered"), (asker, "a bad key", "badKey"),
                (notes, "a wrong answer", "wrongAnswer"))]:
        run = desk.ask(ns, {"question": question} if ns == asker else question, name=name)
        assert run["endReason"] == reason, run
        done = mt("interaction-run", name, "--show-attempts", "--input-question" if ns == asker else "--input-what", question,
                       namespace=ns)
        assert done.returncode == (0 if reason == "answered" else 1)
        texts += [str(run), str(desk.attempts(run)), done.stdout, done.stderr]
        assert KEY in str(desk.asked(question)[0].headers)
    texts += [str(desk.api.call("GET", path)) for path in (
        "/v1/interaction-runs", "/v1/providers", *(f"/v1/providers/{n}" for n in ("custom", "anthropic", "deepseek")), "/v1/doctor")]
    for words in (["provider-list"], ["provider-get", "custom"], ["provider-get", "deepseek", "--json"]):
        texts.append(mt(*words, check=0).stdout)
    assert json.loads(texts[-1])["ready"] is True  # its key was taken at the server's start
    # What a capsule sees of processes, files and the API, in the words that a model was given of it.
    mt("app-run", "tell", "-q", "--input-line", LOOK, namespace=asker, check=0)
    texts.append(desk.tasks("what came?")[-1])
    assert "looked" in texts[-1] and '"custom"' in texts[-1], texts[-1]
    texts.append(desk.log())
    assert "interaction run ended" in texts[-1]
    for word in (KEY, KEY_AT_START):
        assert not [t for t in texts if word in t]


def test_o31_keys_of_providers_are_in_no_file_and_no_environment(desk):
    for folder, _, names in os.walk(desk.server.dir):
        for path in (Path(folder) / name for name in names if name != "scratch.img"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                assert KEY.encode() not in content and KEY_AT_START.encode() not in content, path
    for process in (desk.server.server, desk.server.runner):
        for what in ("environ", "cmdline"):
            content = Path(f"/proc/{process.pid}/{what}").read_bytes()
            assert b"CANARY-9c1e" not in content and b"CANARY-5d2f" not in content, (process.args[0], what)


# ---- O-34 ----

@pytest.mark.parametrize("depth", [65, 10000, 100000])
@pytest.mark.parametrize("ends", [True, False])
def test_o34_a_prompt_that_nests_too_deep_is_refused(desk, mt, tmp_path, depth, ends):
    """In a moment, with the place; what is too large for a prompt has none."""
    task = "begin\n" + "{{#if what}}" * depth + "deepest" + "{{/if}}" * (depth if ends else 0)
    began = time.monotonic()
    found = desk.api.deploy(desk.api.namespace("deep"), {"prompts/task.md": task}, expect=422)["diagnostics"]
    assert time.monotonic() - began < 5, "1 s where nothing else runs"
    assert found[0]["file"] == "prompts/task.md" and len(found) <= 101
    if depth == 100000:
        assert "1024 KiB" in found[0]["message"], found[0]
    else:
        assert found[0]["message"] == "{{#if}} nested deeper than 64 levels" and found[0]["line"] == 2, found[0]
        assert found[0]["column"] == 64 * len("{{#if what}}") + 1
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "task.md").write_text(task)
    done = mt("deploy", tmp_path, namespace=desk.api.namespace("deep"))
    assert done.returncode in (1, 2) and "prompts/task.md" in done.stderr and done.stderr.count("\n") < 1000, done.stderr[:1000]


def test_o34_what_nests_as_deep_as_may_be_is_rendered(desk):
    """And a value that nests deeper is text."""
    ns = desk.project("begin" + "{{#if what}} 1" * 64 + " %%what%%" + "{{/if}}" * 64)
    for value in ("deepest", "{{#if what}}" * 10000, "{{/if}}" * 10000):
        assert desk.ask(ns, value)["status"] == "Finished"
        assert desk.provider.seen[-1].texts[1] == ("user", f"begin{' 1' * 64} {value}")


def test_o34_a_schema_that_refers_to_itself_judges_answers(desk):
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "additionalProperties": False}
    ns = desk.project(schema=tree, attempts=1)
    for word, text, reason in (
            ("some levels", '{"next": {"next": {"n": 3}}}', "answered"),
            ("a fault below", '{"next": {"next": {"n": "x"}}}', "wrongAnswer"),
            ("far too deep", '{"next": ' * 50000 + "{}" + "}" * 50000, "wrongAnswer"),
            ("open brackets", "[" * 100000, "wrongAnswer")):
        desk.provider.add(say(text), when=word)
        began = time.monotonic()
        run = desk.ask(ns, word)
        assert run["endReason"] == reason and time.monotonic() - began < 10, run
        assert run["output"] == (text if reason == "answered" else None) and len(run["failureDetails"]) < 4096
    (found,) = desk.api.deploy(desk.api.namespace("deep"), {"json/fits.json": '{"$ref": "#"}'}, expect=422)["diagnostics"]
    assert (found["file"], found["line"]) == ("json/fits.json", 1) and "itself" in found["message"], found


# ---- O-36 ----

OBJECT = '{"a":1,"note":"n"}'
FENCE = '{"a": 1, "note": "```json\\n{\\"a\\": 2, \\"note\\": \\"in\\"}\\n```"}'
FOUND = {
    "json": (f"```json\n{OBJECT}\n```", OBJECT), "JSON": (f"```JSON\n{OBJECT}\n```\n", OBJECT), "no label": (f"```\n{OBJECT}\n```", OBJECT),
    "words around": (f"Here you are:\n\n{OBJECT}\n\nTell me if you need more!", OBJECT),
    "words and a fence": (f"Sure.\n```json\n{OBJECT}\n```\nDone.", OBJECT), "braces in prose": (f"Use {{x}} like so: {OBJECT}", OBJECT),
    "a fence in a text": (FENCE, FENCE), "a fence in a text in a fence": (f"```json\n{FENCE}\n```", FENCE),
    "a fence in a text, words": (f"So: {FENCE} - fine?", FENCE), "BOM": ("\ufeff" + OBJECT, OBJECT),
    "one that fits": ('{"b": 1} or ' + OBJECT, OBJECT),
}
NOT_FOUND = {
    "two": f'{OBJECT}\n{{"a": 2, "note": "m"}}', "two fences": f'```json\n{OBJECT}\n```\n```json\n{{"a": 2, "note": "m"}}\n```',
    "two that do not fit": '{"a": "x"} {"b": 1}', "a comma too many": '{"a": 1, "note": "n",}', "a shell block": "```sh\nls {a,b}\n```",
    "nothing": "I do not know.", "another type": "[1]",
}


def test_o36_the_one_value_is_found(desk, notes):
    runs = {}
    for i, (what, (text, _)) in enumerate(FOUND.items()):
        desk.provider.add(say(text), when=f"found-{i:02}.")
        runs[what] = desk.start(notes, f"found-{i:02}.")
    for i, (what, (_, output)) in enumerate(FOUND.items()):
        run = desk.end(runs[what])
        assert (run["status"], run["output"], run["attemptCount"]) == ("Finished", output, 1), (what, run)
        assert len(desk.asked(f"found-{i:02}.")) == 1


def test_o36_two_or_none_is_asked_for_again_and_then_an_error(desk, notes):
    runs = {}
    for i, (what, text) in enumerate(NOT_FOUND.items()):
        desk.provider.add(say(text), when=f"not-{i:02}.", times=None)
        runs[what] = desk.start(notes, f"not-{i:02}.")
    for i, (what, text) in enumerate(NOT_FOUND.items()):
        run = desk.end(runs[what])
        assert (run["status"], run["endReason"], run["output"], run["attemptCount"]) == ("Error", "wrongAnswer", None, 2), (what, run)
        assert [a["answer"] for a in desk.attempts(run)] == [text, text] and all(a["faults"] for a in desk.attempts(run))
        assert len(desk.asked(f"not-{i:02}.")) == 2


def test_o36_mt_prints_the_value_alone(desk, mt, notes):
    desk.provider.add(say(NOT_FOUND["two"]), say(FOUND["words and a fence"][0]), when="by mt")
    done = mt("interaction-run", "chat", "--input-what", "by mt", namespace=notes, check=0)
    assert done.stdout == OBJECT + "\n"
    desk.provider.add(say("I do not know."), when="nothing by mt", times=None)
    done = mt("interaction-run", "chat", "--show-attempts", "--input-what", "nothing by mt", namespace=notes, check=1)
    assert done.stdout == "" and "does not fit its schema after 2 attempts" in done.stderr and "I do not know." in done.stderr


# ---- O-37 ----

LIST = {"type": "object", "properties": {"a": {"type": "integer"}, "items": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a", "items"]}


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_o37_an_answer_that_is_cut_is_no_answer(desk, mt, name):
    ns = desk.project(schema=LIST)
    whole = '{"a":1,"items":[1,2]}'
    for word, text in (("cut off", '{"a":1,"items":[1,2'), ("whole by luck", whole)):
        desk.provider.add(say(text, finish="length"), when=word, times=None)
        before = len(desk.asked(word))
        run = desk.ask(ns, word, name=name)
        assert (run["status"], run["endReason"], run["output"], run["attemptCount"]) == ("Error", "cut", None, 1), run
        assert "cut short" in run["failureDetails"] and "maxTokens" in run["failureDetails"]
        assert len(desk.asked(word)) == before + 1 and desk.attempts(run)[0]["answer"] == text
        done = mt("interaction-run", name, "--input-what", word, namespace=ns, check=1)
        assert done.stdout == "" and "cut short" in done.stderr
    desk.provider.add(say(whole), when="a whole one")
    run = desk.ask(ns, "a whole one", name=name)
    assert (run["status"], run["output"]) == ("Finished", whole)


def test_o37_requests_do_not_grow_with_each_attempt(desk):
    ns = desk.project(schema=LIST, attempts=6)
    desk.provider.add(say("é" * 150000), when="at length", times=None)
    run = desk.ask(ns, "at length")
    assert (run["endReason"], run["attemptCount"]) == ("wrongAnswer", 6)
    sizes = [len(s.body) for s in desk.asked("at length")]
    assert len(sizes) == 6 and sizes[2] == sizes[3] == sizes[4] == sizes[5] < sizes[0] + 2 * (80 << 10), sizes


# ---- O-38 ----

RULES = {  # what the member may be, a value that breaks one rule, and what has to be said of it
    "maxItems": ({"type": "array", "maxItems": 2}, [1, 2, 3], "more than 2"), "minItems": ({"type": "array", "minItems": 2}, [1], "fewer than 2"),
    "pattern": ({"type": "string", "pattern": "^[a-z]+$"}, "A1", "^[a-z]+$"),
    "maxLength": ({"type": "string", "maxLength": 3}, "four", "more than 3"),
    "enum": ({"enum": ["red", "blue"]}, "green", 'none of "red", "blue"'),
    "required": ({"type": "object", "required": ["inner"]}, {}, "'inner' is missing"),
    "additionalProperties": ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"extra": 1}, "'extra' is not allowed"),
    "uniqueItems": ({"type": "array", "uniqueItems": True}, [1, 2, 1], "equal"), "minimum": ({"type": "integer", "minimum": 5}, 4, "minimum 5"),
    "const": ({"const": "fixed"}, "moved", '"fixed" is expected'),
    "anyOf": ({"anyOf": [{"type": "string"}, {"anyOf": [{"type": "integer", "minimum": 9}, {"type": "null"}]}]}, 8, "less than the minimum 9"),
    "$ref": ({"$ref": "#/$defs/small"}, 101, "maximum 100"),
}


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_o38_every_rule_is_checked_here(desk, name):
    """The model is told which one and where, and so is who asked."""
    runs = {}
    for what, (rule, value, _) in RULES.items():
        word, text = f"{name} breaks {what}.", json.dumps({"place": value})
        ns = desk.project(schema={"type": "object", "properties": {"place": rule}, "required": ["place"],
                                  "$defs": {"small": {"type": "integer", "maximum": 100}}}, attempts=2)
        desk.provider.add(say(text), when=word, times=None)
        runs[what] = ns, text, word, desk.start(ns, word, name=name)
    for what, (_, _, said) in RULES.items():
        ns, text, word, run = runs[what]
        run = desk.end(run)
        assert (run["status"], run["endReason"], run["output"]) == ("Error", "wrongAnswer", None), (what, run)
        _, second = desk.asked(word)
        assert second.texts[-2] == ("assistant", text)
        for sentence in (second.texts[-1][1], run["failureDetails"]):
            assert "/place: " in sentence and said in sentence, (what, sentence)
        told = second.json["response_format"] if name == "chat" else second.json["tools"]
        assert f'"{what}"' in json.dumps(told), told  # nothing is kept from the provider


def test_o38_mt_says_which_rule(desk, mt):
    ns = desk.project(schema={"type": "object", "properties": {"list": {"items": {"maximum": 4}}}})
    desk.provider.add(say('{"list": [1, 5]}'), say('{"list": [1, 4]}'), when="mended by mt")
    done = mt("interaction-run", "chat", "-q", "--input-what", "mended by mt", namespace=ns, check=0)
    assert done.stdout == '{"list": [1, 4]}\n' and done.stderr == ""
    desk.provider.add(say('{"list": [1, 5]}'), when="never by mt", times=None)
    done = mt("interaction-run", "chat", "--input-what", "never by mt", namespace=ns, check=1)
    assert done.stdout == "" and "/list/1: 5 is more than the maximum 4" in done.stderr and "3 attempts" in done.stderr


# ---- O-39 ----

NO_CHOICES = stream(sse({"choices": []}), sse("[DONE]"))


def test_o39_a_refusal_is_no_bad_json(desk, notes):
    declined = "I cannot help with that."
    cases = {
        "refusal text": ("chat", say(refusal=declined), "refused", 1),
        "refusal in one piece": ("chat", say(refusal=declined, whole=True), "refused", 1),
        "content filter": ("chat", say("I can", finish="content_filter"), "refused", 1),
        "stop reason": ("messages", stream_of_refusal(declined), "refused", 1),
        "plain sentence": ("chat", say("I would rather not say."), "wrongAnswer", 2),
        "no choices": ("chat", NO_CHOICES, "providerFailed", 5),
        "no choices in one piece": ("chat", raw(200, b'{"choices": []}', {"Content-Type": "application/json"}), "providerFailed", None),
    }
    runs = {}
    for word, (name, reply, _, _) in cases.items():
        desk.provider.add(reply, when=f"<{word}>", times=None)
        runs[word] = desk.start(notes, f"<{word}>", name=name)
    for word, (_, _, reason, tries) in cases.items():
        run = desk.end(runs[word])
        assert (run["status"], run["endReason"], run["output"]) == ("Error", reason, None), (word, run)
        assert tries in (None, len(desk.asked(f"<{word}>"))) and run["failureDetails"], (word, run)
        if word in ("refusal text", "refusal in one piece", "stop reason"):
            assert declined in run["failureDetails"], run
        if word == "plain sentence":
            assert desk.attempts(run)[-1]["answer"] == "I would rather not say."


def stream_of_refusal(text):
    return stream(
        sse({"type": "message_start", "message": {"role": "assistant", "model": "m-1", "content": [], "usage": {"input_tokens": 1}}}),
        sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        sse({"type": "content_block_stop", "index": 0}),
        sse({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}), sse({"type": "message_stop"}))


def test_o39_mt_says_refused(desk, mt, notes):
    desk.provider.add(say(refusal="Not that."), when="<by mt>")
    done = mt("interaction-run", "chat", "--input-what", "<by mt>", namespace=notes, check=1)
    assert done.stdout == "" and "Not that." in done.stderr and "JSON" not in done.stderr


# ---- O-40 ----

def test_o40_what_can_work_is_tried_again_and_nothing_else(desk):
    ns, short = desk.project(), desk.project(most="00:00:03")
    date = int(time.time()) + 3
    cases = {  # namespace, replies, end, requests, what is said
        "seconds": (ns, [fail(429, retry_after=1), say("good")], "answered", 2, ""),
        "a date": (ns, [fail(429, retry_after=email.utils.formatdate(date, usegmt=True)), say("good")], "answered", 2, ""),
        "an hour": (short, [fail(429, "come later", retry_after=3600)], "timeout", 1, "3600 s"),
        "for ever": (ns, [fail(429, "slow down")], "rateLimited", 5, "429: slow down"),
        "for ever and short": (short, [fail(503, "busy", retry_after=1)], "timeout", None, "503: busy"),
        "silence": (short, [stream(HANG)], "timeout", 1, "00:00:03"),
        **{str(status): (ns, [fail(status, "oh"), say("good")], "answered", 2, "") for status in (500, 502, 503, 529)},
        "400": (ns, [fail(400, "bad parameter")], "badRequest", 1, "400: bad parameter"),
        "401": (ns, [fail(401, "who are you")], "badKey", 1, "401: who are you"),
        "403": (ns, [fail(403, "not you")], "badKey", 1, "403: not you"),
        "404": (ns, [fail(404, "no such model")], "noModel", 1, "404: no such model"),
    }
    runs = {}
    for word, (where, replies, reason, _, _) in cases.items():
        for reply in replies:
            desk.provider.add(reply, when=f"<{word}>", times=None if reason != "answered" else 1)
        runs[word] = desk.start(where, f"<{word}>")
    refused = desk.start(ns, "anybody there?", name="nobody")
    for word, (_, _, reason, requests, said) in cases.items():
        run = desk.end(runs[word])
        assert (run["endReason"], run["attemptCount"]) == (reason, 1), (word, run)
        assert requests in (None, len(desk.asked(f"<{word}>"))) and said in run["failureDetails"], (word, run)
        assert KEY not in str(run) and desk.attempts(run)[0]["requests"] == len(desk.asked(f"<{word}>"))
        runs[word] = run
    for word, least in (("seconds", 1), *((str(s), 0.25) for s in (500, 502, 503, 529))):
        first, second = [s.at for s in desk.asked(f"<{word}>")]
        assert least <= second - first, word
    first, second = [s.at for s in desk.asked("<a date>")]
    assert second - first >= 1
    times = [s.at for s in desk.asked("<for ever>")]
    assert all(then - at >= least for at, then, least in zip(times, times[1:], (0.25, 0.5, 1, 2))), times
    assert runs["an hour"]["runSeconds"] < 2.5 and 3 <= runs["silence"]["runSeconds"] < 10
    assert len(desk.asked("<for ever and short>")) in (2, 3)
    run = desk.end(refused)
    assert run["endReason"] == "unreachable" and "ollama" in run["failureDetails"] and desk.attempts(run)[0]["requests"] == 5, run


def test_o40_mt_says_what_the_provider_said(desk, mt):
    ns = desk.project()
    desk.provider.add(fail(401, f"Incorrect API key provided: {KEY}"), when="by mt 401")
    done = mt("interaction-run", "chat", "--input-what", "by mt 401", namespace=ns, check=1)
    assert "401" in done.stderr and "mt provider-set custom" in done.stderr and KEY not in done.stderr and done.stdout == ""
    desk.provider.add(fail(503, "busy", retry_after=1), say("good"), when="by mt 503")
    assert mt("interaction-run", "chat", "-q", "--input-what", "by mt 503", namespace=ns, check=0).stdout == "good\n"


def test_o31_o40_nothing_of_all_that_is_in_the_logs(desk):
    """The last: whatever failed before it has been logged by now."""
    said = desk.log()
    assert KEY not in said and KEY_AT_START not in said and "CANARY" not in said
