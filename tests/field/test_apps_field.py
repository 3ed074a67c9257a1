"""Field cases as apps meet them: O-34 first of all, and the parts of O-04, O-07 to O-10, O-12, O-14, O-26 and O-28 that
are about programs. Each is done by the API or by mt, and what a program sees is what is looked at.
"""
import base64
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import mtserver
from appruns import Apps
from conftest import Api, command_line, mtr

SMALL = {"limits": {"memory": "64MiB", "disk": "64MiB", "pids": 64}, "maxDuration": "00:20:00"}
EXEC = """
jsonObject main(guid run, string command, jsonArray arguments, string user, int most) {
	return(CapsuleCommandAwait(run, CapsuleExec(run, command, JsonArrayToString(arguments), user, most, false)));
}
"""
# The same, where what is refused is the answer.
TRY_EXEC = """
jsonObject main(guid run, string command, jsonArray arguments, string user, int most) {
	try {
		return(CapsuleCommandAwait(run, CapsuleExec(run, command, JsonArrayToString(arguments), user, most, false)));
	} catch (error e) {
		return(JsonObjectSetString(JsonObjectSetString(JsonObjectCreate(), "code", ErrorCode(e)), "message", ErrorMessage(e)));
	}
}
"""


def memory_kib(process):
    """What a process has of its own, and its share of what it has with others."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(text.split("\nPss:")[1].split()[0])


class Bench:
    """A capsule run, and apps that send commands to it."""

    def __init__(self, api):
        self.api = api
        self.apps = Apps(api, api.namespace("field"))
        api.call("POST", f"/v1/namespaces/{self.apps.ns}/vfs", {"name": "work"}, 201)
        self.apps.deploy(exec=EXEC, attempt=TRY_EXEC)
        api.capsule(self.apps.ns, [], name="bench", users=[{"name": "sandbox"}], **SMALL)
        self.run = api.get(api.start(self.apps.ns, "bench"), until="ready")

    def ask(self, app, command, arguments=(), user="", most=0):
        ended = self.apps.run(app, {"run": self.run["id"], "command": command, "arguments": list(arguments), "user": user,
                                    "most": most})
        assert ended["status"] == "Finished", ended
        return ended["returnValue"]

    def exec(self, *words, **options):
        return self.ask("exec", *words, **options)


@pytest.fixture(scope="module")
def bench(api):
    one = Bench(api)
    yield one
    api.terminate(one.run)


@pytest.fixture()
def app_run(mt, bench, tmp_path):
    """mt app-run of a program that is deployed just now."""
    def call(program, *words, settings="", check=None):
        folder = tmp_path / "apps" / "program"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.mtc").write_text(program)
        (folder / "program.mtr").write_text(settings)
        mt("deploy", tmp_path, namespace=bench.apps.ns, check=0)
        return mt("app-run", "program", *words, namespace=bench.apps.ns, check=check)
    return call


# ---- O-04 ----

BYTES = b"\xff\xfeabc\n"


def test_o04_bytes_that_are_no_utf8_in_a_program_and_what_it_prints(server, mt, bench):
    bench.apps.deploy(transcript='string main(guid run, string line) {\n'
                                 '\tjsonObject done = CapsuleCommandAwait(run, CapsuleExec(run, line, "[]", "", 0, false));\n'
                                 '\tstring text = JsonObjectGet(done, "outputStandard") + JsonObjectGet(done, "outputError");\n'
                                 '\tPrint(text);\n\tLogInfo(text);\n\tAppStateSetOutputString("text", text);\n\treturn(text);\n}\n')
    line = "printf '\\377\\376abc\\n'; printf 'x\\355\\240\\200y\\303' >&2; exit 3"
    run = bench.apps.run("transcript", {"run": bench.run["id"], "line": line})
    expect = BYTES.decode(errors="replace") + b"x\xed\xa0\x80y\xc3".decode(errors="replace")
    assert run["status"] == "Finished" and run["returnValue"] == expect and run["outputs"] == {"text": expect}
    assert "".join(line["text"] for line in run["consoleOutputs"]) == expect
    assert bench.apps.lines(run, what="log")["items"][0]["text"].rstrip("\n") == expect.rstrip("\n")
    done = subprocess.run([mtserver.program("mt"), "app-run", "transcript", f"--input-run={bench.run['id']}", f"--input-line={line}"],
                          env={**os.environ, **server.environment(), "MAITENTO_NAMESPACE": bench.apps.ns},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.decode() == f"{expect}\n\n{expect}\n"


def test_o04_a_failure_keeps_the_text_around_a_bad_byte(bench):
    bench.apps.deploy(fail='void main(guid run) {\n\tjsonObject done = CapsuleCommandAwait(run, CapsuleExec(run, '
                           '"printf \'\\\\377 broken\' >&2; exit 1", "[]", "", 0, false));\n'
                           '\tthrow("It failed: " + JsonObjectGet(done, "outputError"));\n}\n')
    run = bench.apps.run("fail", {"run": bench.run["id"]})
    assert run["failureDetails"] == "It failed: \ufffd broken"
    assert bench.apps.call("GET", f"/v1/app-runs/{run['id']}")["failureDetails"] == run["failureDetails"]


def test_o04_random_bytes_and_nul_of_a_command(bench):
    done = bench.exec("head", ["-c", "4096", "/dev/urandom"])
    assert done["exitCode"] == 0 and done["outputStandard"]
    done = bench.exec("printf 'a\\0b\\n'; exit 4")
    assert done["exitCode"] == 4 and done["outputStandard"] == "a\ufffdb\n"
    done = bench.exec(r"printf '%s\0%s' '\u0000' '\\u0000'")  # letters that look like one
    assert done["outputStandard"] == "\\u0000\ufffd\\\\u0000"


def test_o04_bytes_of_files_are_unchanged(bench):
    data = bytes(range(256)) * 40
    bench.api.write(bench.apps.ns, "work", "/bytes", data)
    bench.apps.deploy(copy='string main() {\n\tstring bytes = VfsReadBase64("work", "/bytes");\n'
                           '\tVfsWriteBase64("work", "/copy", bytes);\n\ttry {\n\t\tVfsReadText("work", "/bytes");\n'
                           '\t} catch (error e) {\n\t\tPrint(ErrorMessage(e));\n\t}\n\treturn(bytes);\n}\n')
    run = bench.apps.run("copy")
    assert run["status"] == "Finished" and base64.b64decode(run["returnValue"]) == data
    assert bench.api.read(bench.apps.ns, "work", "/copy") == data
    assert run["consoleOutputs"][0]["text"] == "VfsReadText: '/bytes' holds bytes that are no UTF-8 text"


# ---- O-07 ----

def test_o07_apps_that_print_and_commands_of_theirs_are_bounded(server, bench):
    """While they do, another app's command is answered as ever."""
    most = {"forever.mtr": 'duration.max = "00:00:05"\n'}
    bench.apps.deploy(forever={"forever.mtc": 'void main() {\n\tstring text = StringRepeat("x", 10000);\n'
                                              "\twhile (true) { PrintLine(text); }\n}\n", **most},
                      yes='jsonObject main(guid run) {\n\treturn(CapsuleCommandAwait(run, '
                          'CapsuleExec(run, "yes", "[]", "", 4000, true)));\n}\n')
    bench.exec("echo warm")
    before = memory_kib(server.server)
    runs = [bench.apps.start("forever") for _ in range(3)]
    floods = [bench.apps.start("yes", {"run": bench.run["id"]}) for _ in range(2)]
    highest = 0
    for _ in range(8):
        began = time.monotonic()
        assert bench.exec("echo", ["ok"])["outputStandard"] == "ok\n"
        assert time.monotonic() - began < 5
        highest = max(highest, memory_kib(server.server))
    for run in runs:
        ended = bench.apps.end(run)
        assert ended["endReason"] in ("timeout", "callLimit"), ended["failureDetails"]
        assert sum(len(line["text"]) for line in ended["consoleOutputs"]) <= 4 << 20
        assert ended["consoleOutputsFullCount"] > len(ended["consoleOutputs"])
    for run in floods:
        done = bench.apps.end(run)["returnValue"]
        assert (done["endReason"], done["limitMs"]) == ("timeout", 4000)
        assert done["outputStandardFullLength"] > 1 << 20 and len(done["outputStandard"]) == 65536
    # Of each app run 4 MiB of console, and of each of the five what its work takes for a moment.
    assert highest - before < 3 * 4096 + 5 * 8192, (before, highest)


