"""Further names of a model: the gateway routes, lists, limits and counts them like the model."""

import json
from collections.abc import Iterator

import pytest

from gateway.kit.process import GatewayProcess, start_gateway, sum_series
from gateway.kit.upstream import Upstream, start_upstreams
from gateway.kit.values import model, tenant

ALIASES = ["gpt-4o-mini", "Qwen/Qwen3-8B.v1"]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with start_upstreams("one") as (one,):
        yield one


@pytest.fixture(scope="module")
def gateway(upstream: Upstream) -> Iterator[GatewayProcess]:
    values = {
        "tenants": {
            "acme": tenant("acme", ["llama"], maxOutputTokens={"llama": 100}),
            "other": tenant("other", ["plain"]),
        },
        "models": {"llama": model(upstream, aliases=ALIASES), "plain": model(upstream, route="/plain")},
    }
    with start_gateway(values) as found:
        yield found


@pytest.mark.parametrize("alias", ALIASES)
def test_alias_reaches_its_model_with_the_body_as_it_was(
    gateway: GatewayProcess, upstream: Upstream, alias: str
) -> None:
    content = {"model": alias, "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}
    found = gateway.request("/v1/chat/completions", content, headers=[("x-request-id", f"alias-{len(alias)}")])
    assert (found.status, found.endpoint) == (200, "one")
    assert upstream.requests[-1].path == "/app/v1/chat/completions"
    assert json.loads(upstream.requests[-1].body)["model"] == alias
    assert gateway.log_entry(f"alias-{len(alias)}")["model"] == "llama"


def test_aliases_are_listed_for_tenants_of_the_model_only(gateway: GatewayProcess) -> None:
    listed = gateway.request("/v1/models").json()
    assert [each["id"] for each in listed["data"]] == sorted(["llama", *ALIASES])
    assert gateway.request(f"/v1/models/{ALIASES[1]}").json()["id"] == ALIASES[1]
    assert gateway.request("/v1/models/llama").json()["id"] == "llama"
    assert [each["id"] for each in gateway.request("/v1/models", key="other-key").json()["data"]] == ["plain"]
    assert gateway.request(f"/v1/models/{ALIASES[1]}", key="other-key").status == 404


def test_alias_of_a_model_of_others_is_unknown(gateway: GatewayProcess) -> None:
    assert gateway.chat(ALIASES[0], key="other-key").status == 404
    assert gateway.chat("gpt-4o").status == 404


def test_bound_of_the_model_holds_for_its_aliases(gateway: GatewayProcess) -> None:
    content = {"model": ALIASES[0], "max_tokens": 101, "messages": [{"role": "user", "content": "hello"}]}
    assert gateway.request("/v1/chat/completions", content).status == 400


def test_alias_is_no_path(gateway: GatewayProcess) -> None:
    assert gateway.request("/gpt-4o-mini/v1/chat/completions", {"model": "gpt-4o-mini"}).status == 404


def test_requests_with_an_alias_count_as_requests_of_the_model(gateway: GatewayProcess) -> None:
    def count() -> float:
        text = gateway.request_metrics_port("/metrics/tenants")[1]
        return sum_series(text, "rayhelm_gateway_requests_total", tenant="acme", model="llama")

    before = count()
    content = {"model": ALIASES[0], "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}
    gateway.request("/v1/chat/completions", content)
    gateway.wait_until_idle()
    assert count() == before + 1
