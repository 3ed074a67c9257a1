# SPDX-License-Identifier: Apache-2.0
# Made from maitento/_async/core.py by tools/make-sync: change that.
"""What all parts of a client share: its server, its namespace, its event streams."""
from __future__ import annotations

import uuid
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar

from .. import _settings
from .._errors import MaitentoError
from .._wire import SLACK, path_of
from .http import Http
from .waiting import Hub, until

R = TypeVar("R")


def new_key(given: Optional[str]) -> Dict[str, str]:
    """The header that keeps a repeat from being done twice."""
    return {"Idempotency-Key": given or str(uuid.uuid4())}


class Core:
    """One for each client."""

    def __init__(
        self, url: Optional[str], api_key: Optional[str], namespace: Optional[str], max_connections: int
    ) -> None:
        self.settings = _settings.read(url, api_key, namespace)
        self.http = Http(self.settings, max_connections)
        self.hub = Hub()
        self.streams: List[Callable[[], Any]] = []  # what ends the event streams that are open
        self._server_default: Optional[str] = None

    # ---- namespaces ----

    def forget_default(self) -> None:
        """The default namespace of the server may be another now."""
        self._server_default = None

    def namespace(self, named: Optional[str]) -> str:
        """The namespace that is meant."""
        if named or self.settings.namespace:
            return named or self.settings.namespace or ""
        if self._server_default is None:
            self._server_default = (self.http.patiently("GET", path_of("whoami"))).get("defaultNamespace")
        if self._server_default is None:
            raise MaitentoError(
                "no namespace is named and you have no default: namespaces.create(name) makes one", "badRequest"
            )
        return self._server_default

    def _explain(self, error: MaitentoError, named: Optional[str]) -> MaitentoError:
        if error.code == "notFound" and not named:
            used = self.namespace(None)
            error.args = (f"{error} (namespace '{used}' is from {self.settings.namespace_source})",)
        return error

    def call(
        self,
        method: str,
        parts: Sequence[str],
        named: Optional[str],
        body: Any = None,
        headers: Optional[Dict[str, str]] = None,
        **query: Any,
    ) -> Any:
        """A call to something in a namespace. All but a POST without a key may be repeated."""
        path = path_of("namespaces", self.namespace(named), *parts, **query)
        try:
            if headers or method not in ("POST", "PATCH"):
                return self.http.patiently(method, path, body, headers)
            return self.http.once(method, path, body)
        except MaitentoError as error:
            raise self._explain(error, named)

    def listing(self, part: str, named: Optional[str], make: Callable[[Dict[str, Any]], R]) -> List[R]:
        """All of a kind in a namespace."""
        return self.http.listing(path_of("namespaces", self.namespace(named), part), make)

    # ---- waiting ----

    def until(
        self,
        kind: str,
        parts: Sequence[str],
        make: Callable[[Dict[str, Any]], R],
        done: Callable[[R], bool],
        timeout: Optional[float] = None,
        since: Optional[int] = None,
        **query: Any,
    ) -> R:
        """A record when it is done (the last of `parts` is its id), or as it is after timeout seconds."""

        def ask(seconds: int) -> R:
            path = path_of(*parts, wait=seconds or None, **query)
            return make(self.http.patiently("GET", path, timeout=seconds + SLACK))

        return until(self.hub, kind, parts[-1], ask, done, timeout, since, lambda: self.http.busy)
