"""Bounds of a tenant's requests in the fleet file."""

import pytest

from rayhelm.values.build.gateway import build_gateways
from rayhelm.values.build.ray_service import build_ray_service_values
from unit.fleets import load, plan
from unit.small_fleet import problems

FLEET = """\
fleet: small
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {allowedClients: [web]}}}
pools: {gpu: {gpu: L4-24GB, nodes: 4}}
tenants: {a: {models: [chat]BOUNDS}}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: gpu}
"""


def test_bounds_are_in_the_gateway_values() -> None:
    text = FLEET.replace("BOUNDS", ", maxOutputTokens: {chat: 512}, maxBodyBytes: {chat: 65536}")
    planned, loaded = plan(text), load(text)
    (values,) = build_gateways(planned, loaded, build_ray_service_values(planned, loaded)).values()
    assert values.tenants["a"].max_output_tokens == {"chat": 512}
    assert values.tenants["a"].max_body_bytes == {"chat": 65536}
    assert values.tenants["a"].without_max_tokens == "Refuse"


@pytest.mark.parametrize("key", ["maxOutputTokens", "maxBodyBytes"])
@pytest.mark.parametrize(("bound", "message"), [("{chat: 0}", "0"), ("{other: 5}", "'other' is not one of")])
def test_bound_that_cannot_hold_is_refused(key: str, bound: str, message: str) -> None:
    (problem,) = problems(FLEET.replace("BOUNDS", f", {key}: {bound}"))
    assert problem.path.startswith("tenants.a")
    assert message in problem.message
