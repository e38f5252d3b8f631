"""The way of requests inside Ray (`serve.dataPath`), as the chart selects it: by variables of every Ray process."""

from collections.abc import Iterable, Mapping
from typing import Any

from rayhelm import processes
from rayhelm.facts.tasks import DataPath
from rayhelm.run.local.state import EndpointState

__all__ = ["build_data_path_environment", "merge_data_paths", "name_data_path", "read_data_path"]

_HAPROXY = "RAY_SERVE_ENABLE_HA_PROXY"
_DIRECT = "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING"
_VARIABLES = (
    _HAPROXY,
    _DIRECT,
    "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY",
    "RAY_SERVE_HAPROXY_INGRESS_REQUEST_ROUTER_TIMEOUT_S",
)


def read_data_path(service: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that a rendered RayService sets; none for Ray's Python proxies."""
    head = service["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    return {item["name"]: item["value"] for item in head["env"] if item["name"] in _VARIABLES}


def merge_data_paths(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what all services select, because one Ray serves them. Each variable is a step away from Python."""
    return dict(set.intersection(*(set(each.items()) for each in found)))


def name_data_path(variables: Mapping[str, str]) -> DataPath:
    """Return the data path that the variables select."""
    if _DIRECT in variables:
        return "Direct"
    return "HAProxy" if _HAPROXY in variables else "Python"


def build_data_path_environment(variables: Mapping[str, str], state: EndpointState, taken: set[int]) -> dict[str, str]:
    """Return the variables, and files and ports of Ray's HAProxy that no other Ray of this computer has."""
    if _HAPROXY not in variables:
        return {}
    # The path of a UNIX socket has at most 107 bytes; Ray adds a folder with 56.
    folder = state.session / "hap"
    places = {
        "CONFIG_FILE_LOC": folder / "haproxy.cfg",
        "SOCKET_PATH": folder / "admin",
        "METRICS_SOCKET_PATH": folder / "metrics",
        "SERVER_STATE_BASE": folder,
        "SERVER_STATE_FILE": folder / "state",
        "METRICS_PORT": processes.find_free_port(taken),
        "STATS_PORT": processes.find_free_port(taken),
    }
    return {**variables, **{f"RAY_SERVE_HAPROXY_{name}": str(place) for name, place in places.items()}}
