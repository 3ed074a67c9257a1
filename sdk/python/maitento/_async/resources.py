# SPDX-License-Identifier: Apache-2.0
"""Resources that were deployed, and what starts of them."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from .._errors import MaitentoError
from .._records import (
    App,
    AppRun,
    Capsule,
    CapsuleRun,
    Duration,
    InteractionRun,
    Resource,
    ResourceItem,
    RunPlan,
    duration,
)
from .._wire import does, given, parts_of_start
from . import net
from .appruns import AppRuns, OnConsole
from .commands import CapsuleRuns
from .core import Core, new_key
from .interactionruns import InteractionRuns, OnText


class Agents:
    """Agents: a model and what it is told about itself."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @does("listAgents")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("agents", namespace, ResourceItem)

    @does("getAgent")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Resource:
        """One, in its newest version or the one that is named."""
        return Resource(await self._core.call("GET", ("agents", name), namespace, version=version))


class JsonSchemas:
    """JSON schemas, which answers of models have to fit."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @does("listJson")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("json", namespace, ResourceItem)

    @does("getJson")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Resource:
        """One, in its newest version or the one that is named."""
        return Resource(await self._core.call("GET", ("json", name), namespace, version=version))


class Prompts:
    """Prompts, with places for inputs."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @does("listPrompts")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("prompts", namespace, ResourceItem)

    @does("getPrompt")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Resource:
        """One, in its newest version or the one that is named."""
        return Resource(await self._core.call("GET", ("prompts", name), namespace, version=version))


