# SPDX-License-Identifier: Apache-2.0
"""Runs of capsules and the commands in them."""
from __future__ import annotations

import http.client
import time
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from ._errors import CapsuleCommandAbortedError, MaitentoError
from ._files import RunFiles
from ._http import PATIENCE, Http, path_of
from ._records import CapsuleRun, Command, Duration, StoryEntry, duration

WAIT = 30  # seconds for which one request waits


def id_of(thing: Any) -> str:
    """An id, or something that has one."""
    found = thing if isinstance(thing, str) else getattr(thing, "id", None)
    if not isinstance(found, str) or not found:
        raise TypeError(f"an id is wanted, not {type(thing).__name__}")
    return found


def _body(command: str, arguments: Optional[Sequence[str]], options: Mapping[str, Any]) -> Dict[str, Any]:
    if isinstance(arguments, (str, bytes)):
        raise TypeError('arguments are a list, one word each: ["-l", "/tmp"], not a text')
    body = {"command": command, "arguments": list(arguments) if arguments else None,
            "runAsUser": options["run_as_user"], "maxDuration": duration(options["max_duration"]),
            "async": options["run_async"] or None, "workingDirectory": options["working_directory"],
            "environment": dict(options["environment"]) if options["environment"] else None,
            "stdin": options["stdin"]}
    return {name: value for name, value in body.items() if value is not None}


