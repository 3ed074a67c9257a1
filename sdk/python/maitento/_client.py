# SPDX-License-Identifier: Apache-2.0
"""The client and what lives in a namespace."""
from __future__ import annotations

import base64
import os
import time
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _settings
from ._apps import Apps
from ._errors import MaitentoError
from ._files import VfsFiles, project_files
from ._http import Http, path_of
from ._records import (Capsule, CapsuleRun, DeployResult, Duration, Namespace, Secret, Vfs, camel, duration)
from ._runs import CapsuleRuns


class Maitento:
    """A server, signed in. What is not given comes from MAITENTO_URL, MAITENTO_API_KEY and
    MAITENTO_NAMESPACE, then ~/.maitento/settings.json, then the host's own socket."""

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, namespace: Optional[str] = None):
        self._settings = _settings.read(url, api_key, namespace)
        self._http = Http(self._settings.url, self._settings.api_key)
        self._server_default: Optional[str] = None
        self.namespaces = Namespaces(self)
        self.vfs = FileSystems(self)
        self.secrets = Secrets(self)
        self.capsules = Capsules(self)
        self.capsule_runs = CapsuleRuns(self._http)
        self.apps = Apps(self)

    def deploy(self, folder: Union[str, os.PathLike], namespace: Optional[str] = None, *,
               dry_run: bool = False, prune: bool = False) -> DeployResult:
        """Deploys the project in a folder: all of it, or nothing. Errors have diagnostics."""
        body = {"files": project_files(folder), "dryRun": dry_run, "prune": prune}
        return DeployResult(self._call("POST", ("deploy",), namespace, body))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Maitento:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- namespaces ----

    @property
    def default_namespace(self) -> Optional[str]:
        """What the client, the environment or the settings say; else None, and the server's rule holds."""
        return self._settings.namespace

    def _namespace(self, named: Optional[str]) -> str:
        if named or self._settings.namespace:
            return named or self._settings.namespace or ""
        if self._server_default is None:
            self._server_default = self._http.patiently("GET", path_of("whoami")).get("defaultNamespace")
        if self._server_default is None:
            raise MaitentoError("no namespace is named and you have no default: namespaces.create(name) makes one",
                                "badRequest")
        return self._server_default

    def _explain(self, error: MaitentoError, named: Optional[str]) -> MaitentoError:
        if error.code == "notFound" and not named:
            error.args = (f"{error} (namespace '{self._namespace(None)}' is from {self._settings.namespace_source})",)
        return error

    def _call(self, method: str, parts: Sequence[str], named: Optional[str], body: Any = None,
              headers: Optional[Dict[str, str]] = None, **query: Any) -> Any:
        path = path_of("namespaces", self._namespace(named), *parts, **query)
        try:
            if method == "GET" or headers:
                return self._http.patiently(method, path, body, headers)
            return self._http.json(method, path, body)
        except MaitentoError as error:
            raise self._explain(error, named)


class Namespaces:
    def __init__(self, client: Maitento):
        self._client = client

    def find(self, name: str) -> Optional[Namespace]:
        """None where there is none that you may see."""
        try:
            return self.get(name)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    def get(self, name: str) -> Namespace:
        return Namespace(self._client._http.patiently("GET", path_of("namespaces", name)))

    def create(self, name: str) -> Namespace:
        self._client._server_default = None  # the first one becomes the default
        return Namespace(self._client._http.json("POST", path_of("namespaces"), {"name": name}))

    def list(self) -> List[Namespace]:
        return [Namespace(item) for item in self._client._http.pages(path_of("namespaces"))]

    def delete(self, name: str) -> None:
        self._client._server_default = None
        self._client._http.json("DELETE", path_of("namespaces", name))


class FileSystems:
    def __init__(self, client: Maitento):
        self._client = client

    def find_by_name(self, name: str, namespace: Optional[str] = None) -> Optional[Vfs]:
        """None where there is none."""
        try:
            return self.get(name, namespace)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    def get(self, name: str, namespace: Optional[str] = None) -> Vfs:
        return Vfs(self._client._call("GET", ("vfs", name), namespace))

    def create(self, name: str, namespace: Optional[str] = None) -> Vfs:
        return Vfs(self._client._call("POST", ("vfs",), namespace, {"name": name}))

    def set_limit(self, name: str, limit: str, namespace: Optional[str] = None) -> Vfs:
        """How much it may hold, for example "50GiB"; an administrator's."""
        return Vfs(self._client._call("PATCH", ("vfs", name), namespace, {"limit": limit}))

    def list(self, namespace: Optional[str] = None) -> List[Vfs]:
        path = path_of("namespaces", self._client._namespace(namespace), "vfs")
        return [Vfs(item) for item in self._client._http.pages(path)]

    def delete(self, name: str, namespace: Optional[str] = None, force: bool = False) -> None:
        self._client._call("DELETE", ("vfs", name), namespace, force=force or None)

    def open(self, name: str, namespace: Optional[str] = None) -> VfsFiles:
        """Its files. Nothing is asked of the server yet."""
        return VfsFiles(self._client._http, self._client._namespace(namespace), name)


