"""`rayhelm lint` of the variables that select the way of requests inside a Ray cluster."""

from pathlib import Path
from typing import Any

import pytest

from check.test_lint_ray_service import check

SOURCE = "Qwen/Qwen2.5-7B-Instruct"
HEAD = "{name: head, image: "
WORKER = "          - name: worker\n"
HAPROXY = "{name: RAY_SERVE_ENABLE_HA_PROXY, value: '1'}"
DIRECT = "{name: RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING, value: '1'}"


def with_env(*variables: str, worker: str = "") -> tuple[tuple[str, str], ...]:
    env = f"env: [{', '.join(variables)}]"
    return (HEAD, f"{{name: head, {env}, image: "), (WORKER, f"{WORKER}            {worker or env}\n")


DATA_PATHS = {
    "not in workers": (with_env(HAPROXY, worker="env: []"), "group gpu has no RAY_SERVE_ENABLE_HA_PROXY"),
    "without haproxy": (with_env(DIRECT), "without RAY_SERVE_ENABLE_HA_PROXY=1"),
    "ingress": (
        (
            *with_env(HAPROXY, DIRECT),
            ("      args:\n", "      args:\n        ingress_deployment_config: {num_replicas: 1}\n"),
        ),
        "Ray refuses it with RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING=1",
    ),
    "two models": (
        (
            *with_env(HAPROXY, DIRECT),
            (
                "  rayClusterConfig:\n",
                f"        - model_loading_config: {{model_id: more, model_source: {SOURCE}}}\n  rayClusterConfig:\n",
            ),
            ("max_replicas: 2", "max_replicas: 1"),
        ),
        "has 2 models",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), DATA_PATHS.values(), ids=DATA_PATHS)
def test_data_path_that_ray_refuses_is_reported(changes: Any, expected: str, tmp_path: Path) -> None:
    found = next(each for each in check(tmp_path, *changes).problems if each.rule == "ray-data-path")
    assert expected in str(found)
    assert found.fix_text


def test_data_path_alike_in_all_pods_has_no_finding(tmp_path: Path) -> None:
    assert check(tmp_path, *with_env(HAPROXY, DIRECT)).problems == []
