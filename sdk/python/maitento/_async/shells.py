# SPDX-License-Identifier: Apache-2.0
"""Terminals in runs."""
from __future__ import annotations

from typing import AsyncIterator, List, Optional, Union

from .._records import CapsuleRun, Shell
from .._wire import does, given, id_of, path_of
from .core import Core
from .source import Content, Source

Run = Union[str, CapsuleRun]
OneShell = Union[str, Shell]
QUIET = 24 * 3600.0  # seconds for which a terminal may say nothing


class Shells:
    """Login shells on terminals. Nothing of them is kept; a restart of the server ends them."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("startShell")
    async def start(
        self,
        run: Run,
        *,
        user: Optional[str] = None,
        term: Optional[str] = None,
        columns: Optional[int] = None,
        rows: Optional[int] = None,
    ) -> Shell:
        """A shell of a user of the run (maitento), on a terminal of the kind `term` (xterm), 80 by 24.

        Read its output within 15 seconds: a shell without a reader for so long is hung up.
        """
        body = given(user=user, term=term, columns=columns, rows=rows)
        return Shell(await self._http.once("POST", path_of("capsule-runs", id_of(run), "shells"), body))

    @does("listShells")
    async def list(self, run: Run) -> List[Shell]:
        """Those that run, and for five minutes those that have ended; the newest first."""
        path = path_of("capsule-runs", id_of(run), "shells")
        return [Shell(item) for item in (await self._http.patiently("GET", path))["items"]]

    @does("getShell")
    async def get(self, run: Run, shell: OneShell) -> Shell:
        """A shell as it is."""
        path = path_of("capsule-runs", id_of(run), "shells", id_of(shell))
        return Shell(await self._http.patiently("GET", path))

    @does("closeShell")
    async def close(self, run: Run, shell: OneShell) -> None:
        """Hangs it up."""
        await self._http.patiently("DELETE", path_of("capsule-runs", id_of(run), "shells", id_of(shell)))

    @does("getShellOutput")
    async def output(self, run: Run, shell: OneShell) -> AsyncIterator[bytes]:
        """What the terminal shows from now on, until the shell ends. There is one reader: another takes its place.

        A break is MaitentoError "unreachable": what was on its way is lost.
        """
        path = path_of("capsule-runs", id_of(run), "shells", id_of(shell), "output")
        answer = await self._http.stream("GET", path, timeout=QUIET, slot=False)
        try:
            while True:
                piece = await answer.read()
                if not piece:
                    return
                yield piece
        finally:
            answer.close()

    @does("typeIntoShell")
    async def type(self, run: Run, shell: OneShell, data: Union[str, Content]) -> None:
        """Types a text, bytes, or pieces of bytes as they come (without pauses of 30 seconds). Ctrl-C is "\\x03"."""
        path = path_of("capsule-runs", id_of(run), "shells", id_of(shell), "input")
        content = data.encode("utf-8") if isinstance(data, str) else data
        answer = await self._http.stream(
            "POST", path, Source(content, "application/octet-stream"), repeatable=False, slot=False
        )
        await answer.all()

    @does("resizeShell")
    async def resize(self, run: Run, shell: OneShell, columns: int, rows: int) -> None:
        """Gives its terminal another size, of 1 to 4,096 columns and rows."""
        path = path_of("capsule-runs", id_of(run), "shells", id_of(shell), "size")
        await self._http.patiently("PUT", path, {"columns": columns, "rows": rows})
