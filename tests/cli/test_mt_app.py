"""mt app-check and mt app-builtins: nothing is asked of a server."""
import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

GOOD = "string main(string name) {\n\treturn(\"Hello, \" + name);\n}\n"
BAD = "void main() {\n\tPrintLine(5);\n\tmissing()\n}\n"


@pytest.fixture(autouse=True)
def unasked(fake):
    yield
    assert fake.requests == []


def make(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def test_a_good_app_and_a_good_project(mt, tmp_path):
    folder = make(tmp_path / "p", {"apps/hello/hello.mtc": GOOD, "apps/other/other.mtc": GOOD,
                                   "apps/hello/hello.mtr": "", "capsules/x.mtr": "not = checked\n"})
    for path, said in ((folder, "2 apps checked, no error"), (folder / "apps" / "hello", "1 app checked, no error")):
        done = mt("app-check", path)
        assert done.out == "" and done.err.strip() == said
    assert mt("app-check", "--quiet", folder).err == ""


def test_the_code_is_listed_of_apps_without_errors(mt, tmp_path):
    folder = make(tmp_path / "p", {"apps/good/good.mtc": GOOD, "apps/bad/bad.mtc": BAD})
    listing = f"""string main, {folder}/apps/good/good.mtc:1: parameters 1, slots 1, stack 2
     0  CONSTANT 'Hello, '  # 2:9
     1  TAKE slot 0  # 2:21
     2  JOIN  # 2:19
     3  RETURN  # 2:2
"""
    done = mt("app-check", "--listing", folder, code=1)
    assert done.out == listing and "missing" in done.err
    assert json.loads(mt("app-check", "--listing", "--json", folder, code=1).out)["listings"] == {"good": listing}
    assert "listings" not in json.loads(mt("app-check", "--json", folder / "apps" / "good").out)


def test_all_errors_are_shown_with_their_places(mt, tmp_path):
    folder = make(tmp_path / "p", {"apps/a/a.mtc": BAD, "apps/b/b.mtc": "void main() { help(1); }\n",
                                   "apps/b/words.mtc": "int help() { return(\"x\"); }\n"})
    done = mt("app-check", folder, code=1)
    assert done.out == ""
    assert f"""{folder}/apps/a/a.mtc:2:12: error: argument 1 of PrintLine takes a string, not an int: void PrintLine(string text)
    \tPrintLine(5);
    \t          ^
    hint: "" + … makes a string of it
{folder}/apps/a/a.mtc:3:2: error: no function 'missing' is known
    \tmissing()
    \t^
{folder}/apps/a/a.mtc:3:11: error: ';' is missing
""" in done.err
    assert f"{folder}/apps/b/b.mtc:1:15: error: help takes 0 arguments, not 1: int help()\n" in done.err
    assert f"{folder}/apps/b/words.mtc:1:20: error: 'help' returns an int, not a string\n" in done.err
    assert done.err.endswith("5 errors in 3 files\n")


def test_json_has_the_same(mt, tmp_path):
    folder = make(tmp_path / "a", {"a.mtc": "void main() {\n\tStringTrim(\"x\");\n\tPrintLine(5);\n}\n"})
    done = mt("app-check", "--json", folder, code=1)
    answer = json.loads(done.out)
    assert answer["apps"] == 1
    assert [(d["line"], d["column"], d["hint"]) for d in answer["diagnostics"]] == [(3, 12, '"" + … makes a string of it')]
    assert [(d["line"], d["message"]) for d in answer["warnings"]] == [
        (2, "the result of StringTrim is not used, and it does nothing else")]


def test_warnings_alone_are_no_failure(mt, tmp_path):
    folder = make(tmp_path / "a", {"a.mtc": "void main() { StringTrim(\"x\"); }\n"})
    done = mt("app-check", folder)
    assert f"{folder}/a.mtc:1:15: warning: the result of StringTrim is not used" in done.err


def test_the_name_of_the_folder_is_that_of_main(mt, tmp_path):
    folder = make(tmp_path / "a", {"b.mtc": GOOD})
    done = mt("app-check", folder, code=1)
    assert f"{folder}/a.mtc: error: app 'a' has no file a.mtc: it holds main\n" in done.err
    (folder / "b.mtc").rename(folder / "a.mtc")
    assert "no error" in mt("app-check", cwd=folder).err


def test_what_is_no_app(mt, tmp_path):
    (tmp_path / "empty").mkdir()
    done = mt("app-check", tmp_path / "empty", code=3)
    assert "no app in" in done.err
    mt("app-check", tmp_path / "missing", code=3)
    (tmp_path / "file.mtc").write_text(GOOD)
    done = mt("app-check", tmp_path / "file.mtc", code=2)
    assert "is no folder" in done.err
    mt("app-check", "a", "b", code=2)


def test_hostile_files_are_refused_with_words(mt, tmp_path):
    folder = make(tmp_path / "a", {"a.mtc": "void main() { int x = " + "(" * 100000})
    done = mt("app-check", folder, code=1)
    assert "a.mtc:1:222: error: nested deeper than 200 levels" in done.err
    (folder / "a.mtc").write_bytes(b"x" * (1024 * 1024 + 1))
    done = mt("app-check", folder, code=1)
    assert "a.mtc: error: the file is over 1024 KiB" in done.err
    (folder / "a.mtc").unlink()
    os.symlink("/etc/passwd", folder / "a.mtc")
    assert "a.mtc is a link: skipped" in mt("app-check", folder, code=3).err


def test_builtins_are_listed_and_shown(mt):
    rows = mt("app-builtins").out.splitlines()
    assert any(r.split() == ["write", "void", "PrintLine(string", "text)"] for r in rows) and len(rows) > 150
    shown = mt("app-builtins", "capsuleExec").out
    assert shown.startswith("guid CapsuleExec(guid run, string command, string arguments, string user, int maxMs, bool async)\n")
    table = json.loads(mt("app-builtins", "--json").out)
    assert len(table) == len(rows)
    one = json.loads(mt("app-builtins", "--json", "JsonObjectGet").out)
    assert one in table and one["kind"] == "pure" and one["result"] == "string"
    assert one["parameters"] == [{"name": "object", "type": "jsonObject"}, {"name": "name", "type": "string"}]
    done = mt("app-builtins", "Printlin", code=3)
    assert "did you mean 'PrintLine'?" in done.err


def test_the_program_on_the_languages_page_is_right(mt, tmp_path):
    page = (ROOT / "docs" / "reference" / "language.md").read_text(encoding="utf-8")
    program = re.search(r"^```\n(// .*?)^```$", page, re.S | re.M).group(1)
    assert "int main(string folder) {" in program
    assert "no error" in mt("app-check", make(tmp_path / "a", {"a.mtc": program})).err


def test_every_builtin_that_the_languages_page_names_is_there(mt):
    page = (ROOT / "docs" / "reference" / "language.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)[`(]", page))
    known = {b["name"] for b in json.loads(mt("app-builtins", "--json").out)}
    codes = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert len(named) > 8 and named - known - codes == set()