class Capsules:
    """Capsules: what machines are made from."""

    def __init__(self, core: Core, runs: CapsuleRuns) -> None:
        self._core = core
        self._runs = runs

    @does("listCapsules")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("capsules", namespace, ResourceItem)

    @does("getCapsule")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Capsule:
        """One, in its newest version or the one that is named."""
        return Capsule(await self._core.call("GET", ("capsules", name), namespace, version=version))

    @does("startRun")
    async def start(
        self,
        name: str,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        environment: Optional[Mapping[str, str]] = None,
        max_duration: Optional[Duration] = None,
        startup: Optional[Sequence[Mapping[str, Any]]] = None,
        vfs: Optional[Sequence[Mapping[str, Any]]] = None,
        secrets: Optional[Sequence[Mapping[str, Any]]] = None,
        labels: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
        wait_for_capacity: bool = False,
    ) -> CapsuleRun:
        """Starts a run and returns at once; commands may be sent to it from then on.

        environment wins over the capsule's own. The lists startup ({"command", "arguments", "run_as_user",
        "max_duration", "wait"}), vfs ({"vfs", "mount_name"}) and secrets ({"secret", "mount_name"}) are added to
        its own. Where the server is full: MaitentoError "capacityExceeded" with retry_after, or with
        wait_for_capacity it waits.
        """
        body = _start_body(version, environment, max_duration, startup, vfs, secrets, labels)
        while True:
            key = new_key(idempotency_key)
            try:
                return CapsuleRun(await self._core.call("POST", ("capsules", name, "runs"), namespace, body, key))
            except MaitentoError as error:
                if error.code != "capacityExceeded" or not wait_for_capacity:
                    raise
                pause = error.retry_after or 2
            await net.sleep(pause)

    async def run(
        self,
        name: str,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        environment: Optional[Mapping[str, str]] = None,
        max_duration: Optional[Duration] = None,
        startup: Optional[Sequence[Mapping[str, Any]]] = None,
        vfs: Optional[Sequence[Mapping[str, Any]]] = None,
        secrets: Optional[Sequence[Mapping[str, Any]]] = None,
        labels: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
        wait_for_capacity: bool = False,
    ) -> CapsuleRun:
        """Starts a run, waits for its end and returns it whatever its status. Options as of start().

        Where the wait is cancelled or broken off the run goes on.
        """
        started = await self.start(
            name,
            namespace,
            version=version,
            environment=environment,
            max_duration=max_duration,
            startup=startup,
            vfs=vfs,
            secrets=secrets,
            labels=labels,
            idempotency_key=idempotency_key,
            wait_for_capacity=wait_for_capacity,
        )
        return await self._runs.wait(started)

    async def plan(
        self,
        name: str,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        environment: Optional[Mapping[str, str]] = None,
        max_duration: Optional[Duration] = None,
        startup: Optional[Sequence[Mapping[str, Any]]] = None,
        vfs: Optional[Sequence[Mapping[str, Any]]] = None,
        secrets: Optional[Sequence[Mapping[str, Any]]] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> RunPlan:
        """What a start with these options would do. Nothing is started."""
        body = _start_body(version, environment, max_duration, startup, vfs, secrets, labels)
        parts = ("capsules", name, "runs")
        return RunPlan(await self._core.call("POST", parts, namespace, body, dryRun=True))


def _start_body(
    version: Optional[int],
    environment: Optional[Mapping[str, str]],
    max_duration: Optional[Duration],
    startup: Optional[Sequence[Mapping[str, Any]]],
    vfs: Optional[Sequence[Mapping[str, Any]]],
    secrets: Optional[Sequence[Mapping[str, Any]]],
    labels: Optional[Mapping[str, str]],
) -> Optional[Dict[str, Any]]:
    body = given(
        version=version,
        environment=environment and dict(environment),
        max_duration=duration(max_duration),
        startup=parts_of_start(startup),
        vfs=parts_of_start(vfs),
        secrets=parts_of_start(secrets),
        labels=labels and dict(labels),
    )
    return body or None


class Apps:
    """Apps: programs that the server runs."""

    def __init__(self, core: Core, runs: AppRuns) -> None:
        self._core = core
        self._runs = runs

    @does("listApps")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("apps", namespace, ResourceItem)

    @does("getApp")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> App:
        """One, and what it takes, in its newest version or the one that is named."""
        return App(await self._core.call("GET", ("apps", name), namespace, version=version))

    @does("startAppRun")
    async def start(
        self,
        name: str,
        inputs: Optional[Mapping[str, Any]] = None,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> AppRun:
        """Starts a run and returns at once.

        inputs: by the names of the parameters of `main`, without regard to case. A text is converted to the type
        of its parameter. Wrong ones are MaitentoError "badField" with field "inputs.NAME".
        """
        body = given(inputs=inputs and dict(inputs), version=version)
        key = new_key(idempotency_key)
        return AppRun(await self._core.call("POST", ("apps", name, "runs"), namespace, body, key))

    async def run(
        self,
        name: str,
        inputs: Optional[Mapping[str, Any]] = None,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        idempotency_key: Optional[str] = None,
        on_console: Optional[OnConsole] = None,
    ) -> AppRun:
        """Starts a run, waits for its end and returns it whatever its status, with its console_outputs.

        on_console is called with each ConsoleLine as it is printed. Where the wait is cancelled or broken off the
        run goes on. Otherwise as start().
        """
        started = await self.start(name, inputs, namespace, version=version, idempotency_key=idempotency_key)
        if on_console is not None:
            async for line in self._runs.console(started, follow=True):
                on_console(line)
        await self._runs.wait(started)
        return await self._runs.get(started, console=True)


class Interactions:
    """Interactions: a model is asked once."""

    def __init__(self, core: Core, runs: InteractionRuns) -> None:
        self._core = core
        self._runs = runs

    @does("listInteractions")
    async def list(self, namespace: Optional[str] = None) -> List[ResourceItem]:
        """All of a namespace."""
        return await self._core.listing("interactions", namespace, ResourceItem)

    @does("getInteraction")
    async def get(self, name: str, namespace: Optional[str] = None, version: Optional[int] = None) -> Resource:
        """One, in its newest version or the one that is named."""
        return Resource(await self._core.call("GET", ("interactions", name), namespace, version=version))

    @does("startInteractionRun")
    async def start(
        self,
        name: str,
        inputs: Optional[Mapping[str, Any]] = None,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> InteractionRun:
        """Asks the model and returns at once. inputs: by their names, without regard to case."""
        body = given(inputs=inputs and dict(inputs), version=version)
        key = new_key(idempotency_key)
        return InteractionRun(await self._core.call("POST", ("interactions", name, "runs"), namespace, body, key))

    async def run(
        self,
        name: str,
        inputs: Optional[Mapping[str, Any]] = None,
        namespace: Optional[str] = None,
        *,
        version: Optional[int] = None,
        idempotency_key: Optional[str] = None,
        on_text: Optional[OnText] = None,
    ) -> InteractionRun:
        """Asks the model, waits for its answer and returns the run whatever its status: output, failure_details.

        on_text is called with each InteractionText as the model speaks. Where the wait is cancelled or broken off
        the run goes on.
        """
        started = await self.start(name, inputs, namespace, version=version, idempotency_key=idempotency_key)
        if on_text is not None:
            async for text in self._runs.texts(started):
                on_text(text)
        return await self._runs.wait(started)
