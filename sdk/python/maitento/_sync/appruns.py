# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/appruns.py by tools/make-sync: change that.
"""Runs of apps."""
from __future__ import annotations

from typing import Iterator, Callable, List, Optional, Union

from .._records import AppRun, AppRunItem, ConsoleLine, LogLine
from .._wire import ANSWER, SLACK, WAIT, does, given, id_of, path_of
from .core import Core, new_key

Run = Union[str, AppRunItem]
OnConsole = Callable[[ConsoleLine], object]


class AppRuns:
    """Apps that run or ran, named by their id or by a record that has it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._http = core.http

    @does("listAppRuns")
    def list(
        self,
        namespace: Optional[str] = None,
        app: Optional[str] = None,
        status: Optional[str] = None,
        limit: Optional[int] = 100,
        *,
        id_ending: Optional[str] = None,
        mine: bool = False,
        parent: Union[str, AppRunItem, None] = None,
    ) -> List[AppRunItem]:
        """The newest first, without inputs and outputs; limit None: all. parent: those that this run started."""
        query = given(
            namespace=namespace,
            app=app,
            status=status,
            id_ending=id_ending,
            mine=mine or None,
            parent=None if parent is None else id_of(parent),
        )
        return self._http.listing(path_of("app-runs", **query), AppRunItem, limit)

    @does("getAppRun")
    def get(self, run: Run, console: bool = False) -> AppRun:
        """A run as it is; with console what it printed is in console_outputs, as far as it is kept."""
        return AppRun(self._http.patiently("GET", path_of("app-runs", id_of(run), console=console or None)))

    def wait(self, run: Run, timeout: Optional[float] = None) -> AppRun:
        """The run when it has ended, or as it is after timeout seconds."""

        def done(found: AppRun) -> bool:
            return found.has_ended

        return self._core.until("appRun", ("app-runs", id_of(run)), AppRun, done, timeout)

    @does("getAppConsole")
    def console(self, run: Run, after: int = 0, follow: bool = False) -> Iterator[ConsoleLine]:
        """The lines with a higher number than `after`; with follow they come as they are printed, until the end."""
        while True:
            seconds = WAIT if follow else 0
            path = path_of("app-runs", id_of(run), "console", after=after, wait=seconds or None)
            page = self._http.patiently("GET", path, timeout=seconds + SLACK if seconds else ANSWER)
            for line in page["items"]:
                yield ConsoleLine(line)
            after = page["next"]
            if page["ended"] or not (follow or page["items"]):
                return

    @does("getAppLog")
    def log(self, run: Run, after: int = 0, follow: bool = False) -> Iterator[LogLine]:
        """As console(), what it wrote to its log."""
        while True:
            seconds = WAIT if follow else 0
            path = path_of("app-runs", id_of(run), "log", after=after, wait=seconds or None)
            page = self._http.patiently("GET", path, timeout=seconds + SLACK if seconds else ANSWER)
            for line in page["items"]:
                yield LogLine(line)
            after = page["next"]
            if page["ended"] or not (follow or page["items"]):
                return

    @does("cancelAppRun")
    def cancel(self, run: Run) -> AppRun:
        """Ends a run whatever it does, and what it started; once it has ended this changes nothing."""
        return AppRun(self._http.patiently("POST", path_of("app-runs", id_of(run), "cancel")))

    @does("rerunApp")
    def rerun(self, run: Run, *, idempotency_key: Optional[str] = None) -> AppRun:
        """Starts the same version once more with the same inputs."""
        path = path_of("app-runs", id_of(run), "rerun")
        return AppRun(self._http.patiently("POST", path, None, new_key(idempotency_key)))
