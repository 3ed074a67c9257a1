# SPDX-License-Identifier: Apache-2.0
"""What the server answers, with its members as attributes in snake_case."""
from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Dict, List, Optional, Union

Duration = Union[str, timedelta]

# Words of Python that are no attribute names.
_RENAMED = {"async": "run_async", "from": "from_"}


def snake(name: str) -> str:
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m.group(1).lower(), name)
    return _RENAMED.get(name, name)


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


def duration(value: Optional[Duration]) -> Optional[str]:
    """ "hh:mm:ss" of a timedelta; texts go to the server as they are. """
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, timedelta):
        raise TypeError(f'a duration is "hh:mm:ss" or a timedelta, not {type(value).__name__}')
    if value.microseconds or value <= timedelta(0):
        raise ValueError(f"a duration is a whole number of seconds above zero, not {value}")
    hours, rest = divmod(value.seconds, 3600)
    clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{value.days}.{clock}" if value.days else clock


class Record:
    """raw is the object as the server sent it."""

    def __init__(self, raw: Dict[str, Any]):
        self.raw = raw
        for name, value in raw.items():
            setattr(self, snake(name), value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.raw == self.raw  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={self.raw[n]!r}" for n in ("id", "name", "path", "status") if n in self.raw)
        return f"{type(self).__name__}({shown})"


class Namespace(Record):
    id: str
    name: str
    owner: str
    date_created: str


class Vfs(Record):
    id: str
    name: str
    namespace: str
    date_created: str
    limit_bytes: int


class Secret(Record):
    """Never its value."""

    id: str
    name: str
    namespace: str
    date_created: str
    date_updated: str


class VfsItem(Record):
    path: str
    name: str
    type: str
    size: int
    mode: str
    date_modified: str
    name_escaped: bool


class DeployResult(Record):
    dry_run: bool
    created: List[Dict[str, Any]]
    updated: List[Dict[str, Any]]
    unchanged: List[Dict[str, Any]]
    removed: List[Dict[str, Any]]
    warnings: List[Dict[str, Any]]


class Capsule(Record):
    name: str
    namespace: str
    version: int
    definition: Dict[str, Any]


class CapsuleRun(Record):
    id: str
    namespace: str
    capsule: str
    version: int
    status: str
    end_reason: Optional[str]
    failure_details: str
    limits_reached: List[str]
    limits: Optional[Dict[str, Any]]  # of one that was asked for alone
    labels: Dict[str, str]
    started_by: str
    date_created: str
    date_ready: Optional[str]
    date_ended: Optional[str]
    max_duration: str
    date_outputs_removed: Optional[str]

    @property
    def has_ended(self) -> bool:
        return self.status in ("Finished", "Error")


class StoryEntry(Record):
    """Something that happened in a run; what is a sentence for people."""

    number: int
    time: str
    kind: str
    what: str
    command_id: Optional[str] = None


class Command(Record):
    id: str
    run_id: str
    command: str
    arguments: List[str]
    run_as_user: str
    run_async: bool
    max_duration: Optional[str]
    working_directory: Optional[str]
    environment: Dict[str, str]
    status: str
    end_reason: Optional[str]
    exit_code: Optional[int]
    output_standard: str
    output_error: str
    failure_details: str
    limits_reached: List[str]
    date_created: str
    date_started: Optional[str]
    date_ended: Optional[str]

    # Given only where they tell something: which limit ended it, which signal, more than is kept.
    limit_ms: Optional[int] = None
    signal: Optional[int] = None
    output_standard_full_length: Optional[int] = None
    output_error_full_length: Optional[int] = None

    @property
    def has_ended(self) -> bool:
        return self.status in ("Finished", "Error", "Aborted")


class ConsoleLine(Record):
    """A line that an app printed, with its line end where it has one."""

    number: int
    text: str
    date: str


class AppRun(Record):
    id: str
    namespace: str
    app: str
    version: int
    status: str
    end_reason: Optional[str]
    failure_details: str
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]
    return_value: Any
    date_created: str
    date_ended: Optional[str]
    console_outputs: List[ConsoleLine] = []

    def __init__(self, raw: Dict[str, Any]):
        super().__init__(raw)
        self.console_outputs = [ConsoleLine(line) for line in raw.get("consoleOutputs", [])]
