"""The dashboard's answer to GET: the fields of Ray's ServeInstanceDetails that are known without running anything."""

from collections.abc import Mapping
from typing import Any

from testbed.ray_stand_in.memory import Deployed

__all__ = ["NOTHING_DEPLOYED", "details", "name_of"]

NOTHING_DEPLOYED: Mapping[str, Any] = {
    "controller_info": {},
    "proxies": {},
    "applications": {},
    "target_capacity": None,
}
"""Ray's answer while Serve does not run."""

_DEPLOYMENT = {
    "RUNNING": ("HEALTHY", "CONFIG_UPDATE_COMPLETED"),
    "UNHEALTHY": ("UNHEALTHY", "HEALTH_CHECK_FAILED"),
    "DEPLOY_FAILED": ("DEPLOY_FAILED", "REPLICA_STARTUP_FAILED"),
    "DELETING": ("UPDATING", "DELETING"),
}
"""Status and trigger of the deployments by the status of their application."""


def name_of(application: Mapping[str, Any]) -> str:
    return str(application.get("name", "default"))


def details(deployed: Deployed, statuses: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Build the answer. `statuses`: status and message of each application, by name."""
    return {
        **NOTHING_DEPLOYED,
        "proxy_location": deployed.started_with.get("proxy_location", "EveryNode"),
        "http_options": deployed.started_with.get("http_options") or {},
        "target_capacity": deployed.config.get("target_capacity"),
        "applications": {
            name_of(application): _build_application(application, deployed.time, *statuses[name_of(application)])
            for application in deployed.config["applications"]
        },
    }


def _build_application(config: Mapping[str, Any], time: float, status: str, message: str) -> dict[str, Any]:
    return {
        "name": name_of(config),
        "route_prefix": config.get("route_prefix", "/"),
        "docs_path": None,
        "status": status,
        "message": message,
        "last_deployed_time_s": time,
        "deployed_app_config": config,
        "source": "declarative",
        "external_scaler_enabled": config.get("external_scaler_enabled", False),
        "deployments": {
            deployment["name"]: _build_deployment(deployment, status, message)
            for deployment in config.get("deployments") or ()
        },
    }


def _build_deployment(config: Mapping[str, Any], application_status: str, message: str) -> dict[str, Any]:
    status, trigger = _DEPLOYMENT.get(application_status, ("UPDATING", "CONFIG_UPDATE_STARTED"))
    return {
        "name": config["name"],
        "status": status,
        "status_trigger": trigger,
        "message": message,
        "deployment_config": config,
        "target_num_replicas": _count_target(config),
        "required_resources": {},
        "replicas": [],
    }


def _count_target(config: Mapping[str, Any]) -> int:
    fixed = config.get("num_replicas")
    if isinstance(fixed, int):
        return fixed
    bounds = config.get("autoscaling_config") or {}
    return int(bounds.get("initial_replicas") or bounds.get("min_replicas", 1))
