# SPDX-License-Identifier: Apache-2.0
"""Models asked through a real engine (llama.cpp): what it says is noise, but its tokens, its streams and its grammars are
its own. So an answer that fits a schema fits because the schema came to the engine."""
import json

import jsonschema
import pytest

import engine as own_engine

AGENT = 'model = @ref("custom.{model}")\nprompt = "You sort letters."\n{more}'
LETTER = {
    "type": "object",
    "properties": {
        "desk": {"enum": ["orders", "repairs", "bills"]},
        "urgent": {"type": "boolean"},
        "urgency": {"enum": [1, 2, 3]},
        "reply": {"type": "string", "maxLength": 12},
        "parts": {"type": "array", "maxItems": 2, "items": {
            "type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "spare": {"type": ["boolean", "null"]}},
            "required": ["name", "spare"], "additionalProperties": False}},
    },
    "required": ["desk", "urgent", "urgency", "reply", "parts"],
    "additionalProperties": False,
}


def deploy(asked, engine, schema=None, model=None, agent="", more=""):
    asked.deploy(schema=json.dumps(schema) if schema else None, more=more,
                 **{"agents/analyst.mtr": AGENT.format(model=model or engine.MODEL, more=agent)})


@pytest.fixture()
def ask(asked, mt):
    """interaction-run as a person runs it."""
    def run(text="My chain came off.", code=0, more=()):
        return mt("interaction-run", "next", "--input-question", text, *more, namespace=asked.ns, check=code)
    return run


def test_an_answer_bound_by_its_schema(engine, asked, ask):
    deploy(asked, engine, LETTER, more="attempts = 1\n")
    for letter in ("My chain came off.", "Where is my bill?", "Ein Sattel für 20 €, bitte."):
        output = json.loads(ask(letter).stdout)
        jsonschema.validate(output, LETTER)
    run = asked.get(asked.list()[0])
    assert (run["status"], run["endReason"], run["attemptCount"], run["model"]) == ("Finished", "answered", 1, "custom.noise")
    assert json.loads(run["output"]) == output
    # The engine counts each byte of what it reads as a token.
    assert run["tokensIn"] > len("You sort letters.") and run["tokensOut"] > 10


def test_without_the_grammar_nothing_fits(engine, asked, ask, mt):
    deploy(asked, engine, LETTER, more="attempts = 2\n")
    mt("provider-set", "custom", "--schema-mode", "none", check=0)
    said = ask(code=1)
    assert said.stdout == "" and "does not fit its schema after 2 attempts" in said.stderr
    (run,) = asked.list()
    assert run["endReason"] == "wrongAnswer" and [a["outcome"] for a in asked.attempts(run)] == ["wrongAnswer"] * 2


@pytest.mark.parametrize("schema", [
    {"type": "array", "items": {"enum": ["a", "b", None]}, "minItems": 3, "maxItems": 3},
    {"enum": ["orders", "repairs"]},
    {"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "number"}}, "required": ["n", "x"],
     "additionalProperties": False},
    {"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False},
               {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"], "additionalProperties": False}]},
])
def test_schemas_of_other_kinds(engine, asked, ask, schema):
    deploy(asked, engine, schema, more="attempts = 1\n")
    jsonschema.validate(json.loads(ask().stdout), schema)


def test_text_comes_in_pieces(engine, asker):
    text = asker.ask(engine.url, model=engine.MODEL, provider="custom", temperature=1, key="")
    pieces = [e["text"] for tag in asker.events for e in asker.events[tag] if e["event"] == "text"]
    assert text["end"] == "answered" and "".join(pieces) == text["text"] and len(pieces) > 5, text
    bound = asker.ask(engine.url, model=engine.MODEL, provider="custom", temperature=1, key="",
                      schema=json.dumps(LETTER), mode="schema")
    jsonschema.validate(json.loads(bound["text"]), LETTER)
    assert sum(e["event"] == "text" for e in asker.events["t2"]) > 5


def test_mt_shows_what_it_says(engine, asked, ask):
    deploy(asked, engine, LETTER, more="attempts = 1\n")
    done = ask(more=["--stream"])
    jsonschema.validate(json.loads(done.stdout), LETTER)
    assert done.stderr == "attempt 1\n" + done.stdout


def test_an_answer_that_is_cut_by_the_engine(engine, asked, ask):
    deploy(asked, engine, LETTER, agent="maxTokens = 6\n")
    assert "was cut short at its limit of 6 tokens" in ask(code=1).stderr
    assert [r["endReason"] for r in asked.list()] == ["cut"]


def test_a_model_that_the_engine_does_not_have(engine, asked, ask, mt):
    deploy(asked, engine, model="other")
    assert "'other' does not exist" in ask(code=1).stderr and [r["endReason"] for r in asked.list()] == ["noModel"]
    assert f"custom.{engine.MODEL} answered in " in mt("provider-test", f"custom.{engine.MODEL}", check=0).stderr


def test_without_a_way_to_the_packages_there_is_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    with pytest.raises(own_engine.Absent, match="npm cannot have the engine's packages here: ECONNREFUSED"):
        own_engine.check_machine()
        own_engine.packages(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["lock"]
