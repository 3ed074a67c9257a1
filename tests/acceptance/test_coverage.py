"""Each check of the acceptance list, and each field case, that this version promises has a test that is named so.

The names are those of the documents beside the project: `test_045_…` or `test_a45_…` stands for acceptance check 45,
`test_o07_…` for field case O-07; a name may begin with several (`test_a30_o30_…`).
"""
import ast
import os
import re
from pathlib import Path

import pytest

import totals

TESTS = Path(__file__).resolve().parent.parent

# The acceptance list, whole.
ACCEPTANCE = [str(n) for n in range(1, 93)] + ["20a", "58a", "64a", "71a", "72a"]
FIELD = [f"o{n:02}" for n in range(1, 41)]


def labels(name):
    """The checks and cases that a test's name begins with."""
    found = set()
    for word in name.removeprefix("test_").split("_"):
        if re.fullmatch(r"o\d\d", word):
            found.add(word)
        elif number := re.fullmatch(r"a?0*(\d{1,3}[a-z]?)", word):
            found.add(number.group(1))
        else:
            break
    return found


PARSED = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("test_*.py"))}
NAMED = {}  # label -> [(file, function)]
for _path, _tree in PARSED.items():
    for _node in ast.walk(_tree):
        if isinstance(_node, ast.FunctionDef) and _node.name.startswith("test_"):
            for _label in labels(_node.name):
                NAMED.setdefault(_label, []).append((_path, _node))


def asserts(node, helpers=()):
    """Whether a function checks something: itself, or through what checks: a function or a method of its file."""
    return any(isinstance(n, ast.Assert) or isinstance(n, ast.keyword) and n.arg in ("check", "expect")
               or isinstance(n, ast.Call) and (ast.unparse(n.func) in {"pytest.raises", "api.deploy"}
                                               or ast.unparse(n.func).rsplit(".", 1)[-1] in helpers)
               for n in ast.walk(node))


def uses_mt(node):
    text = ast.unparse(node)
    return any(isinstance(n, ast.Call) and ast.unparse(n.func) in ("mt", "ex") for n in ast.walk(node)) \
        or "mtserver.program('mt')" in text or bool(re.search(r"\bmt [a-z]+-[a-z]+", text))


def test_labels_are_read_from_the_beginning_of_a_name():
    assert labels("test_045_the_copied_files") == {"45"} and labels("test_a30_o30_unknown") == {"30", "o30"}
    assert labels("test_055_056_a_result") == {"55", "56"} and labels("test_020a_x") == {"20a"}
    assert labels("test_o07_lengths_beyond_two_to_the_31") == {"o07"} and labels("test_two_40") == set()


@pytest.mark.parametrize("wanted", [*ACCEPTANCE, *FIELD])
def test_each_has_a_test_that_asserts(wanted):
    assert wanted in NAMED, f"no test is named after {wanted}"
    for path, node in NAMED[wanted]:
        helpers = {n.name for n in ast.walk(PARSED[path]) if isinstance(n, ast.FunctionDef) and asserts(n)}
        assert asserts(node, {*helpers, "inside"}), f"{path.name}: {node.name} asserts nothing"


@pytest.mark.parametrize("wanted", FIELD)
def test_each_field_case_is_met_by_mt_too(wanted):
    assert any(uses_mt(node) for _, node in NAMED.get(wanted, [])), f"no test of {wanted} uses mt"


def test_the_lists_are_those_of_the_documents():
    shared = Path(os.environ.get("MT_SHARED", TESTS.parent.parent / "shared"))
    if not (shared / "field-cases.md").exists():
        pytest.skip("the documents are not beside the project")
    cases = set(re.findall(r"^### (O-\d\d) ", (shared / "field-cases.md").read_text(encoding="utf-8"), re.M))
    assert {c.replace("-", "").lower() for c in cases} >= set(FIELD)
    checks = set(re.findall(r"^(\d+[a-z]?)\. ", (shared / "acceptance.md").read_text(encoding="utf-8")
                            .split("## H.")[1], re.M))
    assert checks == set(ACCEPTANCE)


def test_how_many_there_are():
    tests = {(path, node.name) for label in [*ACCEPTANCE, *FIELD] for path, node in NAMED.get(label, [])}
    checks, cases = (sum(label in NAMED for label in labels) for labels in (ACCEPTANCE, FIELD))
    totals.say(f"{checks} of {len(ACCEPTANCE)} acceptance checks and {cases} of {len(FIELD)} field cases have tests of "
               f"their names, {len(tests)} in all")
    assert (checks, cases) == (len(ACCEPTANCE), len(FIELD))
