"""Clients of the local endpoint: Serve's API on Ray's dashboard, and the models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from rayhelm.facts.tasks import get_task
from rayhelm.run.local.state import EndpointModel

__all__ = ["ServeApi", "ServeStatus", "request_one_token"]


@dataclass(frozen=True)
class ServeStatus:
    """Serve's own status."""

    proxies: tuple[str, ...]
    applications: Mapping[str, str]
    messages: Mapping[str, str]
    replicas: tuple[int, int]
    """Running, and target."""

    @property
    def failed(self) -> str:
        """Name of an application that cannot start; empty if there is none."""
        return next((name for name, status in self.applications.items() if status == "DEPLOY_FAILED"), "")

    @property
    def is_running(self) -> bool:
        return bool(self.applications) and all(status == "RUNNING" for status in self.applications.values())


@dataclass(frozen=True)
class ServeApi:
    """Serve's REST API. `client` has its address and token."""

    client: httpx.Client

    def is_reachable(self) -> bool:
        try:
            return self.client.get("/api/serve/applications/").is_success
        except httpx.TransportError:
            return False

    def deploy(self, config: Mapping[str, Any]) -> None:
        self.client.put("/api/serve/applications/", json=config).raise_for_status()

    def get_status(self) -> ServeStatus | None:
        """None if Ray's API has no answer now: while Serve starts and stops replicas it can answer 500."""
        try:
            answer = self.client.get("/api/serve/applications/")
        except httpx.TransportError:
            return None
        if answer.is_server_error:
            return None
        body = answer.raise_for_status().json()
        applications = body["applications"]
        deployments = [d for application in applications.values() for d in application["deployments"].values()]
        running = sum(replica["state"] == "RUNNING" for d in deployments for replica in d["replicas"])
        return ServeStatus(
            proxies=tuple(proxy["status"] for proxy in body["proxies"].values()),
            applications={name: application["status"] for name, application in applications.items()},
            messages={name: application["message"] for name, application in applications.items()},
            replicas=(running, sum(d["target_num_replicas"] for d in deployments)),
        )


def request_one_token(client: httpx.Client, model: EndpointModel) -> None:
    """Send the smallest request that makes the engine compute. Raises httpx.HTTPError."""
    request = get_task(model.task).test_request
    if request is None:
        return
    url = model.prefix + request.path.replace("{model}", model.model)
    if request.body is None:
        client.get(url).raise_for_status()
    else:
        client.post(url, json={"model": model.model, **request.body}).raise_for_status()
