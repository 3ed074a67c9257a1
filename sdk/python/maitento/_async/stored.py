# SPDX-License-Identifier: Apache-2.0
"""What is kept in a namespace and not deployed: file systems and secrets."""
from __future__ import annotations

import base64
from typing import Dict, List, Optional, Union

from .._errors import MaitentoError
from .._records import Secret, Vfs
from .._wire import does, id_of
from .core import Core
from .files import VfsFiles


class FileSystems:
    """File systems, which capsules mount."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def find_by_name(self, name: str, namespace: Optional[str] = None) -> Optional[Vfs]:
        """None where there is none."""
        try:
            return await self.get(name, namespace)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    @does("getVfs")
    async def get(self, name: str, namespace: Optional[str] = None) -> Vfs:
        """One file system, with used_bytes."""
        return Vfs(await self._core.call("GET", ("vfs", name), namespace))

    @does("createVfs")
    async def create(self, name: str, namespace: Optional[str] = None) -> Vfs:
        """Makes one. "alreadyExists" where there is one of that name."""
        return Vfs(await self._core.call("POST", ("vfs",), namespace, {"name": name}))

    @does("changeVfs")
    async def set_limit(self, name: str, limit: str, namespace: Optional[str] = None) -> Vfs:
        """How much it may hold, for example "50GiB"; for administrators."""
        return Vfs(await self._core.call("PATCH", ("vfs", name), namespace, {"limit": limit}))

    @does("listVfs")
    async def list(self, namespace: Optional[str] = None) -> List[Vfs]:
        """All of a namespace."""
        return await self._core.listing("vfs", namespace, Vfs)

    @does("deleteVfs")
    async def delete(self, name: str, namespace: Optional[str] = None, force: bool = False) -> None:
        """Removes one and all that is in it. "conflict" where it is in use; force removes it all the same."""
        await self._core.call("DELETE", ("vfs", name), namespace, force=force or None)

    def open(self, name: str, namespace: Optional[str] = None) -> VfsFiles:
        """Its files. Nothing is asked of the server yet."""
        return VfsFiles(self._core, name, namespace)

    def open_by_id(self, id: Union[str, Vfs]) -> VfsFiles:
        """The files of one that is known by its id. Nothing is asked of the server yet."""
        return VfsFiles(self._core, None, None, id_of(id))


class Secrets:
    """Values that capsules mount. They are given, never read back."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @staticmethod
    def _value(value: Union[str, bytes]) -> Dict[str, str]:
        if isinstance(value, str):
            return {"value": value}
        return {"valueBase64": base64.b64encode(value).decode("ascii")}

    @does("createSecret")
    async def create(self, name: str, value: Union[str, bytes], namespace: Optional[str] = None) -> Secret:
        """A new secret of 1 to 65,536 bytes; text is kept as UTF-8. "conflict" where there is one of that name."""
        return Secret(await self._core.call("POST", ("secrets",), namespace, {"name": name, **self._value(value)}))

    @does("setSecret")
    async def set(self, name: str, value: Union[str, bytes], namespace: Optional[str] = None) -> Secret:
        """Another value. Runs that live keep the one they were started with."""
        return Secret(await self._core.call("PUT", ("secrets", name), namespace, self._value(value)))

    async def find(self, name: str, namespace: Optional[str] = None) -> Optional[Secret]:
        """None where there is none."""
        try:
            return await self.get(name, namespace)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    @does("getSecret")
    async def get(self, name: str, namespace: Optional[str] = None) -> Secret:
        """One secret, without its value."""
        return Secret(await self._core.call("GET", ("secrets", name), namespace))

    @does("listSecrets")
    async def list(self, namespace: Optional[str] = None) -> List[Secret]:
        """All of a namespace, without their values."""
        return await self._core.listing("secrets", namespace, Secret)

    @does("deleteSecret")
    async def delete(self, name: str, namespace: Optional[str] = None, force: bool = False) -> None:
        """Removes one. "conflict" where it is in use; force removes it all the same."""
        await self._core.call("DELETE", ("secrets", name), namespace, force=force or None)