# ---- O-08, O-09, O-10 ----

@pytest.mark.parametrize("number, code", [(9, 137), (15, 143), (11, 139), (6, 134)])
def test_o08_signals_are_no_success_to_a_program(bench, number, code):
    for words in ((f"kill -{number} $$",), ("sh", ["-c", f"kill -{number} $$"])):
        done = bench.exec(*words)
        assert (done["status"], done["exitCode"]) == ("Error", code) and done["outputError"] == "", done
    assert bench.exec(f"kill -{number} $$")["endReason"] == "signaled"


def test_o08_exit_codes_as_text(app_run, bench):
    program = ('string main(guid run, string line) {\n\tjsonObject done = CapsuleCommandAwait(run, '
               'CapsuleExec(run, line, "[]", "", 0, false));\n\treturn(JsonObjectGet(done, "exitCode") + " " '
               '+ JsonObjectGet(done, "endReason") + " " + JsonObjectGet(done, "signal"));\n}\n')
    for line, shown in (("kill -9 $$", "137 signaled 9"), ("exit 137", "137 exited "), ("exit 0", "0 exited ")):
        assert app_run(program, f"--input-run={bench.run['id']}", "--input-line", line, check=0).stdout == f"\n{shown}\n"


def test_o09_a_time_out_is_told_apart(bench):
    done = bench.exec("sleep", ["30"], most=500)
    assert (done["status"], done["endReason"], done["limitMs"], done["exitCode"]) == ("Error", "timeout", 500, 143)
    done = bench.exec("exit 124")
    assert (done["endReason"], done["exitCode"], done.get("limitMs")) == ("exited", 124, None)
    done = bench.exec("sleep 0.3; echo none", most=0)
    assert (done["endReason"], done["outputStandard"]) == ("exited", "none\n")
    refused = bench.ask("attempt", "true", most=-1)
    assert refused["code"] in ("BadArgument", "badField") and "-1" in refused["message"], refused


