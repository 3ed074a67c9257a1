#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks api/openapi.yaml: its form, its examples, and that it and the server's routes are the same.

Usage: openapi.py SOURCE-ROOT COMPILER... The route tables are read from the preprocessed source.
Prints TAP.
"""

import json
import re
import subprocess
import sys
import traceback
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(sys.argv[1])
CC = sys.argv[2:] or ["cc"]
API = yaml.safe_load((ROOT / "api/openapi.yaml").read_text(encoding="utf-8"))
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def deref(node):
    while isinstance(node, dict) and "$ref" in node:
        at = API
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


def operations():
    for path, item in API["paths"].items():
        for method in METHODS:
            if method in item:
                parameters = [deref(p) for p in item.get("parameters", []) +
                              item[method].get("parameters", [])]
                yield f"{method.upper()} {path}", path, item[method], parameters


def nodes(node, where="#"):
    yield where, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from nodes(value, f"{where}/{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from nodes(value, f"{where}/{i}")


def validate(schema, value, where):
    resolver = jsonschema.RefResolver("", API)
    errors = list(jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(value))
    assert not errors, f"{where}: {errors[0].message} at {list(errors[0].absolute_path)}"


def test_form():
    assert API["openapi"] == "3.1.0"
    build = (ROOT / "meson.build").read_text(encoding="utf-8")
    assert API["info"]["version"] == re.search(r"\bversion: '([^']+)'", build).group(1), "the version of meson.build"
    for where, node in nodes(API):
        if isinstance(node, dict) and "$ref" in node:
            assert deref(node), where
    ids, tags = set(), {t["name"] for t in API["tags"]}
    for name, path, op, parameters in operations():
        assert op["operationId"] not in ids, f"{name}: its operationId is taken"
        ids.add(op["operationId"])
        assert op.get("summary") and set(op["tags"]) <= tags, name
        assert "default" in op["responses"], name
        assert any(c.startswith("2") for c in op["responses"]), name
        inside = set(re.findall(r"{(\w+)}", path))
        declared = {p["name"] for p in parameters if p["in"] == "path"}
        assert inside == declared, f"{name}: {inside} in the path, {declared} declared"
        for p in parameters:
            assert p["in"] != "path" or p["required"], name


def test_the_document_is_openapi_3_1():
    schema = json.loads((ROOT / "tests/data/openapi-3.1/schema.json").read_text(encoding="utf-8"))
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(API))
    assert not errors, f"{errors[0].message} at {list(errors[0].absolute_path)}"


def described(schema):
    """Whether a schema says what it is: itself, by what it refers to, or by its one value."""
    return "description" in schema or "const" in schema or ("$ref" in schema and described(deref(schema))) \
        or any(described(s) for s in schema.get("anyOf", ()))


def members(schema, where):
    """All members of a schema, at every depth, with their place; those that it refers to have their own."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return
    for name, member in schema.get("properties", {}).items():
        yield f"{where}.{name}", member
        yield from members(member, f"{where}.{name}")
    for part in (*schema.get("allOf", ()), *schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")):
        yield from members(part, where)


def test_every_part_is_described():
    missing = []
    for name, schema in API["components"]["schemas"].items():
        missing += [name] if not described(schema) else []
        missing += [where for where, member in members(schema, name) if not described(member)]
    for name, _, op, parameters in operations():
        missing += [f"{name}: parameter {p['name']}" for p in parameters if not described({**p, **p["schema"]})]
        bodies = [("request", op.get("requestBody", {})), *op["responses"].items()]
        for status, body in ((s, deref(b)) for s, b in bodies):
            missing += [f"{name} {status}: header {h}" for h, v in body.get("headers", {}).items() if not v.get("description")]
            for media in body.get("content", {}).values():
                # The items of a page are what the operation is about.
                missing += [f"{name} {where}" for where, member in members(media.get("schema"), status)
                            if not described(member) and not where.endswith(".items")]
    assert not missing, f"{len(missing)} without a description: " + ", ".join(missing[:20])


def test_every_json_has_an_example():
    missing = []
    for name, _, op, _ in operations():
        for status, body in [("request", op.get("requestBody", {})), *op["responses"].items()]:
            for media, content in deref(body).get("content", {}).items():
                empty = deref(content.get("schema", {})).get("maxProperties") == 0
                if media.endswith("json") and not empty and not {"example", "examples"} & content.keys():
                    missing.append(f"{name} {status}")
    assert missing == ["GET /openapi.json 200"], missing


def test_schemas():
    for where, node in nodes(API["components"]["schemas"]):
        if where.count("/") == 1:
            jsonschema.Draft202012Validator.check_schema(node)


def test_examples():
    count = 0
    for where, node in nodes(API):
        if isinstance(node, dict) and "schema" in node and "example" in node:
            validate(node["schema"], node["example"], where)
            count += 1
        if isinstance(node, dict) and "schema" in node and "examples" in node:
            for name, example in node["examples"].items():
                validate(node["schema"], deref(example)["value"], f"{where}, {name}")
                count += 1
    assert count > 100, count
    used = {node["$ref"] for _, node in nodes(API["paths"]) if isinstance(node, dict) and "$ref" in node}
    unused = [name for name in API["components"]["examples"] if f"#/components/examples/{name}" not in used]
    assert not unused, f"examples that nothing shows: {unused}"


def test_error_codes_of_operations():
    """x-errors of an operation: the codes that it may answer for reasons of its own; at the top: what any request may be
    answered with. tests/described.py holds real answers against them."""
    codes = API["components"]["schemas"]["Code"]["enum"]
    common = API["x-errors"]
    assert common == [c for c in codes if c in common], "x-errors are in the order of Code"
    for name, _, op, _ in operations():
        own = op["x-errors"]
        assert own == [c for c in codes if c in own], f"{name}: x-errors are codes, in the order of Code: {own}"


def read_routes():
    routes = {}
    for source in sorted((ROOT / "src/server").glob("routes-*.c")):
        text = subprocess.run([*CC, "-E", "-P", "-D_GNU_SOURCE", f"-I{ROOT}/src", str(source)],
                              capture_output=True, text=True, check=True).stdout
        for entry in re.findall(r"{\s*\.method\s*=([^{}]*)}", re.sub(r"{([a-z]+)}", r"<\1>", text)):
            fields = {"method": entry.split(",")[0]}
            for part in re.split(r",\s*\.", entry)[1:]:
                key, value = part.split("=", 1)
                fields[key.strip()] = value
            text_of = {k: "".join(re.findall(r'"([^"]*)"', fields.get(k, "")))
                       for k in ("method", "pattern", "query")}
            pattern = text_of["pattern"].replace("<", "{").replace(">", "}")
            flags = set(re.findall(r"MT_ROUTE_\w+", fields.get("flags", "")))
            routes[f"{text_of['method']} {pattern}"] = {
                "query": set(text_of["query"].split()) | ({"wait"} if "MT_ROUTE_WAIT" in flags else set()),
                "open": "MT_ROUTE_OPEN" in flags,
                "body": "max_body" in fields or "begin" in fields,
            }
    return routes


def test_routes():
    routes = read_routes()
    described = {}
    for name, path, op, parameters in operations():
        described[name] = {
            "query": {p["name"] for p in parameters if p["in"] == "query"},
            "open": op.get("security") == [],
            "body": "requestBody" in op,
        }
    assert len(routes) > 40, f"only {len(routes)} routes were found in the source"
    missing, extra = routes.keys() - described.keys(), described.keys() - routes.keys()
    assert not missing, f"not described: {sorted(missing)}"
    assert not extra, f"described, but not routes: {sorted(extra)}"
    for name in sorted(routes):
        assert routes[name] == described[name], f"{name}: {routes[name]}, described {described[name]}"


def test_codes():
    text = (ROOT / "src/base/errors.def").read_text(encoding="utf-8")
    codes = re.findall(r'^MT_ERROR\(\w+,\s*"(\w+)"', text, re.M)
    assert API["components"]["schemas"]["Code"]["enum"] == codes, \
        set(codes) ^ set(API["components"]["schemas"]["Code"]["enum"])


def test_limits():
    """Numbers that the description gives are those of the source."""
    constants = {}
    for header in ("src/capsule/plan.h", "src/core/deploy.h"):
        text = (ROOT / header).read_text(encoding="utf-8")
        constants |= {name: int(value) for name, value in re.findall(r"\b(MT_\w+_MAX\w*) = (\d+)[,\s}]", text)}
    schemas = API["components"]["schemas"]
    deploy = API["paths"]["/v1/namespaces/{ns}/deploy"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for told, name in (
            (schemas["CommandRequest"]["properties"]["arguments"]["maxItems"], "MT_PLAN_ARGUMENTS_MAX"),
            (schemas["CapsuleDefinition"]["properties"]["packages"]["maxItems"], "MT_PLAN_PACKAGES_MAX"),
            (deploy["properties"]["files"]["maxItems"], "MT_DEPLOY_MAX_FILES")):
        assert told == constants[name], f"{told} is told, {name} is {constants[name]}"
    for name in ("MT_PLAN_ARGUMENT_MAX", "MT_PLAN_ENV_MAX", "MT_PLAN_STARTUP_MAX"):
        assert f"{constants[name]:,}" in json.dumps(schemas), f"{name}, {constants[name]:,}, is not told"


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    failed = 0
    for i, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {i} - {name}")
        except Exception:
            failed += 1
            print(f"not ok {i} - {name}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()[-4:]),
                  end="")
    print(f"1..{len(tests)}")
    return 1 if failed else 0


sys.exit(main())
