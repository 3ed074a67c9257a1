# SPDX-License-Identifier: Apache-2.0
"""Apps and their runs."""
from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ._http import path_of
from ._records import AppRun

if TYPE_CHECKING:
    from ._client import Maitento

WAIT = 20  # seconds for which one request waits


class Apps:
    def __init__(self, client: Maitento):
        self._client = client

    def run(self, name: str, namespace: Optional[str] = None, *,
            inputs: Optional[Mapping[str, Any]] = None, version: Optional[int] = None) -> AppRun:
        """Starts an app, waits for its end and returns the run whatever its status, with what it printed."""
        body = {k: v for k, v in (("inputs", inputs), ("version", version)) if v is not None}
        run = AppRun(self._client._call("POST", ("apps", name, "runs"), namespace, body,
                                        {"Idempotency-Key": str(uuid.uuid4())}))
        http = self._client._http
        while run.status == "Running":
            asked = time.monotonic()
            run = AppRun(http.patiently("GET", path_of("app-runs", run.id, wait=WAIT), timeout=WAIT + 60))
            if run.status == "Running" and time.monotonic() - asked < 0.05:
                time.sleep(1)  # should answers come at once though nothing happened
        return AppRun(http.patiently("GET", path_of("app-runs", run.id, console=True)))
