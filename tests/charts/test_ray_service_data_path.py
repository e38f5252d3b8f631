"""`serve.dataPath` of chart ray-service: variables of all Ray pods, and the arguments of Ray Serve LLM's builders."""

from typing import Any

import pytest

from charts.kit import INGRESS_ON_CPUS, chat, cluster, env, llm_config, over, serve_config

HAPROXY = {"RAY_SERVE_ENABLE_HA_PROXY": "1"}
DIRECT = {
    **HAPROXY,
    "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1",
    "RAY_SERVE_HAPROXY_INGRESS_REQUEST_ROUTER_TIMEOUT_S": "1200",
}
BODY = {"RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY": "1"}
INCLUDED = {"image": {"repository": "registry.example/ray-llm", "includesRayhelm": True}}
PREFIX = over(INCLUDED, chat(router={"kind": "PrefixAffinity"}))
NEWER = {"ray": {"version": "2.61.0"}}
TO_ZERO = over(chat(autoscaling={"minReplicas": 0}), INGRESS_ON_CPUS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        ({"serve": {"dataPath": "HAProxy"}}, HAPROXY),
        (over({"serve": {"dataPath": "HAProxy"}}, PREFIX), HAPROXY),
        ({"serve": {"dataPath": "Direct"}}, DIRECT),
        (over({"serve": {"dataPath": "Direct"}}, PREFIX), {**DIRECT, **BODY}),
        (over({"serve": {"dataPath": "Direct"}}, over(INCLUDED, TO_ZERO)), DIRECT),
        (over({"serve": {"dataPath": "Direct"}}, TO_ZERO), {**HAPROXY, "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1"}),
        (
            over(over({"serve": {"dataPath": "Direct"}}, NEWER), over(INCLUDED, TO_ZERO)),
            {**HAPROXY, "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1"},
        ),
    ],
    ids=[
        *("python", "haproxy", "haproxy-prefix", "direct", "direct-prefix", "direct-to-zero", "direct-to-zero-stock"),
        "direct-to-zero-newer",
    ],
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
    (application,) = serve_config(over(INCLUDED, over({"serve": {"dataPath": "Direct"}}, chat(**model))))[
        "applications"
    ]
    assert set(application["args"]) == {"llm_configs"}


LOAD = "rayhelm.runtime.load_router.LoadRouter"
SCALED = chat(autoscaling={"maxReplicas": 2})
RAY_PREFIX = "ray.serve.llm.request_router.PrefixCacheAffinityRouter"


@pytest.mark.parametrize(
    ("path", "values", "router"),
    [
        ("Python", PREFIX, RAY_PREFIX),
        ("HAProxy", PREFIX, RAY_PREFIX),
        ("Direct", PREFIX, "rayhelm.runtime.prompt_router.PromptRouter"),
        ("HAProxy", over(INCLUDED, SCALED), None),
        ("Direct", over(INCLUDED, SCALED), LOAD),
        ("Direct", over(INCLUDED, TO_ZERO), LOAD),
        ("Direct", over(INCLUDED, chat(autoscaling={"maxReplicas": 1})), None),
        ("Direct", SCALED, None),
        ("Direct", over(over(INCLUDED, SCALED), {"workerGroups": {"gpu": {"image": {"tag": "2.60.0-other"}}}}), None),
        ("Direct", over(over(INCLUDED, SCALED), {"ray": {"version": "2.60.1"}}), LOAD),
        ("Direct", over(over(INCLUDED, SCALED), NEWER), None),
    ],
    ids=[
        *("python-prefix", "haproxy-prefix", "direct-prefix", "haproxy", "direct", "direct-to-zero"),
        *("direct-one-replica", "direct-stock", "direct-one-stock", "direct-patch", "direct-newer"),
    ],
)
def test_direct_path_has_routers_of_rayhelm_where_all_images_have_it(
    path: str, values: dict[str, Any], router: str | None
) -> None:
    config = llm_config(over(values, {"serve": {"dataPath": path}}))["deployment_config"]
    assert config.get("request_router_config", {}).get("request_router_class") == router


def test_router_of_the_direct_path_outlives_the_requests_that_wait_in_it() -> None:
    """Serve takes no deployment that the application lacks."""
    (direct,), (python,) = (
        serve_config({"serve": {"dataPath": path, "requestTimeoutSeconds": 700}})["applications"]
        for path in ("Direct", "Python")
    )
    (router,) = direct["deployments"]
    assert router == {"name": "LLMRouter", "graceful_shutdown_wait_loop_s": 10, "graceful_shutdown_timeout_s": 700}
    assert "deployments" not in python
