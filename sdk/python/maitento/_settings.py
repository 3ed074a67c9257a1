# SPDX-License-Identifier: Apache-2.0
"""Where the address, the key and the namespace come from: the same rule as that of mt."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

from ._errors import MaitentoError

DEFAULT_URL = "unix:/run/maitento/api.sock"
SHOWN = "~/.maitento/settings.json"


class Settings(NamedTuple):
    url: str
    api_key: Optional[str]
    namespace: Optional[str]
    namespace_source: str


def _file() -> Dict[str, Any]:
    home = os.environ.get("HOME", "")
    path = Path(home) / ".maitento" / "settings.json"
    if not home.startswith("/") or not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MaitentoError(f"cannot read {SHOWN}: {error}", "badRequest") from error
    return value if isinstance(value, dict) else {}


def read(url: Optional[str], api_key: Optional[str], namespace: Optional[str]) -> Settings:
    environment = os.environ
    file = _file()
    api = file.get("api") if isinstance(file.get("api"), dict) else {}
    found_url = url or environment.get("MAITENTO_URL") or api.get("url") or DEFAULT_URL
    key = api_key or environment.get("MAITENTO_API_KEY")
    if not key and found_url == api.get("url"):  # a key goes only to the server that it was stored for
        key = api.get("key")
    for value, source in ((namespace, "the client's own"), (environment.get("MAITENTO_NAMESPACE"), "MAITENTO_NAMESPACE"),
                          (file.get("defaultNamespace"), SHOWN)):
        if value:
            return Settings(found_url, key, value, source)
    return Settings(found_url, key, None, "your default on the server")
