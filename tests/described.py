# SPDX-License-Identifier: Apache-2.0
"""api/openapi.yaml as tests hold answers against it.

check() says what an answer of the server has that the description has not. tests/conftest.py gives it every answer
that a test gets through the helpers, unless the environment has MT_CHECK_API=0; with MT_API_SEEN=FILE what was
seen is added to that file, a line each: operation, status, code.
"""
import functools
import json
import os
import re
import warnings
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parent.parent
API = yaml.load((ROOT / "api/openapi.yaml").read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
METHODS = ("get", "put", "post", "delete", "patch")
SEEN = os.environ.get("MT_API_SEEN")

with warnings.catch_warnings():  # a newer jsonschema has another way to the same
    warnings.simplefilter("ignore", DeprecationWarning)
    RESOLVER = jsonschema.RefResolver("", API)


def deref(node):
    while "$ref" in node:
        at = API
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


# Literal parts win over parameters: "/v1/vfs/{id}/files" and the like.
PATHS = sorted(((re.compile("^" + re.sub(r"{\w+}", "[^/]+", path) + "$"), path) for path in API["paths"]),
               key=lambda p: p[1].count("{"))


@functools.lru_cache(maxsize=4096)
def path_of(target):
    """The described path that a target fits, or None."""
    return next((path for pattern, path in PATHS if pattern.match(target)), None)


def operation_of(method, target):
    path = path_of(target.split("?")[0])
    return path and API["paths"][path].get("get" if method == "HEAD" else method.lower())


def strict(schema):
    """Members that the description does not name are an error here, also beside an allOf."""
    return {**schema, "unevaluatedProperties": False} if "allOf" in schema else schema


def answer_of(operation, status):
    return deref(operation["responses"].get(str(status)) or operation["responses"]["default"])


@functools.lru_cache(maxsize=None)
def validator(operation_id, status, media):
    """What holds a JSON answer of an operation against its schema; None where no such answer is described."""
    operation = next(o for item in API["paths"].values() for m, o in item.items()
                     if m in METHODS and o["operationId"] == operation_id)
    content = answer_of(operation, status).get("content", {})
    if media not in content:
        return None
    return jsonschema.Draft202012Validator(strict(deref(content[media].get("schema", {}))), resolver=RESOLVER)


def codes_of(operation):
    """The error codes that an operation may answer with: its own, and those of every operation."""
    return {*operation["x-errors"], *API["x-errors"]}


def check(method, target, status, value, media=None):
    """A sentence on what is not as described, or None. value: the decoded JSON, None of no JSON."""
    operation = operation_of(method, target)
    if operation is None or value is None:
        return None  # no such address or method: what is answered then is no operation's
    if media is None:
        media = "application/json" if status < 400 else "application/problem+json"
    found = validator(operation["operationId"], status, media)
    if found is None:
        return f"{operation['operationId']} {status} has no {media} in api/openapi.yaml"
    for error in found.iter_errors(value):
        return f"{operation['operationId']} {status}: {error.message[:500]} at {list(error.absolute_path)} (api/openapi.yaml)"
    code = value.get("code") if status >= 400 and isinstance(value, dict) else None
    if SEEN:
        with open(SEEN, "a", encoding="utf-8") as out:
            out.write(f"{operation['operationId']} {status} {code or ''}\n")
    if code and "x-errors" in operation and code not in codes_of(operation):
        return f"{operation['operationId']} answers {status} {code}, which its x-errors have not (api/openapi.yaml)"
    return None


def checked(request):
    """mtserver.Server.request, each of whose answers is held against the description."""
    @functools.wraps(request)
    def wrapper(self, method, path, body=None, headers=None, timeout=70):
        status, answer = request(self, method, path, body, headers, timeout)
        wrong = check(method, path, status, answer)
        assert not wrong, f"{method} {path}: {wrong}"
        return status, answer
    return wrapper


def check_raw(method, target, status, headers, raw):
    """The same for an answer in bytes, with its headers; the media type and the headers are looked at, too."""
    operation = operation_of(method, target)
    if operation is None:
        return None
    answer = answer_of(operation, status)
    media = (headers.get("Content-Type") or "").split(";")[0]
    if raw and media not in answer.get("content", {}):
        return f"{operation['operationId']} {status} has no {media} in api/openapi.yaml"
    names = {name.lower() for name in headers}
    for name, header in answer.get("headers", {}).items():
        if header.get("required") and name.lower() not in names:
            return f"{operation['operationId']} {status} lacks the header {name}"
    return check(method, target, status, json.loads(raw), media) if raw and media.endswith("json") else None
