# SPDX-License-Identifier: Apache-2.0
"""What the server answers, with its members as attributes in snake_case.

A member that this client does not know, of a newer server, is an attribute, too, and in `raw`. Times are texts
as the API has them ("2026-11-30T04:51:17.123456Z"), durations "hh:mm:ss". Words such as a status are plain
texts; the ones there are stand beside them.
"""
from __future__ import annotations

import re
from datetime import timedelta
from typing import (
    Annotated,
    Any,
    Callable,
    ClassVar,
    Dict,
    List,
    Mapping,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)
from typing import get_args, get_origin, get_type_hints


Duration = Union[str, timedelta]
T = TypeVar("T")

# Of a member that is there only where it tells something; it is None where it is absent.
ABSENT = "may be absent"
NULL = "may be null"
Maybe = Annotated[Optional[T], ABSENT]
MaybeNull = Annotated[Optional[T], ABSENT, NULL]

# Words of Python that are no attribute names.
_RENAMED = {"async": "run_async", "from": "from_"}
_WIRE = {"run_async": "async", "from_": "from"}

# Schemas of the API by their names there.
SCHEMAS: Dict[str, Type[Record]] = {}


def snake(name: str) -> str:
    """The attribute of a member."""
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m.group(1).lower(), name)
    return _RENAMED.get(name, name)


def camel(name: str) -> str:
    """The member of an attribute."""
    return _WIRE.get(name) or re.sub(r"_([a-z])", lambda m: m.group(1).upper(), name)


def duration(value: Optional[Duration]) -> Optional[str]:
    """ "hh:mm:ss" of a timedelta; texts go to the server as they are."""
    if value is None or isinstance(value, str):
        return value
    given: Any = value  # callers without a type checker give anything
    if not isinstance(given, timedelta):
        raise TypeError(f'a duration is "hh:mm:ss" or a timedelta, not {type(given).__name__}')
    if value.microseconds or value <= timedelta(0):
        raise ValueError(f"a duration is a whole number of seconds above zero, not {value}")
    hours, rest = divmod(value.seconds, 3600)
    clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{value.days}.{clock}" if value.days else clock


def record_in(hint: Any) -> Optional[Tuple[Type[Record], bool]]:
    """The record that a hint is about, and whether it is about a list of them."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint, False
    origin, inner = get_origin(hint), get_args(hint)
    if origin is list and inner:
        found = record_in(inner[0])
        return (found[0], True) if found else None
    if origin is Union:
        for part in inner:
            found = record_in(part)
            if found:
                return found
    return None


Plan = List[Tuple[str, str, Optional[Callable[[Any], Any]]]]


class Record:
    """raw is the object as the server sent it; record["exitCode"] is a member by its name there."""

    _plan: ClassVar[Optional[Plan]] = None
    raw: Dict[str, Any]

    def __init_subclass__(cls, schema: Optional[str] = None) -> None:
        cls._plan = None
        if schema:
            SCHEMAS[schema] = cls

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = dict(raw)
        known: Set[str] = {"raw"}
        for name, wire, make in self._members():
            value = self.raw.get(wire)
            known.add(wire)
            setattr(self, name, make(value) if make and value is not None else value)
        for wire, value in self.raw.items():
            if wire not in known and not hasattr(type(self), snake(wire)):
                setattr(self, snake(wire), value)

    @classmethod
    def hints(cls) -> Dict[str, Any]:
        """The types of the members by their attributes."""
        own = get_type_hints(cls, include_extras=True)
        return {n: h for n, h in own.items() if get_origin(h) is not ClassVar and n != "raw"}

    @classmethod
    def _members(cls) -> Plan:
        if cls._plan is None:
            plan: Plan = []
            for name, hint in cls.hints().items():
                if get_origin(hint) is Annotated:
                    hint = get_args(hint)[0]
                found = record_in(hint)
                plan.append((name, camel(name), _maker(*found) if found else None))
            cls._plan = plan
        return cls._plan

    def __getitem__(self, member: str) -> Any:
        return self.raw[member]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(other) is type(self) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={self.raw[n]!r}" for n in ("id", "name", "path", "status") if n in self.raw)
        return f"{type(self).__name__}({shown})"


def _maker(kind: Type[Record], several: bool) -> Callable[[Any], Any]:
    def one(value: Any) -> Any:
        return kind(cast(Dict[str, Any], value)) if isinstance(value, dict) else value

    def many(value: List[Any]) -> Any:
        return [one(item) for item in value]

    return many if several else one


# ---- of all answers ----


class Page(Record, schema="Page"):
    """A part of a list, and where the next one begins."""

    items: List[Any]
    next: Optional[str]


class Diagnostic(Record, schema="Diagnostic"):
    """A fault or a warning about a place in a file."""

    file: Optional[str]
    line: int
    column: int
    message: str
    hint: Maybe[str]
    source_line: Maybe[str]


class Problem(Record, schema="Problem"):
    """A failure, as the server tells it (RFC 9457); diagnostics are the faults that a deploy found."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: Maybe[str]
    help: str
    diagnostics: Maybe[List[Diagnostic]]


