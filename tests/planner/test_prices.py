"""`prices` of the fleet file: one provider, or a list of its own, for all pools."""

import pytest

from rayhelm.errors import FleetError, Problem
from rayhelm.planner.plan import Plan
from shared.apply_fix import check_fixes
from shared.fleets import load, plan

FLEET = """
fleet: priced
pools:
  h100: {gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 8, nodeSelector: {pool: h100}}
  rtx: {gpu: RTX-4090-24GB, nodes: 9, nodeSelector: {pool: rtx}}
models:
  chat: {source: Qwen/Qwen3-8B, context: 8192, traffic: {requestsPerSecond: 5, inputTokens: 800, outputTokens: 200}}
"""


def planned(prices: str = "", fleet: str = FLEET) -> Plan:
    return plan(fleet + (f"prices: {prices}\n" if prices else ""))


def list_warnings(found: Plan) -> list[str]:
    return [each for each in found.warnings if "several providers" in each or "is unknown" in each]


def refused(prices: str) -> Problem:
    text = FLEET + f"clusters: {{main: {{gpuFeatureDiscovery: true}}}}\nprices: {prices}\n"
    with pytest.raises(FleetError) as caught:
        load(text)
    (problem,) = caught.value.problems
    check_fixes(text, [problem], load)
    return problem


def test_prices_of_several_providers_are_warned_of() -> None:
    (warning,) = list_warnings(planned())
    assert "(AWS: `h100`; RunPod: `rtx`)" in warning
    pinned = FLEET.replace("context: 8192", "context: 8192, pool: rtx")
    assert not list_warnings(planned(fleet=pinned))
    assert not list_warnings(planned(fleet=FLEET.replace("nodes: 9", "nodes: 9, price: 0.3 USD/h")))


def test_prices_of_one_provider_are_compared() -> None:
    runpod, lambda_ = planned("{provider: runpod}"), planned("{provider: lambda}")
    assert not list_warnings(runpod)
    assert runpod.models["chat"].gpu == "RTX-4090-24GB"
    assert lambda_.models["chat"].price_per_hour == pytest.approx(3.99)
    assert list_warnings(lambda_)[0].startswith("pool `rtx`: the price of RTX-4090-24GB is unknown")


def test_own_prices_go_before_the_catalog_and_those_of_a_pool_before_them() -> None:
    found = planned("{onDemand: {H100: 0.50 USD/h, RTX-4090-24GB: 0.40 USD/h}}")
    assert (found.models["chat"].gpu, found.models["chat"].price_per_hour) == ("H100-SXM-80GB", 0.5)
    assert not list_warnings(found)
    (reason,) = (each for each in found.models["chat"].reasons if each.decision == "price_per_hour")
    assert reason.because == "1 GPU, on demand, `prices` of the fleet file"
    dearer = FLEET.replace("gpusPerNode: 8", "gpusPerNode: 8, price: 9 USD/h")
    assert planned("{onDemand: {H100: 0.50 USD/h}}", dearer).models["chat"].gpu == "RTX-4090-24GB"


def test_own_spot_price_is_that_of_spot_pools_only() -> None:
    spot = FLEET.replace("gpusPerNode: 8", "gpusPerNode: 8, spot: karpenter")
    found = planned("{spot: {H100-SXM-80GB: 0.20 USD/h}}", spot)
    assert found.models["chat"].price_per_hour == pytest.approx(0.2)
    assert planned("{spot: {H100-SXM-80GB: 0.20 USD/h}}").models["chat"].gpu == "RTX-4090-24GB"


def test_prices_name_gpus_that_the_fleet_describes() -> None:
    own = FLEET.replace("gpu: RTX-4090-24GB", "gpu: RTX-4090-48GB")
    own += "gpus: {RTX-4090-48GB: {like: RTX-4090-24GB, memory: 48GB}}\n"
    found = planned("{onDemand: {RTX-4090-48GB: 0.70 USD/h}}", own)
    chat = found.models["chat"]
    assert (chat.gpu, chat.price_per_hour) == ("RTX-4090-48GB", pytest.approx(0.7 * chat.gpus))


@pytest.mark.parametrize(
    ("prices", "path", "message"),
    [
        ("{provider: amazon}", "prices.provider", "`amazon` is no provider of the catalog"),
        ("{onDemand: {H10: 2 USD/h}}", "prices.onDemand.H10", "the catalog has no GPU 'H10'"),
        ("{onDemand: {H100: 2 USD/h, H100-SXM-80GB: 3 USD/h}}", "prices.onDemand.H100-SXM-80GB", "has two prices"),
        ("{spot: {H100: 2 EUR/h}}", "prices.spot.H100", "USD/h"),
    ],
)
def test_wrong_price_list_is_refused_with_its_fix(prices: str, path: str, message: str) -> None:
    problem = refused(prices)
    assert problem.path == path
    assert message in problem.message + str(problem.fix)