def test_o09_one_that_is_longer_than_the_run_is_an_error_to_catch(bench):
    run = bench.api.get(bench.api.start(bench.apps.ns, "bench"), until="ready")
    started = bench.apps.start("attempt", {"run": run["id"], "command": "sleep 60", "arguments": [], "user": "", "most": 60000})
    bench.api.shorten(run["id"])
    caught = bench.apps.end(started)["returnValue"]
    assert caught["code"] == "CapsuleCommandAborted" and "out of time" in caught["message"], caught


def test_o10_out_of_memory_is_said_and_nothing_is_done_again(bench):
    line = "echo once >> log; wc -l < log; python3 -c 'x = bytearray(10**9)'"
    done = bench.exec(f"exec sh -c \"{line}; kill -9 $$\"")
    assert done["outputStandard"] == "1\n" and "memory" in done["limitsReached"], done
    done = bench.exec("python3", ["-c", "x = bytearray(10**9)"])
    assert (done["status"], done["endReason"], done["exitCode"]) == ("Error", "outOfMemory", 137), done
    assert "out of memory" in done["failureDetails"] and "64 MiB" in done["failureDetails"]
    assert bench.exec("cat log; echo ok")["outputStandard"] == "once\nok\n"
    assert bench.exec("sleep 30", most=500)["endReason"] == "timeout"


# ---- O-12, O-14 ----