# ---- the server ----


class ServerInfo(Record, schema="Server"):
    """What answers: the product, its version, and the version of its API."""

    product: str
    version: str
    api_version: int


class Health(Record):
    """status is "ok"."""

    status: str
    version: str


class Component(Record):
    """Something that an image has."""

    name: str
    version: str


class Image(Record, schema="Image"):
    """An image that capsules may run on."""

    name: str
    digest: str
    size_bytes: Maybe[int]
    date_built: Maybe[str]
    components: Maybe[List[Component]]
    missing: Maybe[List[str]]


class PruneResult(Record):
    """What a prune of images removed."""

    layers_removed: int
    bytes_freed: int


class Check(Record, schema="Check"):
    """A finding; status is "ok", "warning" or "failed", remedy what to do."""

    name: str
    status: str
    detail: str
    remedy: Optional[str]


class Doctor(Record):
    """What the server found about itself and its host."""

    checks: List[Check]
    state_folder: str


# ---- access ----


class Whoami(Record, schema="Whoami"):
    """Who is asking. role: "admin", "user"; via: "key", "socket", "run"."""

    id: str
    name: str
    role: str
    via: str
    default_namespace: Optional[str]


class Namespace(Record, schema="Namespace"):
    """became_default and your_default are told where one was made."""

    id: str
    name: str
    owner: str
    date_created: str
    became_default: Maybe[bool]
    your_default: Maybe[str]


class Member(Record, schema="Member"):
    """A user who shares a namespace with its owner."""

    id: str
    name: str
    date_created: str


class Key(Record, schema="Key"):
    """An API key without its secret part."""

    id: str
    name: str
    user: str
    date_created: str
    expires: Optional[str]
    date_last_used: Optional[str]
    run_id: Optional[str]


class NewKey(Key):
    """A key that was just made: `key` is shown this once."""

    key: str


class User(Record, schema="User"):
    """role: "admin", "user"."""

    id: str
    name: str
    role: str
    date_created: str
    run_id: Optional[str]
    stopped: bool


class NewUser(User):
    """A user who was just made: `key`, the first one of theirs, is shown this once."""

    key: str


# ---- file systems, secrets, providers ----


class Vfs(Record, schema="Vfs"):
    """A file system; used_bytes when it is asked for alone, None where there is too much to count."""

    id: str
    name: str
    namespace: str
    date_created: str
    limit_bytes: int
    used_bytes: MaybeNull[int]


class VfsItem(Record, schema="Entry"):
    """A file, folder, link, fifo, socket or device (`type`) of a file system or a run.

    Names are bytes: where one is no UTF-8, path, name and target have its odd bytes and "%" as "%XX", and
    name_escaped is true. Calls that take a path take an item, too, and then mean its bytes.
    """

    path: str
    name: str
    type: str
    size: int
    mode: str
    date_modified: Optional[str]
    target: Maybe[str]
    name_escaped: bool


class Secret(Record, schema="Secret"):
    """A secret without its value."""

    id: str
    name: str
    namespace: str
    date_created: str
    date_updated: str


class Provider(Record, schema="Provider"):
    """A provider of models without its key. Prices are decimals as texts."""

    name: str
    wire: str
    base_url: Optional[str]
    schema_mode: str
    concurrency: int
    price_per_million_tokens_in: Optional[str]
    price_per_million_tokens_out: Optional[str]
    has_key: bool
    needs_key: bool
    ready: bool
    is_set: bool
    date_created: Optional[str]
    date_updated: Optional[str]


