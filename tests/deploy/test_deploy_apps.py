"""Programs of apps at deploy: checked by the code of `mt app-check`, refused with all their faults."""
import time

import pytest

GOOD = "string main(string name) {\n\treturn(greet(name));\n}\n"
WORDS = "string greet(string name) {\n\treturn(\"Hello, \" + name);\n}\n"


def places(answer):
    return [(d["file"], d["line"], d["column"], d["message"]) for d in answer["diagnostics"]]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_broken_program_is_refused_with_all_its_faults(api, ns, dry_run):
    answer = api.deploy(ns, {
        "apps/hello/hello.mtc": "void main() {\n\tint x = \"1\";\n\tPrintLine(wrod(x))\n\tCapsuleTerminate();\n}\n",
        "apps/hello/words.mtc": "string word(int n) {\n\tif (n > 0) { return(\"x\"); }\n}\n",
        "capsules/fine.mtr": "autoTerminate = true\n"}, expect=422, dryRun=dry_run)
    assert answer["code"] == "deployFailed" and answer["detail"].startswith("5 errors")
    assert places(answer) == [
        ("apps/hello/hello.mtc", 2, 10, "'x' is an int: it does not take a string"),
        ("apps/hello/hello.mtc", 3, 12, "no function 'wrod' is known"),
        ("apps/hello/hello.mtc", 3, 20, "';' is missing"),
        ("apps/hello/hello.mtc", 4, 2, "CapsuleTerminate takes 1 argument, not 0: void CapsuleTerminate(guid run)"),
        ("apps/hello/words.mtc", 3, 1, "'word' returns a string, but its end can be reached without a return")]
    second = answer["diagnostics"][1]
    assert second["hint"] == "did you mean 'word'?" and second["sourceLine"] == "\tPrintLine(wrod(x))"
    assert api.call("GET", f"/v1/namespaces/{ns}/apps")["items"] == []
    assert api.call("GET", f"/v1/namespaces/{ns}/capsules")["items"] == []


def test_an_app_has_several_files_and_each_makes_a_version(api, ns):
    files = {"apps/hello/hello.mtc": GOOD, "apps/hello/words.mtc": WORDS, "apps/hello/hello.mtr": ""}
    assert [e["name"] for e in api.deploy(ns, files)["created"]] == ["hello"]
    assert api.deploy(ns, files)["unchanged"][0]["version"] == 1
    files["apps/hello/words.mtc"] = WORDS.replace("Hello", "Hi")
    assert api.deploy(ns, files)["updated"][0]["version"] == 2
    del files["apps/hello/words.mtc"]
    assert places(api.deploy(ns, files, expect=422)) == [
        ("apps/hello/hello.mtc", 2, 9, "no function 'greet' is known")]


def test_main_is_in_the_file_with_the_apps_name(api, ns):
    assert places(api.deploy(ns, {"apps/hello/words.mtc": WORDS}, expect=422)) == [
        ("apps/hello/hello.mtc", 0, 0, "app 'hello' has no file hello.mtc: it holds main")]
    assert places(api.deploy(ns, {"apps/hello/hello.mtc": WORDS}, expect=422)) == [
        ("apps/hello/hello.mtc", 0, 0, "the program has no function main")]


def test_a_warning_does_not_keep_a_program_back(api, ns):
    answer = api.deploy(ns, {"apps/a/a.mtc": "void main() {\n\tStringTrim(\"x\");\n}\n"})
    assert [(w["file"], w["line"], w["message"]) for w in answer["warnings"]] == [
        ("apps/a/a.mtc", 2, "the result of StringTrim is not used, and it does nothing else")]
    assert answer["created"]


HEAD = "void main() { int x = "


@pytest.mark.parametrize("text, message", [
    (HEAD + "(" * 100000, "nested deeper than 200 levels"),
    ("void main() " + "{" * 100000, "nested deeper than 200 levels"),
    (HEAD + "- " * 100000 + "1; }", "nested deeper than 200 levels"),
    (HEAD + "1+" * 100000 + "1; }", "more than 1000 operators in a row"),
    ("void main() { PrintLine(\"" + "x" * 1000000, "string is not closed on its line"),
    ("void main() {\u0000}", "NUL byte in a program"),
    (b"void main() {\xff}", "not UTF-8"),
    ("/*" + "x" * 1000000, "comment is not closed"),
    (" " * (1024 * 1024 + 1), "the file is over 1024 KiB"),
], ids=["parentheses", "braces", "signs", "sum", "string", "nul", "bytes", "comment", "size"])
def test_o34_hostile_programs_are_refused_at_once(api, ns, text, message):
    start = time.monotonic()
    answer = api.deploy(ns, {"apps/a/a.mtc": text}, expect=422)
    assert time.monotonic() - start < 20
    assert answer["diagnostics"][0]["file"] == "apps/a/a.mtc" and answer["diagnostics"][0]["message"].startswith(message)


def test_o34_what_only_runs_for_ever_and_bom_and_crlf_are_taken(api, ns):
    api.deploy(ns, {"apps/a/a.mtc": "void main() { main(); }", "apps/b/b.mtc": "void main() { for (;;) { } }",
                    "apps/c/c.mtc": b"\xef\xbb\xbfvoid main() {\r\n\tPrintLine(\"x\");\r\n}\r\n"})


def test_the_tutorials_program_is_taken_and_a_slip_in_it_is_found(api, ns, tutorial):
    text = (tutorial / "maitento" / "apps" / "analyst" / "analyst.mtc").read_text()
    api.deploy(ns, {"apps/analyst/analyst.mtc": text})
    slip = text.replace('"sandbox", 60000, false', '"sandbox", "60000", false')
    assert slip != text
    (found,) = api.deploy(ns, {"apps/analyst/analyst.mtc": slip}, expect=422)["diagnostics"]
    assert found["message"].startswith("argument 5 of CapsuleExec takes an int, not a string: guid CapsuleExec(guid run, ")
    assert found["hint"] == "StringToInt(…) reads a number from a string" and found["line"] == 30