class CapsuleRuns:
    """Runs are named by their id, or by the object that start() gave."""

    def __init__(self, http: Http):
        self._http = http

    # ---- files ----

    def files(self, run: Union[str, CapsuleRun], user: Optional[str] = None) -> RunFiles:
        """The files of a run that lives, with the rights of one of its users (maitento)."""
        return RunFiles(self._http, id_of(run), user)

    # ---- runs ----

    def get(self, run: Union[str, CapsuleRun]) -> CapsuleRun:
        return CapsuleRun(self._http.patiently("GET", path_of("capsule-runs", id_of(run))))

    def list(self, namespace: Optional[str] = None, capsule: Optional[str] = None,
             status: Optional[str] = None, limit: Optional[int] = 100) -> List[CapsuleRun]:
        """The newest first; limit None: all."""
        path = path_of("capsule-runs", namespace=namespace, capsule=capsule, status=status)
        return [CapsuleRun(item) for item in self._http.pages(path, limit)]

    def wait(self, run: Union[str, CapsuleRun], until: str = "ended",
             timeout: Optional[float] = None) -> CapsuleRun:
        """The run when it has ended (or is "ready"), or as it is after timeout seconds."""
        if until not in ("ended", "ready"):
            raise ValueError("until is 'ended' or 'ready'")
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seconds = self._seconds(end)
            found = CapsuleRun(self._ask(path_of("capsule-runs", id_of(run), wait=seconds, until=until), seconds))
            if found.has_ended or (until == "ready" and found.status == "Running"):
                return found
            if end is not None and time.monotonic() >= end:
                return found

    def terminate(self, run: Union[str, CapsuleRun]) -> CapsuleRun:
        """Stops a run whatever it does; once it has ended this changes nothing."""
        return CapsuleRun(self._http.patiently("POST", path_of("capsule-runs", id_of(run), "terminate")))

    def extend(self, run: Union[str, CapsuleRun], max_duration: Duration) -> CapsuleRun:
        """A new longest life, counted from the start of the run."""
        return CapsuleRun(self._http.patiently("POST", path_of("capsule-runs", id_of(run), "extend"),
                                               {"maxDuration": duration(max_duration)}))

    # ---- commands ----

    def exec(self, run: Union[str, CapsuleRun], command: str, arguments: Optional[Sequence[str]] = None, *,
             run_as_user: Optional[str] = None, max_duration: Optional[Duration] = None,
             run_async: bool = False, working_directory: Optional[str] = None,
             environment: Optional[Mapping[str, str]] = None, stdin: Optional[str] = None,
             idempotency_key: Optional[str] = None) -> Command:
        """Sends a command and returns at once: get_command() and wait_command() tell how it went."""
        return self._send(run, _body(command, arguments, locals()), idempotency_key, 0)

    def exec_and_wait(self, run: Union[str, CapsuleRun], command: str,
                      arguments: Optional[Sequence[str]] = None, *,
                      run_as_user: Optional[str] = None, max_duration: Optional[Duration] = None,
                      run_async: bool = False, working_directory: Optional[str] = None,
                      environment: Optional[Mapping[str, str]] = None, stdin: Optional[str] = None,
                      idempotency_key: Optional[str] = None) -> Command:
        """Sends a command and waits for its end. One that fails is a result; only where the run ends
        first this raises CapsuleCommandAbortedError."""
        try:
            sent = self._send(run, _body(command, arguments, locals()), idempotency_key, WAIT)
        except MaitentoError as error:
            if error.code != "runEnded":
                raise
            raise CapsuleCommandAbortedError(str(error), None, self._last_of(run)) from error
        return self._ended(sent if sent.has_ended else self.wait_command(run, sent, raise_if_aborted=False))

    def _send(self, run: Union[str, CapsuleRun], body: Dict[str, Any], key: Optional[str], wait: int) -> Command:
        path = path_of("capsule-runs", id_of(run), "commands", wait=wait or None)
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return Command(self._http.patiently("POST", path, body, headers, timeout=wait + 60))

    def _ended(self, command: Command) -> Command:
        if command.status == "Aborted":
            raise CapsuleCommandAbortedError(command.failure_details, command, self._last_of(command.run_id))
        return command

    def _last_of(self, run: Union[str, CapsuleRun]) -> CapsuleRun:
        """The run as it ended: its commands are told a moment before."""
        return self.wait(run, timeout=10)

    def get_command(self, run: Union[str, CapsuleRun], command: Union[str, Command]) -> Command:
        return Command(self._http.patiently("GET", path_of("capsule-runs", id_of(run), "commands", id_of(command))))

    def find_command(self, command: str) -> Optional[Command]:
        """A command by its whole id alone; None where there is none that you may see."""
        try:
            return Command(self._http.patiently("GET", path_of("commands", id_of(command))))
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    def story(self, run: Union[str, CapsuleRun], after: int = 0) -> List[StoryEntry]:
        """What happened in a run, the oldest first: the entries with a number above `after`."""
        entries: List[StoryEntry] = []
        while True:
            answer = self._http.patiently("GET", path_of("capsule-runs", id_of(run), story="true", storyAfter=after))
            found = [StoryEntry(item) for item in answer.get("story", [])]
            if not found:
                return entries
            entries += found
            after = found[-1].number

    def wait_command(self, run: Union[str, CapsuleRun], command: Union[str, Command],
                     timeout: Optional[float] = None, raise_if_aborted: bool = True) -> Command:
        """The command when it has ended, or as it is after timeout seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seconds = self._seconds(end)
            found = Command(self._ask(path_of("capsule-runs", id_of(run), "commands", id_of(command),
                                              wait=seconds), seconds))
            if found.has_ended:
                return self._ended(found) if raise_if_aborted else found
            if end is not None and time.monotonic() >= end:
                return found

    def list_commands(self, run: Union[str, CapsuleRun], status: Optional[str] = None,
                      limit: Optional[int] = None) -> List[Command]:
        """The oldest first, without their outputs: get_command() has those."""
        path = path_of("capsule-runs", id_of(run), "commands", status=status)
        return [Command(item) for item in self._http.pages(path, limit)]

    def cancel_command(self, run: Union[str, CapsuleRun], command: Union[str, Command]) -> Command:
        """Ends a command, or takes it from the queue."""
        return Command(self._http.patiently(
            "POST", path_of("capsule-runs", id_of(run), "commands", id_of(command), "cancel")))

    def output(self, run: Union[str, CapsuleRun], command: Union[str, Command], *, stream: str = "standard",
               start: int = 0, follow: bool = False) -> Iterator[bytes]:
        """The bytes of one output ("standard" or "error") as they were printed, from byte start on. With
        follow they come as they are printed, until the command has ended. Of endless output the oldest
        bytes are gone: then it begins later."""
        run_id, command_id, at = id_of(run), id_of(command), start
        ended, since, tries = not follow, time.monotonic(), 0
        while True:
            before, asked = at, time.monotonic()
            try:
                for piece, at in self._pieces(run_id, command_id, stream, at, follow):
                    yield piece
            except MaitentoError as error:
                if not self._http.passes(error):
                    raise
                if at != before or time.monotonic() - asked > 5:
                    since, tries = time.monotonic(), 0
                if time.monotonic() - since > PATIENCE:
                    raise MaitentoError(f"outcome unknown: no server for {PATIENCE} s: {error}", "outcomeUnknown") from error
                self._http.back_off(tries)
                tries += 1
                continue
            if ended:
                return
            # The end of a stream proves nothing: the command's record does.
            ended, since, tries = self.get_command(run_id, command_id).has_ended, time.monotonic(), 0
            if not ended and time.monotonic() - asked < 0.2:
                time.sleep(0.5)

    def _pieces(self, run: str, command: str, stream: str, at: int, follow: bool) -> Iterator[Any]:
        path = path_of("capsule-runs", run, "commands", command, "output", stream=stream,
                       follow=follow or None, **{"from": at})
        connection, answer = self._http.open("GET", path, None, {}, 90)
        try:
            at = int(answer.headers.get("X-Maitento-Offset", at))
            while True:
                piece = answer.read1(65536)
                if not piece:
                    if answer.length:
                        raise http.client.IncompleteRead(b"", answer.length)
                    return
                at += len(piece)
                yield piece, at
        except (OSError, http.client.HTTPException) as error:
            raise MaitentoError(f"the server at {self._http.url}: {error}", "unreachable") from error
        finally:
            connection.close()

    # ---- waiting ----

    @staticmethod
    def _seconds(end: Optional[float]) -> int:
        return WAIT if end is None else max(0, min(WAIT, int(end - time.monotonic() + 0.999)))

    def _ask(self, path: str, seconds: int) -> Dict[str, Any]:
        asked = time.monotonic()
        found = self._http.patiently("GET", path, timeout=seconds + 60)
        # Should an answer come at once though nothing happened, do not ask in a tight loop.
        if seconds and time.monotonic() - asked < 0.05 and found.get("status") in ("Starting", "Running", "Queued"):
            time.sleep(1)
        return found