class ProviderTest(Record):
    """What came of asking a model for a word; outcome is "answered" where it did."""

    outcome: str
    failure_details: str
    answer: str
    model: Optional[str]
    http_status: Optional[int]
    requests: int
    tokens_in: Optional[int]
    tokens_out: Optional[int]
    milliseconds: int


# ---- resources ----


class Deployed(Record, schema="Deployed"):
    """A resource of a deploy; kind: "agent", "app", "capsule", "interaction", "json", "prompt"."""

    kind: str
    name: str
    version: int


class DeployResult(Record, schema="DeployResult"):
    """What a deploy did, or would do (dry_run)."""

    dry_run: bool
    created: List[Deployed]
    updated: List[Deployed]
    unchanged: List[Deployed]
    removed: List[Deployed]
    warnings: List[Diagnostic]


class ResourceItem(Record, schema="ResourceItem"):
    """A resource with its newest version."""

    name: str
    namespace: str
    version: int
    date_created: str
    date_updated: str


class ResourceVersion(Record):
    """A version, and when it came."""

    version: int
    date_created: str


class Resource(Record, schema="Resource"):
    """A resource, whole: its definition is of its own kind, a JSON schema or prompt as such."""

    name: str
    namespace: str
    version: int
    versions: List[ResourceVersion]
    date_created: str
    date_updated: str
    definition: Any


class UserOfCapsule(Record):
    """A Linux user that a capsule makes."""

    name: str


class Mount(Record):
    """A file system at /mnt/<mount_name>."""

    vfs: str
    mount_name: str


class SecretMount(Record):
    """A secret at /mnt/secrets/<mount_name>."""

    secret: str
    mount_name: str


class StartupCommand(Record, schema="StartupCommand"):
    """A command of the list that a capsule begins with."""

    command: str
    arguments: MaybeNull[List[str]]
    run_as_user: MaybeNull[str]
    max_duration: MaybeNull[str]
    wait: MaybeNull[bool]


class Limits(Record, schema="Limits"):
    """memory and disk are sizes ("2GiB"); cpus None: all of the machine's."""

    memory: Optional[str]
    cpus: Optional[float]
    pids: Optional[int]
    disk: Optional[str]


class CapsuleDefinition(Record, schema="CapsuleDefinition"):
    """What a capsule is. network: "none", "internet"."""

    packages: List[str]
    users: List[UserOfCapsule]
    vfs: List[Mount]
    secrets: List[SecretMount]
    startup: List[StartupCommand]
    auto_terminate: bool
    max_duration: str
    image: Optional[str]
    limits: Limits
    network: str
    environment: Dict[str, str]


class Capsule(Resource):
    """A capsule, the server's defaults filled in."""

    definition: CapsuleDefinition


class AppInput(Record, schema="AppInput"):
    """A parameter of an app; type: "bool", "int", "decimal", "string", "guid", "jsonObject", "jsonArray"."""

    name: str
    type: str


class App(Resource):
    """An app, and what it takes: None of a program that this server does not understand any more."""

    inputs: Optional[List[AppInput]]
    returns: Optional[str]


# ---- runs of capsules ----


class Phase(Record):
    """A part of a start, and how many microseconds it took."""

    name: str
    us: int


class StoryEntry(Record):
    """Something that happened in a run; what is a sentence for people."""

    number: int
    time: str
    kind: str
    what: str
    command_id: Maybe[str]


class CapsuleRun(Record, schema="Run"):
    """A machine, as it is or was.

    status: "Starting", "Running", "Finished", "Error". end_reason: "exited", "signaled", "timeout",
    "outOfMemory", "terminated", "startFailed", "diskFull", "supervisorLost", "nodeLost", "parentEnded".
    failure_details is empty while it lives and when it did all that it was for.
    """

    id: str
    namespace: str
    capsule: str
    version: int
    status: str
    end_reason: Optional[str]
    limit_ms: Maybe[int]
    signal: Maybe[int]
    terminated_by: Maybe[str]
    failure_details: str
    limits_reached: List[str]
    limits: Maybe[Limits]
    labels: Dict[str, str]
    started_by: str
    parent_run_id: Optional[str]
    parent_app_run_id: Optional[str]
    date_created: str
    date_ready: Optional[str]
    date_ended: Optional[str]
    max_duration: str
    deadline: Optional[str]
    image: str
    image_digest: str
    phases: List[Phase]
    date_outputs_removed: Optional[str]
    memory_peak_bytes: int
    cpu_microseconds: int
    run_seconds: float
    story: Maybe[List[StoryEntry]]

    @property
    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.status in ("Finished", "Error")


