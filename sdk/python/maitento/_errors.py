# SPDX-License-Identifier: Apache-2.0
"""What can go wrong."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from ._records import CapsuleRun, Command


class MaitentoError(Exception):
    """A call failed. The text says what and why.

    code: stable name of the kind ("notFound", "unreachable", …); status: of HTTP, None when no
    answer came; field: the member at fault; retry_after: seconds; diagnostics: of a deploy.
    """

    def __init__(self, message: str, code: str = "internal", status: Optional[int] = None,
                 problem: Optional[Dict[str, Any]] = None, retry_after: Optional[int] = None):
        super().__init__(message)
        problem = problem or {}
        self.code = code
        self.status = status
        self.field: Optional[str] = problem.get("field")
        self.help: Optional[str] = problem.get("help")
        self.diagnostics: List[Dict[str, Any]] = problem.get("diagnostics") or []
        self.retry_after = retry_after
        self.problem = problem


class CapsuleCommandAbortedError(MaitentoError):
    """The run ended before the command did; reason says why, run.failure_details say more.

    command is None where the run had ended before the command could be sent.
    """

    def __init__(self, reason: str, command: Optional[Command] = None, run: Optional[CapsuleRun] = None):
        super().__init__(f"the command was aborted: {reason}", "runEnded", 409)
        self.reason = reason
        self.command = command
        self.run = run
