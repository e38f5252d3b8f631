"""`services.<service>.dataPath`: the way of requests inside a Ray cluster, and why."""

import pytest

from rayhelm.deploy.compose.fleet_values import compose_values
from shared.fleets import plan, refused

POOL = "{gpu: L4-24GB, nodes: 4}"
MODEL = "{source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: an example, %s}"
FIXED = MODEL % "replicas: 1"
CUSTOM = "{source: Qwen/Qwen3-8B, replicas: 1, task: custom, application: {importPath: 'ocr:build', deployment: Ocr}}"
SCALED = MODEL % "replicas: {min: 1, max: 3}"
TO_ZERO = MODEL % "replicas: {min: 0, max: 3}"
SHARED = MODEL % (
    "replicas: 2, traffic: {requestsPerSecond: 1, inputTokens: 4000, outputTokens: 100, sharedPrefix: 0.8}"
)
ALIASED = MODEL % "replicas: 1, aliases: [gpt]"
TLS = (
    "clusters: {main: {gpuFeatureDiscovery: true, serveTls: {certificateAuthority: {configMap: ca}},"
    " image: {repository: registry.example/ray, tag: a, includesRayhelm: true}}}"
)
IMAGE = "clusters: {main: {gpuFeatureDiscovery: true, image: {repository: registry.example/ray, tag: a, %s}}}"
OWN = IMAGE % "includesRayhelm: true"
STOCK = IMAGE % "includesRayhelm: false"
NEWER = IMAGE % "includesRayhelm: true, ray: 2.61.0"
PATCHED = IMAGE % "includesRayhelm: true, ray: 2.60.1"


def choose(model: str, wanted: str = "", more: str = OWN) -> tuple[str, str]:
    service = f"services: {{model: {{{wanted}}}}}\n" if wanted else ""
    found = plan(f"fleet: one\npools: {{pool: {POOL}}}\nmodels: {{model: {model}}}\n{service}{more}\n").services[
        "model"
    ]
    return found.data_path, found.data_path_reason


@pytest.mark.parametrize(
    ("model", "wanted", "more", "path", "reason"),
    [
        (FIXED, "", OWN, "Python", "the default"),
        (FIXED, "dataPath: Python", OWN, "Python", "set in the fleet file"),
        (FIXED, "dataPath: Auto", OWN, "Direct", "the least CPU for each token"),
        (ALIASED, "dataPath: Auto", OWN, "HAProxy", "model has `aliases`"),
        (CUSTOM, "dataPath: Auto", OWN, "HAProxy", "its applications have no vLLM"),
        (FIXED, "dataPath: Auto", TLS, "Python", "Ray's HAProxy listens without TLS"),
        (FIXED, "dataPath: Auto", IMAGE % "ray: 2.59.0", "Python", "its image has Ray 2.59.0"),
        (SCALED, "dataPath: Auto", OWN, "Direct", "the least CPU"),
        (SCALED, "dataPath: Auto", STOCK, "Python", "without a look at their load"),
        (SCALED, "dataPath: Direct", STOCK, "Direct", "without a look at their load"),
        (FIXED, "dataPath: Auto", NEWER, "Python", "not run, or worse, with `Direct`: Ray 2.61.0"),
        (ALIASED, "dataPath: HAProxy", NEWER, "HAProxy", "worse, with it: Ray 2.61.0"),
        (SCALED, "dataPath: Direct", NEWER, "Direct", "Ray 2.61.0; several replicas, of which Ray takes one"),
        (TO_ZERO, "dataPath: Direct", NEWER, "Direct", "Ray 2.61.0; scale to zero"),
        (SCALED, "dataPath: Direct", PATCHED, "Direct", "worse, with it: Ray 2.60.1"),
        (TO_ZERO, "dataPath: Auto", OWN, "Direct", "the least CPU"),
        (TO_ZERO, "dataPath: Auto", STOCK, "Python", "scale to zero"),
        (TO_ZERO, "dataPath: HAProxy", OWN, "HAProxy", "worse, with it: scale to zero"),
        (SHARED, "dataPath: Auto", OWN, "Direct", "the least CPU"),
        (
            SHARED,
            "dataPath: Auto",
            STOCK,
            "Python",
            "worse, with `HAProxy`: the prefix cache",
        ),
        (
            SHARED,
            "dataPath: HAProxy",
            OWN,
            "HAProxy",
            "worse, with it: the prefix cache",
        ),
        (ALIASED, "dataPath: HAProxy", OWN, "HAProxy", "set in the fleet file"),
    ],
)
def test_plan_chooses_the_data_path_with_a_reason(model: str, wanted: str, more: str, path: str, reason: str) -> None:
    found, because = choose(model, wanted, more)
    assert found == path
    assert reason in because


@pytest.mark.parametrize(
    ("model", "wanted", "more", "reason", "fix"),
    [
        (ALIASED, "Direct", OWN, "aliases", "HAProxy"),
        (SHARED, "Direct", STOCK, "its image lacks rayhelm", "HAProxy"),
        (SHARED, "Direct", NEWER, "its image has Ray 2.61.0", "HAProxy"),
        (FIXED, "Direct", TLS, "serveTls", "Python"),
        (FIXED, "HAProxy", IMAGE % "ray: 2.59.0", "Ray 2.59.0", "Python"),
    ],
)
def test_data_path_that_cannot_work_is_refused(model: str, wanted: str, more: str, reason: str, fix: str) -> None:
    problem = refused(POOL, model, f"services: {{model: {{dataPath: {wanted}}}}}\n{more}")
    assert problem.path == "services.model.dataPath"
    assert reason in problem.message
    assert f"dataPath: {fix}" in str(problem.fix)


TWO = f"""
fleet: two
pools: {{pool: {POOL}}}
models:
  direct: {FIXED}
  mixed: {FIXED}
  more: {MODEL % "replicas: 1, servedAs: {model: mixed}"}
services: {{direct: {{dataPath: Direct}}, mixed: {{dataPath: Direct}}, more: {{dataPath: HAProxy}}}}
tenants: {{apps: {{models: [direct, mixed]}}}}
clusters: {{main: {{gpuFeatureDiscovery: true, apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
"""


def test_gateway_has_the_data_path_that_all_services_of_a_model_have() -> None:
    values = compose_values(plan(TWO))
    (gateway,) = values.gateways.values()
    assert {name: model.data_path for name, model in gateway.models.items()} == {"direct": "Direct", "mixed": "HAProxy"}
    assert values.services["direct"].serve.data_path == "Direct"
