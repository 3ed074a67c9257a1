# SPDX-License-Identifier: Apache-2.0
"""No SDK drifts from the API: what each has, by its own reflection, is held against api/openapi.yaml and the list of
operations (sdk/conformance/README.md)."""
import json
import os
import subprocess

import pytest

import described
import totals
from languages import LANGUAGES, ROOT, SCENARIOS, need, program

API = described.API
OPERATIONS = json.loads((SCENARIOS / "operations.json").read_text(encoding="utf-8"))
NAMES = {id_: name for name, op in OPERATIONS.items() for id_ in [op["operationId"], *op.get("alsoOperationIds", ())] if id_}


@pytest.fixture(scope="session")
def surfaces():
    told = {}

    def of(language):
        need(language)
        if language not in told:
            done = subprocess.run(program(language, "surface"), cwd=ROOT, env=dict(os.environ), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, f"{language}: {done.stderr[-3000:]}"
            told[language] = json.loads(done.stdout)
        return told[language]
    return of


# ---- what the description says of a member ----

WORDS = {str: "string", bool: "boolean", int: "integer", float: "number"}


def types_of(schema):
    """The JSON types that a schema allows, "null" among them."""
    schema = described.deref(schema)
    if "anyOf" in schema:
        return set().union(*(types_of(s) for s in schema["anyOf"]))
    if "enum" in schema:
        return {"null" if v is None else WORDS[type(v)] for v in schema["enum"]}
    if "const" in schema:
        return {WORDS[type(schema["const"])]}
    types = schema.get("type", [])
    found = {types} if isinstance(types, str) else set(types)
    return found or {"any"}


def members_of(name):
    """{member: (types without null, nullable, optional)} of a schema that is an object, else None."""
    schema = described.deref({"$ref": f"#/components/schemas/{name}"})
    if schema.get("type") != "object" or not schema.get("properties"):
        return None
    found = {}
    for member, value in schema["properties"].items():
        types = types_of(value)
        found[member] = (types - {"null"}, "null" in types or types == {"any"}, member not in schema.get("required", ()))
    return found


TYPES = {name: members for name in API["components"]["schemas"] if (members := members_of(name))}


def fits(kind, types):
    """Whether an SDK's word for a type is right for what may come."""
    if kind == "any" or "any" in types or len(types) > 1:
        return kind == "any"
    return kind in types or (kind, types) in (("number", {"integer"}), ("object", {"any"}))


# ---- the comparisons ----

@pytest.mark.parametrize("language", LANGUAGES)
def test_090_every_operation_of_the_api_has_its_method(surfaces, language):
    has = surfaces(language)["operations"]
    wrong = [f"{id_}: {has.get(id_)}, wanted {name}" for id_, name in NAMES.items() if has.get(id_) != name]
    assert not wrong, "\n".join(wrong)
    assert not has.keys() - NAMES.keys(), f"no operations of the API: {has.keys() - NAMES.keys()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_091_every_type_has_the_members_of_its_schema(surfaces, language):
    has = surfaces(language)["types"]
    wrong = [f"no type for {name}" for name in TYPES if name not in has]
    for name, members in TYPES.items():
        mine = has.get(name, {})
        wrong += [f"{name}.{m} is missing" for m in members if name in has and m not in mine]
        wrong += [f"{name}.{m} is in no schema" for m in mine if m not in members]
        for member, (types, nullable, optional) in members.items():
            if told := mine.get(member):
                if not fits(told["type"], types):
                    wrong.append(f"{name}.{member}: {told['type']}, wanted {'/'.join(sorted(types))}")
                # Null and absent are one word in most languages; what may be anything may be null.
                if types != {"any"} and (told["nullable"] or told["optional"]) != (nullable or optional):
                    wrong.append(f"{name}.{member}: {'may' if nullable or optional else 'may never'} be null or absent")
    unknown = has.keys() - API["components"]["schemas"].keys()
    assert not wrong and not unknown, "\n".join([*wrong[:60], *(f"no schema {name}" for name in unknown)])


def test_all_languages_have_the_same(surfaces):
    told = {}
    for language in LANGUAGES:
        try:
            told[language] = surfaces(language)
        except pytest.skip.Exception:
            continue
    first, *others = told
    totals.say(f"{len(NAMES)} operations and {len(TYPES)} types compared in {len(told)} of {len(LANGUAGES)} languages")
    for other in others:
        assert told[other]["operations"] == told[first]["operations"]
        assert {n: set(m) for n, m in told[other]["types"].items()} == {n: set(m) for n, m in told[first]["types"].items()}