class Secrets:
    """Values that capsules mount. They are given, never read back."""

    def __init__(self, client: Maitento):
        self._client = client

    @staticmethod
    def _value(value: Union[str, bytes]) -> Dict[str, str]:
        if isinstance(value, str):
            return {"value": value}
        return {"valueBase64": base64.b64encode(value).decode("ascii")}

    def create(self, name: str, value: Union[str, bytes], namespace: Optional[str] = None) -> Secret:
        """A new secret of 1 to 65,536 bytes; text is kept as UTF-8."""
        return Secret(self._client._call("POST", ("secrets",), namespace, {"name": name, **self._value(value)}))

    def set(self, name: str, value: Union[str, bytes], namespace: Optional[str] = None) -> Secret:
        """Another value. Runs that live keep the one they were started with."""
        return Secret(self._client._call("PUT", ("secrets", name), namespace, self._value(value)))

    def find(self, name: str, namespace: Optional[str] = None) -> Optional[Secret]:
        """None where there is none."""
        try:
            return self.get(name, namespace)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    def get(self, name: str, namespace: Optional[str] = None) -> Secret:
        return Secret(self._client._call("GET", ("secrets", name), namespace))

    def list(self, namespace: Optional[str] = None) -> List[Secret]:
        path = path_of("namespaces", self._client._namespace(namespace), "secrets")
        return [Secret(item) for item in self._client._http.pages(path)]

    def delete(self, name: str, namespace: Optional[str] = None, force: bool = False) -> None:
        self._client._call("DELETE", ("secrets", name), namespace, force=force or None)


def _members(items: Optional[Sequence[Mapping[str, Any]]]) -> Optional[List[Dict[str, Any]]]:
    """Lists of a start: members in snake_case or camelCase, durations as the client takes them."""
    if items is None:
        return None
    return [{camel(k): duration(v) if camel(k) == "maxDuration" else v for k, v in item.items()} for item in items]


class Capsules:
    def __init__(self, client: Maitento):
        self._client = client

    def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Capsule:
        return Capsule(self._client._call("GET", ("capsules", name), namespace, version=version))

    def list(self, namespace: Optional[str] = None) -> List[Capsule]:
        path = path_of("namespaces", self._client._namespace(namespace), "capsules")
        return [Capsule(item) for item in self._client._http.pages(path)]

    def start(self, name: str, namespace: Optional[str] = None, *, version: Optional[int] = None,
              environment: Optional[Mapping[str, str]] = None, max_duration: Optional[Duration] = None,
              startup: Optional[Sequence[Mapping[str, Any]]] = None,
              vfs: Optional[Sequence[Mapping[str, Any]]] = None,
              secrets: Optional[Sequence[Mapping[str, Any]]] = None,
              labels: Optional[Mapping[str, str]] = None, idempotency_key: Optional[str] = None,
              wait_for_capacity: bool = False) -> CapsuleRun:
        """Starts a run and returns at once; commands may be sent to it from then on. Where the server
        is full: MaitentoError "capacityExceeded" with retry_after, or with wait_for_capacity it waits."""
        body = {"version": version, "environment": environment, "maxDuration": duration(max_duration),
                "startup": _members(startup), "vfs": _members(vfs), "secrets": _members(secrets), "labels": labels}
        body = {k: v for k, v in body.items() if v is not None}
        while True:
            key = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
            try:
                return CapsuleRun(self._client._call("POST", ("capsules", name, "runs"), namespace, body or None, key))
            except MaitentoError as error:
                if error.code != "capacityExceeded" or not wait_for_capacity:
                    raise
                time.sleep(error.retry_after or 2)

    def run(self, name: str, namespace: Optional[str] = None, **options: Any) -> CapsuleRun:
        """Starts a run, waits for its end and returns it whatever its status. Options as of start()."""
        return self._client.capsule_runs.wait(self.start(name, namespace, **options))
