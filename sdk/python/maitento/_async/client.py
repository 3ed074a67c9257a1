# SPDX-License-Identifier: Apache-2.0
"""The client."""
from __future__ import annotations

from typing import Any, Optional

from .. import _project
from .._records import DeployResult, Whoami
from .._wire import does, path_of
from . import net
from .access import Images, Keys, Namespaces, Providers, Server, Users
from .appruns import AppRuns
from .commands import CapsuleRuns
from .core import Core
from .events import Events
from .interactionruns import InteractionRuns
from .resources import Agents, Apps, Capsules, Interactions, JsonSchemas, Prompts
from .shells import Shells
from .stored import FileSystems, Secrets


class AsyncMaitento:
    """A server, signed in; for many tasks at once.

    url, api_key, namespace: what is not given comes from MAITENTO_URL, MAITENTO_API_KEY and MAITENTO_NAMESPACE,
    then ~/.maitento/settings.json, then the host's own socket and the default namespace that the server keeps for
    you. max_connections: requests at once; more wait for their turn. (Streams that are read, of events, output and
    files, are not counted.) Nothing is asked before the first call, which fails with MaitentoError "unreachable"
    or "notMaitento" where it should.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        namespace: Optional[str] = None,
        *,
        max_connections: int = 64,
    ) -> None:
        if max_connections < 1:
            raise ValueError("max_connections is 1 at least")
        self._core = core = Core(url, api_key, namespace, max_connections)
        self.server = Server(core)
        self.images = Images(core)
        self.namespaces = Namespaces(core)
        self.keys = Keys(core)
        self.users = Users(core)
        self.vfs = FileSystems(core)
        self.secrets = Secrets(core)
        self.providers = Providers(core)
        self.capsule_runs = CapsuleRuns(core)
        self.app_runs = AppRuns(core)
        self.interaction_runs = InteractionRuns(core)
        self.capsules = Capsules(core, self.capsule_runs)
        self.agents = Agents(core)
        self.apps = Apps(core, self.app_runs)
        self.interactions = Interactions(core, self.interaction_runs)
        self.json_schemas = JsonSchemas(core)
        self.prompts = Prompts(core)
        self.shells = Shells(core)
        self.events = Events(core)

    @property
    def default_namespace(self) -> Optional[str]:
        """What the client, the environment or the settings say; else None, and the server's rule holds."""
        return self._core.settings.namespace

    @does("getWhoami")
    async def whoami(self) -> Whoami:
        """Who is asking."""
        return Whoami(await self._core.http.patiently("GET", path_of("whoami")))

    @does("deploy")
    async def deploy(
        self,
        folder: _project.Folder,
        namespace: Optional[str] = None,
        *,
        dry_run: bool = False,
        prune: bool = False,
    ) -> DeployResult:
        """Deploys the project in a folder: all of it, or nothing. Faults are MaitentoError "deployFailed".

        dry_run: only says what would be done. prune: removes what is deployed and not in the folder.
        """
        files = await net.blocking(_project.project_files, folder)
        body = {"files": files, "dryRun": dry_run, "prune": prune}
        return DeployResult(await self._core.call("POST", ("deploy",), namespace, body))

    async def close(self) -> None:
        """Ends event streams and connections. Waits and iterators that go on end by themselves."""
        for stop in list(self._core.streams):
            stop()
        self._core.http.close()

    async def __aenter__(self) -> AsyncMaitento:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
