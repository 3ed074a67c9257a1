#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks api/openapi.yaml: its form, its examples, and that it and the server's routes are the same.

Usage: openapi.py SOURCE-ROOT COMPILER... The route tables are read from the preprocessed source.
Prints TAP.
"""

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
    assert count > 15, count


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