class PlannedMount(Record):
    """A file system that a start would mount."""

    vfs: str
    vfs_id: str
    mount_name: str


class PlannedSecret(Record):
    """A secret that a start would mount, without its value."""

    secret: str
    secret_id: str
    mount_name: str


class RunPlan(Record, schema="RunPlan"):
    """What a start would do."""

    dry_run: bool
    namespace: str
    capsule: str
    version: int
    image: str
    image_digest: str
    mounts: List[PlannedMount]
    secrets: List[PlannedSecret]
    definition: CapsuleDefinition


class CommandItem(Record, schema="CommandItem"):
    """A command without what it printed.

    status: "Queued", "Running", "Finished", "Error", "Aborted". end_reason: "exited", "signaled", "timeout",
    "outOfMemory", "terminated", "startFailed", "runEnded". exit_code: of a signal 128 and its number; None: it
    never started, or did not end by itself.
    """

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
    limit_ms: Maybe[int]
    signal: Maybe[int]
    failure_details: str
    limits_reached: List[str]
    date_created: str
    date_started: Optional[str]
    date_ended: Optional[str]

    @property
    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.status in ("Finished", "Error", "Aborted")


class Command(CommandItem, schema="Command"):
    """A command with the last 65,536 characters of each output; the full lengths only where there were more."""

    output_standard: str
    output_error: str
    output_standard_full_length: Maybe[int]
    output_error_full_length: Maybe[int]


class Shell(Record, schema="Shell"):
    """A shell on a terminal. status: "Running", "Ended"."""

    id: str
    run_id: str
    user: str
    term: str
    columns: int
    rows: int
    status: str
    exit_code: Optional[int]
    end_reason: Optional[str]
    details: Optional[str]
    date_created: Optional[str]
    date_ended: Optional[str]


# ---- runs of apps and interactions ----


class ConsoleLine(Record, schema="ConsoleLine"):
    """A line that an app printed, with its line end where it has one."""

    number: int
    text: str
    date: str


class LogLine(Record, schema="LogLine"):
    """A line of an app's log; level: "info", "warning", "error"."""

    number: int
    level: str
    text: str
    date: str


class StackFrame(Record):
    """A call that was under way where an app failed."""

    function: str
    place: str


class AppRunItem(Record, schema="AppRunItem"):
    """A run of an app without its inputs, outputs and what it returned.

    status: "Running", "Finished", "Error". end_reason: "returned", "failed", "timeout", "outOfMemory", "tooDeep",
    "callLimit", "cancelled", "parentEnded", "replayDiverged".
    """

    id: str
    namespace: str
    app: str
    version: int
    status: str
    end_reason: Optional[str]
    limit_ms: Maybe[int]
    cancelled_by: Maybe[str]
    failure_details: str
    failure_code: Optional[str]
    failure_place: Optional[str]
    failure_stack: List[StackFrame]
    waiting_for: Optional[str]
    started_by: str
    parent_run_id: Optional[str]
    parent_app_run_id: Optional[str]
    rerun_of: Optional[str]
    date_created: str
    date_ended: Optional[str]
    max_duration: str
    deadline: Optional[str]
    run_seconds: float
    console_outputs_full_count: int
    call_count: int

    @property
    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.status in ("Finished", "Error")


class AppRun(AppRunItem, schema="AppRun"):
    """A run of an app, whole; console_outputs is an empty list where it was not asked for."""

    inputs: Dict[str, Any]
    outputs: Dict[str, Any]
    return_value: Any
    console_outputs: Annotated[List[ConsoleLine], ABSENT]

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        if "consoleOutputs" not in self.raw:
            self.console_outputs = []


