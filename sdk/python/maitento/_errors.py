# SPDX-License-Identifier: Apache-2.0
"""What can go wrong."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional

from ._records import CapsuleRun, Command, Diagnostic, Problem


class MaitentoError(Exception):
    """A call failed. The text says what and why.

    code: stable name of the kind: one of the server's (docs/reference/errors.md), or of the client's own:
      "unreachable" (no server answers there), "notMaitento" (something else does), "outcomeUnknown" (no
      answer came to something that may have been done), "badRequest" (refused before it was sent).
    status: of HTTP; None where no answer came.
    field: the member or parameter at fault. help: what one may do.
    retry_after: seconds, where the server named a time.
    diagnostics: the faults that a deploy found: file, line, column, message of each.
    problem: the whole answer; it has nothing in it where none came.
    """

    def __init__(
        self,
        message: str,
        code: str = "internal",
        status: Optional[int] = None,
        problem: Optional[Mapping[str, Any]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.problem = Problem(problem or {})
        self.code = code
        self.status = status
        self.field: Optional[str] = self.problem.field
        self.help: Optional[str] = self.problem.help
        self.diagnostics: List[Diagnostic] = self.problem.diagnostics or []
        self.retry_after = retry_after


class CapsuleCommandAbortedError(MaitentoError):
    """The run ended before the command did.

    reason: why ("stopped by ada", "out of time: maxDuration 00:10:00"); run.failure_details may say more.
    command: its record; None where the run had ended before the command could be sent.
    run: the run as it ended.
    """

    def __init__(self, reason: str, command: Optional[Command] = None, run: Optional[CapsuleRun] = None) -> None:
        super().__init__(f"the command was aborted: {reason}", "runEnded", 409)
        self.reason = reason
        self.command = command
        self.run = run
