"""`up` serves with the data path of the charts, in files and on ports of its own."""

from pathlib import Path
from typing import Any

import pytest

from charts.kit import ray_service
from rayhelm.run.local.data_path import build_data_path_environment, merge_data_paths, read_data_path
from rayhelm.run.local.state import EndpointState

HAPROXY = {"RAY_SERVE_ENABLE_HA_PROXY": "1"}
DIRECT = {
    **HAPROXY,
    "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1",
    "RAY_SERVE_HAPROXY_INGRESS_REQUEST_ROUTER_TIMEOUT_S": "1200",
}


@pytest.mark.parametrize(("path", "expected"), [("Python", {}), ("HAProxy", HAPROXY), ("Direct", DIRECT)])
def test_data_path_is_read_from_the_rendered_service(path: str, expected: dict[str, str]) -> None:
    assert read_data_path(ray_service({"serve": {"dataPath": path}})) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [([DIRECT], DIRECT), ([DIRECT, DIRECT], DIRECT), ([DIRECT, HAPROXY], HAPROXY), ([DIRECT, {}], {})],
    ids=["one", "alike", "weaker", "python"],
)
def test_services_of_one_ray_share_the_weakest_path(found: Any, expected: dict[str, str]) -> None:
    assert merge_data_paths(found) == expected


def test_haproxy_of_ray_has_files_and_ports_of_its_own(tmp_path: Path) -> None:
    state, taken = EndpointState(tmp_path), set[int]()
    found = build_data_path_environment(HAPROXY, state, taken)
    assert found.items() >= HAPROXY.items()
    ports = {int(value) for name, value in found.items() if name.endswith("_PORT")}
    assert ports == taken
    assert len(ports) == 2
    folders = [value for name, value in found.items() if "HAPROXY" in name and not name.endswith("_PORT")]
    assert all(value.startswith(str(state.session)) for value in folders)


def test_python_proxies_get_no_variable(tmp_path: Path) -> None:
    assert build_data_path_environment({}, EndpointState(tmp_path), set()) == {}