class InteractionRunItem(Record, schema="InteractionRunItem"):
    """A run of an interaction without its inputs and output.

    status: "Running", "Finished", "Error". end_reason: "answered", "wrongAnswer", "cut", "refused", "noKey",
    "badKey", "noModel", "rateLimited", "badRequest", "providerFailed", "unreachable", "timeout", "cancelled",
    "parentEnded". cost is a decimal as a text.
    """

    id: str
    namespace: str
    interaction: str
    version: int
    model: str
    status: str
    end_reason: Optional[str]
    limit_ms: Maybe[int]
    cancelled_by: Maybe[str]
    failure_details: str
    started_by: str
    parent_run_id: Optional[str]
    parent_app_run_id: Optional[str]
    date_created: str
    date_ended: Optional[str]
    max_duration: str
    deadline: Optional[str]
    run_seconds: float
    attempt_count: int
    tokens_in: Optional[int]
    tokens_out: Optional[int]
    cost: Optional[str]

    @property
    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.status in ("Finished", "Error")


class InteractionRun(InteractionRunItem, schema="InteractionRun"):
    """A run of an interaction, whole; output is JSON as a text where it has a schema, else any text."""

    output: Optional[str]
    inputs: Dict[str, Any]


class Message(Record):
    """Something that was said to a model; role: "system", "user", "assistant"."""

    role: str
    content: str


class InteractionAttempt(Record, schema="InteractionAttempt"):
    """What the model was asked once, what it answered, and what was wrong with that."""

    number: int
    outcome: Optional[str]
    faults: List[str]
    messages: List[Message]
    answer: str
    reasoning: str
    model: Optional[str]
    http_status: Optional[int]
    requests: int
    tokens_in: Optional[int]
    tokens_out: Optional[int]
    date_started: str
    date_ended: Optional[str]


class InteractionText(Record):
    """What a model said since: `text`, from byte from_ of the text `stream` on, to byte `next`."""

    stream: int
    attempt: int
    from_: int
    text: str
    next: int
    ended: bool


# ---- events ----


class EventHello(Record, schema="EventHello"):
    """The first frame of a stream, which its reader keeps to itself: events with higher numbers follow."""

    after: int
    heartbeat_seconds: int


class EventEnd(Record, schema="EventEnd"):
    """The last frame of a stream, which its reader keeps to itself: why, and the number to go on from."""

    code: str
    after: int
    sentence: str


class ChangeEvent(Record, schema="Event"):
    """Something changed.

    change: "created", "updated", "deleted", "started", "ready", "ended", …; name: of a resource or the like, and
    the capsule, app or interaction of a run. status, end_reason and exit_code only of runs and commands, as they
    were when this was sent: of one that ended they are final.
    """

    event: ClassVar[str] = "change"
    number: int
    date: str
    kind: str
    change: str
    id: str
    namespace: Optional[str]
    run_id: Optional[str]
    name: Optional[str]
    status: Optional[str]
    end_reason: Optional[str]
    exit_code: Optional[int]


class OutputEvent(Record, schema="EventOutput"):
    """What a command printed: whole characters of a stream ("standard" or "error"), from byte `offset` on."""

    event: ClassVar[str] = "output"
    run_id: str
    command_id: str
    stream: str
    offset: int
    bytes: int
    text: str


class ConsoleEvent(Record, schema="EventConsole"):
    """A line that an app printed, or a piece of a long one, from byte from_ of it on."""

    event: ClassVar[str] = "console"
    run_id: str
    number: int
    from_: int
    text: str
    date: Optional[str]


class TextEvent(Record, schema="EventText"):
    """What a model says, from byte from_ of the text `stream` on."""

    event: ClassVar[str] = "text"
    run_id: str
    stream: int
    from_: int
    text: str


Event = Union[ChangeEvent, OutputEvent, ConsoleEvent, TextEvent]
EVENTS: Dict[str, Type[Event]] = {
    "change": ChangeEvent,
    "output": OutputEvent,
    "console": ConsoleEvent,
    "text": TextEvent,
}


class OutputChunk:
    """A piece of what a command printed.

    stream: "standard" or "error"; offset: bytes of that stream before it; data: its bytes; text: the characters
    that are whole with it (one that is cut between two pieces comes with the second; bad bytes are U+FFFD).
    """

    __slots__ = ("stream", "offset", "data", "text")

    def __init__(self, stream: str, offset: int, data: bytes, text: str) -> None:
        self.stream = stream
        self.offset = offset
        self.data = data
        self.text = text

    def __repr__(self) -> str:
        return f"OutputChunk({self.stream}, {self.offset}, {self.data!r})"