WORDS = ["a b", "$HOME", "$(id)", "x'y", '"', "", "l1\nl2", "*", "\\", ";", "~", "!x", "é", "𝄞", "-n", "%s", "\t", "${x}"]


@pytest.mark.parametrize("user", ["", "sandbox"])
def test_o12_arguments_arrive_as_the_program_gave_them(bench, user):
    done = bench.exec("printf", ["[%s]\\n", *WORDS], user=user)
    assert done["outputStandard"] == "".join(f"[{word}]\n" for word in WORDS)
    done = bench.exec('echo "a  b" | tr a-z A-Z; false', user=user)
    assert (done["exitCode"], done["outputStandard"]) == (1, "A  B\n")


def test_o12_arguments_made_by_the_program_itself(app_run, bench):
    """Lists that it builds, and texts of a list; the input has been through the command line."""
    program = """
string main(guid run, string word) {
	jsonArray words = JsonArrayAddString(JsonArrayAddString(JsonArrayCreate(), "[%s]"), word);
	guid first = CapsuleExecWith(run, "printf", words, JsonObjectCreate());
	guid second = CapsuleExec(run, "printf", JsonArrayToString(words), "sandbox", 0, false);
	return(JsonObjectGet(CapsuleCommandAwait(run, first), "outputStandard")
		+ JsonObjectGet(CapsuleCommandAwait(run, second), "outputStandard"));
}
"""
    for word in [*WORDS, "".join(WORDS)]:
        done = app_run(program, f"--input-run={bench.run['id']}", f"--input-word={word}", check=0)
        assert done.stdout == f"\n[{word}][{word}]\n", word


@pytest.mark.parametrize("arguments", ['{"a": "b"}', '"x"', '[1]', '["a", null]', '[["a"]]', "[", "", "a b"])
def test_o12_what_is_no_list_of_words_is_refused(bench, arguments):
    bench.apps.deploy(send='string main(guid run, string arguments) {\n\ttry {\n'
                           '\t\tCapsuleExec(run, "touch ran", arguments, "", 0, false);\n\t} catch (error e) {\n'
                           '\t\treturn(ErrorCode(e) + ": " + ErrorMessage(e));\n\t}\n\treturn("sent");\n}\n')
    said = bench.apps.run("send", {"run": bench.run["id"], "arguments": arguments})["returnValue"]
    assert said.split(":")[0] in ("BadArgument", "BadFormat", "badField") and "argument" in said, said
    assert bench.exec("ls ran")["exitCode"] == 2


@pytest.mark.parametrize("size", [131000, 131072, 300000, 3000000])
def test_o14_long_texts_of_a_program(bench, size):
    script = "echo ok #"
    script += "x" * (size - len(script))
    done = bench.exec(script)
    assert (done["exitCode"], done["outputStandard"], done["outputError"]) == (0, "ok\n", "")
    said = bench.ask("attempt", "sh", ["-c", script])
    if size < 131072:
        assert said["outputStandard"] == "ok\n"
    else:
        assert "argument 2" in said["message"] and "131,071 bytes" in said["message"] and "file" in said["message"], said
    assert bench.exec("echo next")["outputStandard"] == "next\n"


def test_o14_an_input_of_mt_that_no_command_line_holds(mt, bench):
    bench.apps.deploy(length="int main(string text) {\n\treturn(StringLength(text));\n}\n")
    for size in (131000, 131072, 3000000):
        inputs = json.dumps({"text": "é" * size})
        done = mt("app-run", "length", "-q", "--inputs", "-", stdin=inputs, namespace=bench.apps.ns, check=0)
        assert done.stdout == f"{size}\n"


# ---- O-26 ----

