#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the SDK has, as JSON, by looking at itself: which operations of the API, and the members of its types.

    {"operations": {operationId: "capsuleRuns.exec"},
     "types": {SCHEMA: {MEMBER: {"type": "string", "nullable": false, "optional": false}}}}

tests/sdk holds it against api/openapi.yaml. No server is asked.
"""
from __future__ import annotations

import collections.abc
import inspect
import json
import sys
from datetime import timedelta
from typing import Annotated, Any, Callable, Dict, Iterator, Tuple, Union, get_args, get_origin, get_type_hints

from maitento import Maitento, _records
from maitento._records import ABSENT, NULL, Record, camel
from maitento._sync.files import RunFiles, VfsFiles

NONE = type(None)
WORDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def described(hint: Any) -> Dict[str, Any]:
    """A type as JSON has it."""
    marks: Tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        marks = tuple(rest)
    kinds = [kind for kind in (get_args(hint) if get_origin(hint) is Union else (hint,)) if kind is not timedelta]
    nullable = NONE in kinds
    kinds = [kind for kind in kinds if kind is not NONE]
    optional = ABSENT in marks
    return {
        "type": word_of(kinds[0]) if len(kinds) == 1 else "any",
        "nullable": Any in kinds or (NULL in marks if optional else nullable),
        "optional": optional,
    }


def word_of(kind: Any) -> str:
    kind = get_origin(kind) or kind
    if kind is Any:
        return "any"
    if isinstance(kind, type) and issubclass(kind, Record):
        return "object"
    if kind is collections.abc.Sequence:
        return "array"
    if kind is collections.abc.Mapping:
        return "object"
    return WORDS[kind]


def types(client: Maitento) -> Iterator[Tuple[str, Dict[str, Any]]]:
    for schema, kind in _records.SCHEMAS.items():
        yield schema, {camel(name): described(hint) for name, hint in kind.hints().items()}
    # Requests are arguments here.
    for schema, method, others in (
        ("StartRequest", client.capsules.start, ("name", "namespace", "wait_for_capacity")),
        ("AppStartRequest", client.apps.start, ("name", "namespace")),
        ("InteractionStartRequest", client.interactions.start, ("name", "namespace")),
        ("CommandRequest", client.capsule_runs.exec, ("run",)),
    ):
        yield schema, dict(arguments(method, (*others, "idempotency_key")))


def arguments(method: Callable[..., Any], others: Tuple[str, ...]) -> Iterator[Tuple[str, Dict[str, Any]]]:
    hints = get_type_hints(method)
    for name, parameter in inspect.signature(method).parameters.items():
        if name not in others:
            found = described(hints[name])
            yield camel(name), {**found, "optional": parameter.default is not inspect.Parameter.empty}


def operations(client: Maitento) -> Iterator[Tuple[str, str]]:
    groups: Dict[str, Any] = {f"{camel(name)}.": value for name, value in vars(client).items() if name[0] != "_"}
    for prefix, group in ({"": client, **groups}).items():
        yield from methods(prefix, type(group))
    for kind in (VfsFiles, RunFiles):
        yield from methods("files.", kind)


def methods(prefix: str, kind: type) -> Iterator[Tuple[str, str]]:
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        for operation in getattr(function, "__operations__", ()):
            yield operation, prefix + camel(name)


def main() -> int:
    client = Maitento("unix:/nowhere")
    told = {"operations": dict(operations(client)), "types": dict(types(client))}
    json.dump(told, sys.stdout, indent=1, sort_keys=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
