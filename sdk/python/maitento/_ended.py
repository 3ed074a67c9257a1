# SPDX-License-Identifier: Apache-2.0
"""What ended lately, by ids, with a bound."""
from __future__ import annotations

from typing import Dict


class LatelyEnded:
    """The last so many ids that were added."""

    def __init__(self, room: int = 4096) -> None:
        self._room = room
        self._ids: Dict[str, None] = {}  # in the order in which they came

    def add(self, found: str) -> None:
        self._ids.pop(found, None)
        self._ids[found] = None
        if len(self._ids) > self._room:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, wanted: str) -> bool:
        return wanted in self._ids