@pytest.mark.parametrize("way", ["kill", "stop"])
def test_o26_an_app_that_waits_for_a_command_when_the_server_goes(way):
    """mt waits on as well, and shows what came; the command ran once."""
    with mtserver.Server(image="slim") as own:
        mt = command_line(own)
        mt("namespace-create", "o26", check=0)
        mt("vfs-create", "work", check=0)
        apps = Apps(Api(own), "o26")
        apps.api.deploy("o26", {"capsules/c.mtr": mtr({**SMALL, "vfs": None}) + 'vfs = [{ vfs = @ref("work"), mountName = "work" }]\n'})
        apps.deploy(wait="""
string main() {
	guid run = CapsuleStart("c", "", "[]", "[]", "[]");
	guid command = CapsuleExec(run, "echo ran >> /mnt/work/log; until [ -e /mnt/work/go ]; do sleep 0.1; done; cat /mnt/work/log; exit 3", "[]", "", 0, false);
	PrintLine("sent");
	jsonObject done = CapsuleCommandAwait(run, command);
	CapsuleTerminate(run);
	return(JsonObjectGet(done, "exitCode") + " " + JsonObjectGet(done, "outputStandard"));
}
""")
        waiter = subprocess.Popen([mtserver.program("mt"), "app-run", "wait", "-n", "o26"], text=True, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "MAITENTO_URL": f"unix:{own.socket}"}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        assert waiter.stdout.readline() == "sent\n"
        deadline = time.monotonic() + 60
        while apps.api.raw("GET", apps.api.files("o26", "work", "/log"))[0] != 200:
            assert time.monotonic() < deadline, "the command has not begun"
            time.sleep(0.05)
        own.server.send_signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
        assert own.server.wait(30) == (-signal.SIGKILL if way == "kill" else 0)
        own.start_server()
        mt = command_line(own)  # on its new port
        assert " Running " in mt("app-runs", check=0).stdout
        apps.api.write("o26", "work", "/go", "")
        out, err = waiter.communicate(timeout=60)
        assert (waiter.returncode, out) == (0, "\n3 ran\n\n"), (out, err)
        (run,) = apps.list()
        assert (run["status"], run["endReason"]) == ("Finished", "returned")
        (capsule,) = apps.call("GET", "/v1/capsule-runs?namespace=o26")["items"]
        assert apps.api.get(capsule)["endReason"] == "terminated"


# ---- O-28 ----

PLAIN = "void main() { }\n"


@pytest.mark.parametrize("text, understood", [("24:00:00", "1.00:00:00"), ("48:00:00", "2.00:00:00"),
                                              ("1.00:00:00", "1.00:00:00"), ("1.23:59:59", "1.23:59:59"), ("00:10:00", "00:10:00")])
def test_o28_the_duration_of_an_app_has_one_meaning(bench, text, understood):
    bench.apps.deploy(timed={"timed.mtc": PLAIN, "timed.mtr": f'duration.max = "{text}"\n'})
    assert bench.apps.run("timed")["maxDuration"] == understood


@pytest.mark.parametrize("text", ['"00:60:00"', '"00:90:00"', '"0"', '"00:00:00"', '"-00:01:00"', '"90"', '"1h30m"', '"01:00"',
                                  '" 01:00:00 "', '"00:00:00.5"', '"99999999.00:00:00"', '""', "600"])
def test_o28_others_are_refused_with_the_place_and_an_example(bench, text):
    files = {"apps/timed/timed.mtc": PLAIN, "apps/timed/timed.mtr": f"// one\nduration.max = {text}\n"}
    (found,) = bench.api.deploy(bench.apps.ns, files, expect=422)["diagnostics"]
    assert (found["file"], found["line"], found["column"]) == ("apps/timed/timed.mtr", 2, 16), found
    assert "00:10:00" in found["message"] + str(found.get("hint"))


# ---- O-34 ----

