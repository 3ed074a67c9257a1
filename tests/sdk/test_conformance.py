# SPDX-License-Identifier: Apache-2.0
"""Every scenario of sdk/conformance in every language, against one server: the same list, the same results."""
import json
import re

import jsonschema
import pytest

import described
import totals
import languages
from languages import LANGUAGES, SCENARIOS, begin, names_of, need, parsed, themes

SECONDS = 420
OPERATIONS = json.loads((SCENARIOS / "operations.json").read_text(encoding="utf-8"))
# What the scenarios have to be about: rows of the acceptance list, and field cases with an SDK part.
WANTED = {"8", "9", "10", "15", "16", "39", "40", "41", "42", "43", "44", "45", "46", "47", "53", "54", "56", "57", "58", "58a",
          "60", "61", "62", "63", "64", "65", "73", "O-04", "O-05", "O-08", "O-09", "O-12", "O-17", "O-18", "O-19", "O-20",
          "O-21", "O-22", "O-27", "O-28", "O-31", "O-32"}


@pytest.fixture(scope="session")
def outcomes(surroundings):
    """What the drivers said, each run once and when it is first asked for: language -> (results, plan, status, errors)."""
    told = {}

    def of(language):
        need(language)
        if language not in told:
            driver = begin(language, themes(), surroundings)
            try:
                out, err = driver.communicate(timeout=SECONDS)
            finally:
                driver.kill()
            told[language] = (*parsed(out), driver.returncode, err)
        return told[language]
    return of


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", names_of(themes()))
def test_scenario(outcomes, language, name):
    results, _, _, err = outcomes(language)
    found = [(outcome, words) for title, outcome, words in results if title == name]
    assert found, f"{language} did not run it: {err[-2000:]}"
    assert found == [("ok", "")], f"{language}: {found[0][0]}: {found[0][1]}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_driver_says_all_that_it_ran_and_nothing_else(outcomes, language):
    results, plan, status, err = outcomes(language)
    assert [name for name, _, _ in results] == names_of(themes()), err[-2000:]
    assert plan == len(results)
    assert status == (1 if any(outcome == "failed" for _, outcome, _ in results) else 0), err[-2000:]


def test_all_languages_say_the_same(outcomes):
    here = [language for language in LANGUAGES if not languages.lacking(language)]
    said = {language: [(name, outcome) for name, outcome, _ in outcomes(language)[0]] for language in here}
    totals.say(f"{len(names_of(themes()))} scenarios in {len(here)} of {len(LANGUAGES)} languages")
    first = said[here[0]]
    for language in here[1:]:
        differ = [(a, b) for a, b in zip(first, said[language]) if a != b]
        assert said[language] == first, f"{here[0]} and {language} differ: {differ[:5]}"


# ---- the list itself ----

def steps_of(theme):
    for part in (theme.get("setup", []), *(s["steps"] for s in theme["scenarios"]), theme.get("teardown", [])):
        yield from part


THEMES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in themes()}


@pytest.mark.parametrize("name", THEMES)
def test_a_file_has_the_form_that_the_readme_tells(name):
    schema = json.loads((SCENARIOS / "schema.json").read_text(encoding="utf-8"))
    theme = THEMES[name]
    errors = [f"{e.message[:300]} at {list(e.absolute_path)}" for e in jsonschema.Draft202012Validator(schema).iter_errors(theme)]
    assert not errors, errors[0]
    assert theme["theme"] == name
    titles = [scenario["name"] for scenario in theme["scenarios"]]
    assert len(set(titles)) == len(titles)
    unknown = {step["call"] for step in steps_of(theme) if "call" in step} - OPERATIONS.keys()
    assert not unknown, unknown
    for step in steps_of(theme):
        if "call" in step:
            known = {*OPERATIONS[step["call"]]["positional"], *OPERATIONS[step["call"]]["options"],
                     "vfs", "vfsId", "run", "user", "base64", "files", "text", "valueBase64", "events", "match"}
            assert set(step.get("with", {})) <= known, (step["call"], set(step["with"]) - known)


def test_every_operation_is_used_by_a_scenario():
    used = {step["call"] for theme in THEMES.values() for step in steps_of(theme) if "call" in step}
    assert OPERATIONS.keys() == used, OPERATIONS.keys() ^ used


def test_every_operation_of_the_api_is_one_of_the_sdks():
    named = {id_ for op in OPERATIONS.values() for id_ in [op["operationId"], *op.get("alsoOperationIds", ())] if id_}
    there = {op["operationId"] for item in described.API["paths"].values() for m, op in item.items() if m in described.METHODS}
    assert named == there, named ^ there


def test_the_scenarios_are_about_what_was_promised():
    about = {re.sub(r"^(\d+[a-z]?|[A-Z]-\d+|\S+).*$", r"\1", label) for theme in THEMES.values()
             for scenario in theme["scenarios"] for label in scenario["covers"]}
    assert not WANTED - about, WANTED - about
