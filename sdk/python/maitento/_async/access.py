# SPDX-License-Identifier: Apache-2.0
"""The server itself, and who may do what: images, namespaces, keys, users, providers of models."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from .._errors import MaitentoError
from .._records import (
    Doctor,
    Health,
    Image,
    Key,
    Member,
    Namespace,
    NewKey,
    NewUser,
    Provider,
    ProviderTest,
    PruneResult,
    ServerInfo,
    User,
    Whoami,
)
from .._wire import does, given, path_of
from .core import Core


class Server:
    """What answers."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("getServer")
    async def info(self) -> ServerInfo:
        """The product, its version and that of its API."""
        return ServerInfo(await self._http.patiently("GET", path_of("server")))

    @does("getHealth")
    async def health(self) -> Health:
        """Whether it answers."""
        return Health(await self._http.patiently("GET", path_of("health")))

    @does("getDescription")
    async def description(self) -> Dict[str, Any]:
        """The description of its API, OpenAPI 3.1."""
        found: Dict[str, Any] = await self._http.patiently("GET", "/openapi.json")
        return found

    @does("getDoctor")
    async def doctor(self) -> Doctor:
        """What it found about itself and its host; for administrators."""
        return Doctor(await self._http.patiently("GET", path_of("doctor")))


class Images:
    """What capsules run on."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("listImages")
    async def list(self) -> List[Image]:
        """The images of the server."""
        return await self._http.listing(path_of("images"), Image)

    @does("pruneImages")
    async def prune(self) -> PruneResult:
        """Removes the package layers that no run uses; for administrators."""
        return PruneResult(await self._http.once("POST", path_of("images", "prune")))


class Namespaces:
    """What everything lives in, and who shares it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._http = core.http

    async def find(self, name: str) -> Optional[Namespace]:
        """None where there is none that you may see."""
        try:
            return await self.get(name)
        except MaitentoError as error:
            if error.code == "notFound":
                return None
            raise

    @does("getNamespace")
    async def get(self, name: str) -> Namespace:
        """One namespace."""
        return Namespace(await self._http.patiently("GET", path_of("namespaces", name)))

    @does("createNamespace")
    async def create(self, name: str) -> Namespace:
        """Makes one; the first that you make becomes your default on the server. "alreadyExists", "conflict"."""
        self._core.forget_default()
        return Namespace(await self._http.once("POST", path_of("namespaces"), {"name": name}))

    @does("listNamespaces")
    async def list(self) -> List[Namespace]:
        """All that you may see, by name."""
        return await self._http.listing(path_of("namespaces"), Namespace)

    @does("deleteNamespace")
    async def delete(self, name: str) -> None:
        """Removes an empty one; "conflict" lists what is in it."""
        self._core.forget_default()
        await self._http.patiently("DELETE", path_of("namespaces", name))

    @does("setDefaultNamespace")
    async def set_default(self, name: str) -> Whoami:
        """The namespace that the server takes where none is named."""
        self._core.forget_default()
        return Whoami(await self._http.patiently("PUT", path_of("default-namespace"), {"name": name}))

    @does("listMembers")
    async def list_members(self, name: str) -> List[Member]:
        """Users who share it with its owner."""
        return await self._http.listing(path_of("namespaces", name, "members"), Member)

    @does("addMember")
    async def add_member(self, name: str, user: str) -> None:
        """Lets a user share it."""
        await self._http.patiently("PUT", path_of("namespaces", name, "members", user))

    @does("removeMember")
    async def remove_member(self, name: str, user: str) -> None:
        """Does not let a user share it any more; members may remove themselves."""
        await self._http.patiently("DELETE", path_of("namespaces", name, "members", user))


class Keys:
    """API keys."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("listKeys")
    async def list(self, user: Optional[str] = None) -> List[Key]:
        """Yours, or for administrators a user's; without their secret part."""
        return await self._http.listing(path_of("keys", user=user), Key)

    @does("createKey")
    async def create(self, name: str, *, expires: Optional[str] = None, user: Optional[str] = None) -> NewKey:
        """Makes one; `key` of the answer is shown this once. expires: a time, "2027-01-01T00:00:00Z"."""
        return NewKey(await self._http.once("POST", path_of("keys"), given(name=name, expires=expires, user=user)))

    @does("deleteKey")
    async def delete(self, id: str) -> None:
        """Revokes one."""
        await self._http.patiently("DELETE", path_of("keys", id))


class Users:
    """Users; for administrators."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("listUsers")
    async def list(self) -> List[User]:
        """All users."""
        return await self._http.listing(path_of("users"), User)

    @does("createUser")
    async def create(self, name: str, *, role: Optional[str] = None, expires: Optional[str] = None) -> NewUser:
        """Makes one ("user" or "admin"), with a first key, which `key` of the answer shows this once."""
        return NewUser(await self._http.once("POST", path_of("users"), given(name=name, role=role, expires=expires)))

    @does("deleteUser")
    async def delete(self, name: str) -> None:
        """Removes one; "conflict" where namespaces are theirs."""
        await self._http.patiently("DELETE", path_of("users", name))


class _Kept:
    """What stays as it is."""


KEPT: Any = _Kept()


class Providers:
    """Who answers for models."""

    def __init__(self, core: Core) -> None:
        self._http = core.http

    @does("listProviders")
    async def list(self) -> List[Provider]:
        """Those that the server knows, by name."""
        return await self._http.listing(path_of("providers"), Provider)

    @does("getProvider")
    async def get(self, name: str) -> Provider:
        """One provider."""
        return Provider(await self._http.patiently("GET", path_of("providers", name)))

    @does("setProvider")
    async def set(
        self,
        name: str,
        *,
        key: Optional[str] = KEPT,
        base_url: Optional[str] = KEPT,
        schema_mode: Optional[str] = KEPT,
        concurrency: Optional[int] = KEPT,
        price_per_million_tokens_in: Optional[str] = KEPT,
        price_per_million_tokens_out: Optional[str] = KEPT,
    ) -> Provider:
        """Says how one is asked; for administrators. What is not given stays, None takes it away.

        key: goes to base_url alone, and never comes back. schema_mode: "schema", "tool", "json", "none".
        concurrency: 1 to 512 requests at once. Prices: decimals as texts.
        """
        members = {
            "key": key,
            "baseUrl": base_url,
            "schemaMode": schema_mode,
            "concurrency": concurrency,
            "pricePerMillionTokensIn": price_per_million_tokens_in,
            "pricePerMillionTokensOut": price_per_million_tokens_out,
        }
        body = {member: value for member, value in members.items() if value is not KEPT}
        return Provider(await self._http.patiently("PUT", path_of("providers", name), body))

    @does("deleteProvider")
    async def delete(self, name: str) -> None:
        """Forgets all that was set of one, its key, too; for administrators."""
        await self._http.patiently("DELETE", path_of("providers", name))

    @does("testProvider")
    async def test(self, name: str, model: str) -> ProviderTest:
        """Asks a model for a word; for administrators. Whether it could is in `outcome`."""
        return ProviderTest(await self._http.once("POST", path_of("providers", name, "test"), {"model": model}))
