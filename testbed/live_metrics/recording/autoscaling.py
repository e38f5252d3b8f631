"""Autoscaling of a running endpoint. A CPU stand-in has one replica of each model, whatever the plan says."""

import time
from typing import Any

import httpx

from rayhelm.errors import RayhelmError
from testbed.live_metrics.endpoint import Endpoint

__all__ = ["allow_replicas"]

PATH = "/api/serve/applications/"
TIMEOUT = 600.0
"""Seconds until the replicas run with the new settings."""
DOWNSCALE_DELAY = 300
"""Seconds of lower load before a replica is removed; the plan has 600."""


def allow_replicas(endpoint: Endpoint, application: str, most: int) -> None:
    """Let Serve scale the model of an application from 1 to `most` replicas, and wait until it runs again.

    Raises RayhelmError if it does not.
    """
    headers = {"Authorization": f"Bearer {endpoint.token}"}
    with httpx.Client(base_url=endpoint.dashboard, headers=headers, timeout=60, trust_env=False) as client:
        body = client.get(PATH).raise_for_status().json()
        configs = [each["deployed_app_config"] for each in body["applications"].values()]
        chosen = next(each for each in configs if each["name"] == application)
        for model in chosen["args"]["llm_configs"]:
            settings = model["deployment_config"]["autoscaling_config"]
            settings |= {"min_replicas": 1, "max_replicas": most, "downscale_delay_s": DOWNSCALE_DELAY}
            settings.pop("initial_replicas", None)
        options = {name: body[name] for name in ("proxy_location", "http_options") if body.get(name)}
        client.put(PATH, json={**options, "applications": configs}).raise_for_status()
        _wait_until_running(client, application, most)


def _wait_until_running(client: httpx.Client, application: str, most: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        found = client.get(PATH).raise_for_status().json()["applications"][application]
        if found["status"] == "RUNNING" and _has_bound(found, most):
            return
        time.sleep(1)
    raise RayhelmError(f"application `{application}` does not run after {TIMEOUT:.0f} s: {found['message']}")


def _has_bound(application: dict[str, Any], most: int) -> bool:
    """Return whether a deployment has the new bound: Serve still reports RUNNING right after a change."""
    configs = (each["deployment_config"] for each in application["deployments"].values())
    return any((each.get("autoscaling_config") or {}).get("max_replicas") == most for each in configs)
