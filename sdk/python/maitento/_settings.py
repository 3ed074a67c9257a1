# SPDX-License-Identifier: Apache-2.0
"""Where the address, the key and the namespace come from: the same rule as that of mt."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, cast

from ._errors import MaitentoError

DEFAULT_URL = "unix:/run/maitento/api.sock"
SHOWN = "~/.maitento/settings.json"


class Settings(NamedTuple):
    """What a client goes by, and where it is from, for people."""

    url: str
    url_source: str
    api_key: Optional[str]
    namespace: Optional[str]
    namespace_source: str


def _file() -> Dict[str, Any]:
    home = os.environ.get("HOME", "")
    path = Path(home) / ".maitento" / "settings.json"
    if not home.startswith("/") or not path.exists():
        return {}
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MaitentoError(f"cannot read {SHOWN}: {error}", "badRequest") from error
    return cast(Dict[str, Any], value) if isinstance(value, dict) else {}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) and value else None


def read(url: Optional[str], api_key: Optional[str], namespace: Optional[str]) -> Settings:
    """The first of argument, environment, settings file and default that says something, member by member."""
    environment = os.environ
    file = _file()
    api: Dict[str, Any] = file["api"] if isinstance(file.get("api"), dict) else {}
    stored = _text(api.get("url"))
    found_url, url_source = DEFAULT_URL, "the socket of this host, as no other address is set"
    for address, source in (
        (url, "the client's own"),
        (environment.get("MAITENTO_URL"), "MAITENTO_URL"),
        (stored, SHOWN),
    ):
        if address:
            found_url, url_source = address, source
            break
    key = api_key or environment.get("MAITENTO_API_KEY")
    if not key and found_url == stored:  # a key goes only to the server that it was stored for
        key = _text(api.get("key"))
    for value, source in (
        (namespace, "the client's own"),
        (environment.get("MAITENTO_NAMESPACE"), "MAITENTO_NAMESPACE"),
        (_text(file.get("defaultNamespace")), SHOWN),
    ):
        if value:
            return Settings(found_url, url_source, key, value, source)
    return Settings(found_url, url_source, key, None, "your default on the server")
