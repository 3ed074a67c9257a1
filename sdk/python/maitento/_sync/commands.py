# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/commands.py by tools/make-sync: change that.
"""Runs of capsules and the commands in them."""
from __future__ import annotations

import codecs
from typing import Iterator, List, Mapping, Optional, Sequence, Union

from .._errors import CapsuleCommandAbortedError, MaitentoError
from .._records import CapsuleRun, Command, CommandItem, Duration, OutputChunk, StoryEntry, duration
from .._wire import ANSWER, SLACK, WAIT, command_body, does, given, id_of, path_of
from .core import Core, new_key
from .files import RunFiles
from .output import OnOutput, Output

Run = Union[str, CapsuleRun]
OneCommand = Union[str, CommandItem]


class CapsuleRuns:
    """Machines: what they are, what is sent to them, what becomes of it.

    Runs and commands are named by their id, or by a record that has it. Where a wait is cancelled or broken off,
    the run and the command go on: cancel_command() and terminate() end them.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._http = core.http

    def files(self, run: Run, user: Optional[str] = None) -> RunFiles:
        """The files of a run that lives, with the rights of one of its users (maitento). Nothing is asked yet."""
        return RunFiles(self._core, id_of(run), user)

    # ---- runs ----

    @does("getRun")
    def get(self, run: Run) -> CapsuleRun:
        """A run as it is."""
        return CapsuleRun(self._http.patiently("GET", path_of("capsule-runs", id_of(run))))

    @does("listRuns")
    def list(
        self,
        namespace: Optional[str] = None,
        capsule: Optional[str] = None,
        status: Optional[str] = None,
        limit: Optional[int] = 100,
        *,
        id_ending: Optional[str] = None,
        mine: bool = False,
    ) -> List[CapsuleRun]:
        """Runs that you may see in all namespaces or one, the newest first; limit None: all."""
        query = given(namespace=namespace, capsule=capsule, status=status, id_ending=id_ending, mine=mine or None)
        return self._http.listing(path_of("capsule-runs", **query), CapsuleRun, limit)

    def wait(self, run: Run, until: str = "ended", timeout: Optional[float] = None) -> CapsuleRun:
        """The run when it has ended (or is "ready", as `until` says), or as it is after timeout seconds."""
        if until not in ("ended", "ready"):
            raise ValueError("until is 'ended' or 'ready'")

        def done(found: CapsuleRun) -> bool:
            return found.has_ended or (until == "ready" and found.status == "Running")

        parts = ("capsule-runs", id_of(run))
        return self._core.until("capsuleRun", parts, CapsuleRun, done, timeout, until=until)

    def wait_until_ready(self, run: Run, timeout: Optional[float] = None) -> CapsuleRun:
        """The run when it takes commands at once, or has ended before; or as it is after timeout seconds."""
        return self.wait(run, "ready", timeout)

    @does("terminateRun")
    def terminate(self, run: Run) -> CapsuleRun:
        """Stops a run whatever it does; once it has ended this changes nothing."""
        return CapsuleRun(self._http.patiently("POST", path_of("capsule-runs", id_of(run), "terminate")))

    @does("extendRun")
    def extend(self, run: Run, max_duration: Duration) -> CapsuleRun:
        """A new longest life, counted from the start of the run."""
        path = path_of("capsule-runs", id_of(run), "extend")
        return CapsuleRun(self._http.patiently("POST", path, {"maxDuration": duration(max_duration)}))

    def story(self, run: Run, after: int = 0) -> List[StoryEntry]:
        """What happened in a run, the oldest first: the entries with a number above `after`."""
        entries: List[StoryEntry] = []
        while True:
            path = path_of("capsule-runs", id_of(run), story=True, storyAfter=after)
            found = CapsuleRun(self._http.patiently("GET", path)).story
            if not found:
                return entries
            entries += found
            after = found[-1].number

    # ---- commands ----

    @does("sendCommand")
    def exec(
        self,
        run: Run,
        command: str,
        arguments: Optional[Sequence[str]] = None,
        *,
        run_as_user: Optional[str] = None,
        max_duration: Optional[Duration] = None,
        run_async: bool = False,
        working_directory: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> Command:
        """Sends a command and returns at once: get_command() and wait_command() tell how it went.

        command is shell text; each of the arguments reaches the program as one word, byte for byte. Commands run
        in order, one at a time, but for run_async ones, which the next does not wait for. max_duration counts from
        the command's own start. Errors: "runEnded", "forbidden" (another's run), "badField".
        """
        body = command_body(
            command, arguments, run_as_user, max_duration, run_async, working_directory, environment, stdin
        )
        path = path_of("capsule-runs", id_of(run), "commands")
        return Command(self._http.patiently("POST", path, body, new_key(idempotency_key)))

    def exec_and_wait(
        self,
        run: Run,
        command: str,
        arguments: Optional[Sequence[str]] = None,
        *,
        run_as_user: Optional[str] = None,
        max_duration: Optional[Duration] = None,
        run_async: bool = False,
        working_directory: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Command:
        """Sends a command and waits for its end. One that fails is a result: exit_code, end_reason.

        Arguments as of exec(). on_output, a plain function, is called with each OutputChunk as the command prints;
        what it raises ends the wait. Where the run ends first this raises CapsuleCommandAbortedError; where the server
        is away for more than a minute, MaitentoError "outcomeUnknown". Never a result without the command's record.
        """
        body = command_body(
            command, arguments, run_as_user, max_duration, run_async, working_directory, environment, stdin
        )
        since = self._core.hub.turn("command")
        wait = WAIT if since is None and on_output is None and not self._http.busy else 0
        path = path_of("capsule-runs", id_of(run), "commands", wait=wait or None)
        try:
            timeout = wait + SLACK if wait else ANSWER
            key = new_key(idempotency_key)
            sent = Command(self._http.patiently("POST", path, body, key, timeout=timeout))
        except MaitentoError as error:
            if error.code != "runEnded":
                raise
            raise CapsuleCommandAbortedError(str(error), None, self._last_of(run)) from error
        if on_output is not None and not (sent.has_ended and sent.status == "Aborted"):
            for chunk in Output(self._core, sent.run_id, sent.id).both():
                on_output(chunk)
            since = None
        elif sent.has_ended:
            return self._checked(sent)
        return self._checked(self._until_ended(sent.run_id, sent.id, None, since))

    def _until_ended(self, run: str, command: str, timeout: Optional[float], since: Optional[int] = None) -> Command:
        def done(found: Command) -> bool:
            return found.has_ended

        parts = ("capsule-runs", run, "commands", command)
        return self._core.until("command", parts, Command, done, timeout, since)

    def _checked(self, command: Command) -> Command:
        if command.status == "Aborted":
            raise CapsuleCommandAbortedError(command.failure_details, command, self._last_of(command.run_id))
        return command

    def _last_of(self, run: Run) -> CapsuleRun:
        """The run as it ended: its commands are told a moment before."""
        return self.wait(run, timeout=10)

    @does("getCommand")
    def get_command(self, run: Run, command: OneCommand) -> Command:
        """A command as it is, whatever became of it."""
        path = path_of("capsule-runs", id_of(run), "commands", id_of(command))
        return Command(self._http.patiently("GET", path))

    @does("getCommandById")
    def find_command(self, command: OneCommand) -> Optional[Command]:
        """A command by its whole id alone; None where there is none that you may see."""
        try:
            return Command(self._http.patiently("GET", path_of("commands", id_of(command))))
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    def wait_command(
        self, run: Run, command: OneCommand, timeout: Optional[float] = None, raise_if_aborted: bool = True
    ) -> Command:
        """The command when it has ended, or as it is after timeout seconds.

        One that was aborted is CapsuleCommandAbortedError, or with raise_if_aborted False a result, too.
        """
        found = self._until_ended(id_of(run), id_of(command), timeout)
        return self._checked(found) if raise_if_aborted else found

    @does("listCommands")
    def list_commands(
        self,
        run: Run,
        status: Optional[str] = None,
        limit: Optional[int] = None,
        *,
        id_ending: Optional[str] = None,
    ) -> List[CommandItem]:
        """The oldest first, without their outputs: get_command() has those."""
        query = given(status=status, id_ending=id_ending)
        return self._http.listing(path_of("capsule-runs", id_of(run), "commands", **query), CommandItem, limit)

    @does("cancelCommand")
    def cancel_command(self, run: Run, command: OneCommand) -> Command:
        """Ends a command, or takes it from the queue. One that runs gets SIGTERM, and SIGKILL a second later."""
        path = path_of("capsule-runs", id_of(run), "commands", id_of(command), "cancel")
        return Command(self._http.patiently("POST", path))

    # ---- what commands print ----

    @does("getCommandOutput")
    def output(
        self, run: Run, command: OneCommand, *, stream: str = "standard", start: int = 0, follow: bool = False
    ) -> Iterator[bytes]:
        """The bytes of one output ("standard" or "error") as they were printed, from byte start on.

        With follow they come as they are printed, until the command has ended. A break is made good. Of endless
        output the oldest bytes are gone: then it begins later.
        """
        for _, piece in Output(self._core, id_of(run), id_of(command)).pieces(stream, start, follow):
            yield piece

    def output_text(
        self, run: Run, command: OneCommand, *, stream: str = "standard", start: int = 0, follow: bool = False
    ) -> Iterator[str]:
        """As output(), as text: never a part of a character; bytes that are no UTF-8 are U+FFFD."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for piece in self.output(run, command, stream=stream, start=start, follow=follow):
            text = decoder.decode(piece)
            if text:
                yield text
        rest = decoder.decode(b"", True)
        if rest:
            yield rest

    def follow_output(self, run: Run, command: OneCommand) -> Iterator[OutputChunk]:
        """Both outputs from their beginning on, as they come, until the command has ended."""
        for chunk in Output(self._core, id_of(run), id_of(command)).both():
            yield chunk
