"""`serve.dataPath` of chart ray-service: variables of all Ray pods, and the arguments of Ray Serve LLM's builders."""

from typing import Any

import pytest

from charts.kit import chat, cluster, env, over, serve_config

HAPROXY = {"RAY_SERVE_ENABLE_HA_PROXY": "1"}
DIRECT = {**HAPROXY, "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1"}
BODY = {"RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY": "1"}
PREFIX = chat(router={"kind": "PrefixAffinity"})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        ({"serve": {"dataPath": "HAProxy"}}, HAPROXY),
        (over({"serve": {"dataPath": "HAProxy"}}, PREFIX), HAPROXY),
        ({"serve": {"dataPath": "Direct"}}, DIRECT),
        (over({"serve": {"dataPath": "Direct"}}, PREFIX), {**DIRECT, **BODY}),
    ],
    ids=["python", "haproxy", "haproxy-prefix", "direct", "direct-prefix"],
)
def test_all_ray_pods_have_the_variables_of_the_data_path(values: dict[str, Any], expected: dict[str, str]) -> None:
    spec = cluster(values)
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        found = env(group["template"]["spec"]["containers"][0])
        assert {name: found[name] for name in (*DIRECT, *BODY) if name in found} == expected


@pytest.mark.parametrize("path", ["Python", "HAProxy"])
def test_application_has_an_ingress_deployment_unless_the_path_is_direct(path: str) -> None:
    (application,) = serve_config({"serve": {"dataPath": path}})["applications"]
    assert set(application["args"]) == {"ingress_deployment_config", "llm_configs"}


@pytest.mark.parametrize(
    "model",
    [{}, {"lora": {"adapters": {"sql": {"source": "/adapters/sql"}}, "slots": 1}}],
    ids=["plain", "adapters"],
)
def test_direct_application_has_no_argument_for_an_ingress(model: dict[str, Any]) -> None:
    values = {"image": {"repository": "registry.example/ray-llm", "includesRayhelm": True}}
    (application,) = serve_config(over(values, over({"serve": {"dataPath": "Direct"}}, chat(**model))))["applications"]
    assert set(application["args"]) == {"llm_configs"}