HEAD = "void main() { int x = "
HOSTILE = {
    "parentheses": HEAD + "(" * 100000, "braces": "void main() " + "{" * 100000, "signs": HEAD + "-" * 100000 + "1; }",
    "nots": "void main() { bool x = " + "!" * 100000 + "true; }", "sum": HEAD + "+".join("a" * 100000) + "; }",
    "ternaries": HEAD + "true ? 1 : " * 50000 + "1; }", "questions": HEAD + "true ? " * 100000,
    "calls": HEAD + "f(" * 100000, "ifs": "void main() { " + "if (true) " * 100000 + "{ } }",
    "loops": "void main() { " + "for (;;) { " * 50000, "tries": "void main() { " + "try { " * 100000,
    "string": "void main() { PrintLine(\"" + "x" * (1 << 20), "comment": "/*" + "*" * 1000000, "backslashes": HEAD + '"' + "\\" * 99999,
    "nul": "void main() {\0}", "names": HEAD + "a" * 1000000 + "; }", "digits": HEAD + "9" * 1000000 + "; }",
    "semicolons": "void main() {" + ";" * 1000000 + "}", "functions": "void f() { }\n" * 70000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_o34_programs_that_are_hostile_are_refused_in_a_moment(server, mt, bench, tmp_path, what):
    """By the server and by mt, with the place; neither takes much memory for it."""
    before = memory_kib(server.server)
    began = time.monotonic()
    found = bench.api.deploy(bench.apps.ns, {"apps/bad/bad.mtc": HOSTILE[what]}, expect=422)["diagnostics"]
    assert time.monotonic() - began < 5, "1 s where nothing else runs"
    assert found[0]["file"] == "apps/bad/bad.mtc" and found[0]["message"] and len(found) <= 101
    assert found[0]["line"] >= 1 and found[0]["column"] >= 1 or "KiB" in found[0]["message"], found[0]
    assert memory_kib(server.server) - before < 96 << 10
    (tmp_path / "apps" / "bad").mkdir(parents=True)
    (tmp_path / "apps" / "bad" / "bad.mtc").write_text(HOSTILE[what])
    for words in (["app-check", tmp_path / "apps" / "bad"], ["deploy", tmp_path]):
        began = time.monotonic()
        done = mt(*words, namespace=bench.apps.ns)
        assert done.returncode in (1, 2) and "bad.mtc" in done.stderr and done.stderr.count("\n") < 1000, (words, done.stderr[:500])
        assert time.monotonic() - began < 5
    assert bench.exec("echo ok")["outputStandard"] == "ok\n"


ENDLESS = {
    "recursion": ("int main() {\n\treturn(1 + main());\n}\n", "nested more than 1000 deep"),
    "doubling": ('void main() {\n\tstring s = "ab";\n\tfor (int i = 0; i < 60; i++) {\n\t\ts = s + s;\n\t}\n}\n', "16 MiB"),
    "loop": ("void main() {\n\tfor (;;) { }\n}\n", "out of time: duration.max 00:00:02"),
    "parsing": ('void main() {\n\tStringToJsonObject(StringRepeat("{\\"a\\":", 100000));\n}\n', "deep"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_o34_programs_that_go_too_far_end_with_words(app_run, bench, what):
    program, words = ENDLESS[what]
    began = time.monotonic()
    done = app_run(program, settings='duration.max = "00:00:02"\n', check=1)
    assert words in done.stderr and done.stdout == "", done.stderr
    assert time.monotonic() - began < 20
    assert bench.exec("echo ok")["outputStandard"] == "ok\n"


def test_o34_a_chain_of_choices_is_long_and_not_deep(app_run):
    choices = "".join(f"else if (n == {n}) {{ return({n}); }}\n" for n in range(20000))
    program = f"int main(int n) {{\nif (n < 0) {{ return(n); }}\n{choices}return(20000);\n}}\n"
    for n in (-1, 0, 19999, 20000):
        assert app_run(program, "-q", f"--input-n={n}", check=0).stdout == f"{n}\n"


def test_o34_files_with_a_bom_and_crlf_work_as_usual(mt, bench, tmp_path):
    folder = tmp_path / "apps" / "crlf"
    folder.mkdir(parents=True)
    (folder / "crlf.mtc").write_bytes(b"\xef\xbb\xbf// one\r\nstring main(string name) {\r\n\tstring s = \"a\\nb \" +\r\n\t\tname;\r\n"
                                      b"\treturn(s);\r\n}\r\n")
    (folder / "crlf.mtr").write_bytes(b"\xef\xbb\xbfduration.max = \"00:01:00\"\r\n")
    mt("deploy", tmp_path, namespace=bench.apps.ns, check=0)
    assert mt("app-run", "crlf", "-q", "--input-name", "x", namespace=bench.apps.ns, check=0).stdout == "a\nb x\n"


DEEP = {"lists": "[" * 100000, "closed lists": "[" * 100000 + "]" * 100000, "objects": '{"a":' * 100000,
        "closed objects": '{"a":' * 100000 + "1" + "}" * 100000, "201 levels": "[" * 201 + "]" * 201}


@pytest.mark.parametrize("what", DEEP)
def test_o34_deep_json_is_refused_wherever_it_comes_in(mt, bench, what):
    """In a program, as an input, as a request's body, as arguments of a command, as a schema of a project."""
    text = DEEP[what]
    bench.apps.deploy(parse='string main(string text) {\n\ttry {\n\t\tStringToJsonArray(text);\n\t} catch (error e) {\n'
                            '\t\ttry {\n\t\t\tStringToJsonObject(text);\n\t\t} catch (error f) {\n'
                            '\t\t\treturn(ErrorCode(e) + ErrorCode(f));\n\t\t}\n\t}\n\treturn("taken");\n}\n',
                      take="string main(jsonObject object, jsonArray list) {\n\treturn(\"taken\");\n}\n")
    began = time.monotonic()
    run = bench.apps.run("parse", {"text": text})
    assert run["status"] == "Finished" and set(run["returnValue"].replace("Bad", " Bad").replace("Too", " Too").split()) <= {
        "BadFormat", "TooLarge", "BadType"}, run
    for name, value in (("object", '{"a":' + text + "}"), ("list", text)):
        inputs = {"object": "{}", "list": "[]", name: value}
        status, problem = bench.apps.refused("POST", bench.apps.runs_of("take"), {"inputs": inputs})
        assert status == 400 and name in problem["detail"], problem
        done = mt("app-run", "take", "--inputs", "-", stdin=json.dumps(inputs), namespace=bench.apps.ns)
        assert done.returncode == 2 and name in done.stderr, done.stderr[:500]
    body = f'{{"inputs": {{"list": {text}}}}}'.encode()
    status, _, answer = bench.api.raw("POST", bench.apps.runs_of("take"), body, {"Content-Type": "application/json"})
    assert status in (400, 413) and "nested" in json.loads(answer)["detail"], answer
    assert bench.ask("attempt", "true", [])["exitCode"] == 0
    found = bench.api.deploy(bench.apps.ns, {"json/deep.json": text}, expect=422)["diagnostics"]
    assert found[0]["file"] == "json/deep.json" and found[0]["message"]
    assert time.monotonic() - began < 20


def test_o34_deep_json_that_a_command_prints(bench):
    """Where a program reads it, that is an error which it can catch."""
    bench.apps.deploy(read="""
string main(guid run) {
	guid command = CapsuleExec(run, "python3", "[\\"-c\\", \\"print('[' * 60000)\\"]", "", 0, false);
	try {
		StringToJsonArray(JsonObjectGet(CapsuleCommandAwait(run, command), "outputStandard"));
	} catch (error e) {
		return(ErrorCode(e) + ": " + ErrorMessage(e));
	}
	return("taken");
}
""")
    run = bench.apps.run("read", {"run": bench.run["id"]})
    assert run["status"] == "Finished" and run["returnValue"].split(":")[0] in ("BadFormat", "TooLarge"), run


@pytest.mark.parametrize("schema", ['{"$ref": "#"}', '{"type": "object", "properties": {"a": {"$ref": "#"}}}',
                                    '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}'])
def test_o34_a_schema_that_refers_to_itself_is_taken_or_refused_with_words(bench, schema):
    answer = bench.api.deploy(bench.apps.ns, {"json/self.json": schema}, expect=(200, 422))
    assert "diagnostics" not in answer or answer["diagnostics"][0]["message"], answer
