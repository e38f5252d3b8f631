"""Talks to the local endpoint: Serve's API on Ray's dashboard, and the models themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from rayhelm.catalog.tasks import get_task
from rayhelm.local.state import Served

__all__ = ["ServeApi", "Status", "one_token"]


@dataclass(frozen=True)
class Status:
    """What Serve says about itself."""

    proxies: tuple[str, ...]
    applications: Mapping[str, str]
    messages: Mapping[str, str]
    replicas: tuple[int, int]
    """Running, and wanted."""

    @property
    def failed(self) -> str:
        """Name of an application that will not come up by itself, or nothing."""
        return next((name for name, status in self.applications.items() if status == "DEPLOY_FAILED"), "")

    @property
    def running(self) -> bool:
        return bool(self.applications) and all(status == "RUNNING" for status in self.applications.values())


@dataclass(frozen=True)
class ServeApi:
    """Serve's API. `client` carries address and token."""

    client: httpx.Client

    def answers(self) -> bool:
        try:
            return self.client.get("/api/serve/applications/").is_success
        except httpx.TransportError:
            return False

    def deploy(self, config: Mapping[str, Any]) -> None:
        self.client.put("/api/serve/applications/", json=config).raise_for_status()

    def status(self) -> Status:
        answer = self.client.get("/api/serve/applications/").raise_for_status().json()
        applications = answer["applications"]
        deployments = [d for application in applications.values() for d in application["deployments"].values()]
        running = sum(replica["state"] == "RUNNING" for d in deployments for replica in d["replicas"])
        return Status(
            proxies=tuple(proxy["status"] for proxy in answer["proxies"].values()),
            applications={name: application["status"] for name, application in applications.items()},
            messages={name: application["message"] for name, application in applications.items()},
            replicas=(running, sum(d["target_num_replicas"] for d in deployments)),
        )


def one_token(client: httpx.Client, served: Served) -> None:
    """The smallest request that makes the engine compute. Raises httpx.HTTPError."""
    request = get_task(served.task).test_request
    if request is None:
        return
    url = served.prefix + request.path.replace("{model}", served.model)
    if request.body is None:
        client.get(url).raise_for_status()
    else:
        client.post(url, json={"model": served.model, **request.body}).raise_for_status()
