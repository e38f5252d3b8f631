"""Metrics of the tenants: requests, refused requests, limits."""

import json
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.kit import minimal_values, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.process import GatewayProcess

CHAT = "/v1/chat/completions"
Series = dict[str, str]


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with start_upstreams("one") as (one,):
        more = {"tenants": {"slow": tenant("slow", ["llama"], requestsPerMinute=1)}}
        with start_gateway(minimal_values(one, more)) as gateway:
            yield gateway


def read(gateway: GatewayProcess, name: str, **labels: str) -> float:
    """Sum of the series with these labels."""
    status, text = gateway.request_metrics_port("/metrics/tenants")
    assert status == 200
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items())


def rejected(gateway: GatewayProcess, **labels: str) -> float:
    return read(gateway, "rayhelm_gateway_rejections_total", **labels)


def test_responses_are_counted_by_tenant_model_version_and_class(gateway: GatewayProcess) -> None:
    labels = {"tenant": "acme", "model": "llama", "version": "stable", "code": "2xx"}
    before = read(gateway, "rayhelm_gateway_requests_total", **labels)
    slow = read(gateway, "rayhelm_gateway_requests_total", tenant="slow")
    for _ in range(3):
        assert gateway.chat().status == 200
    assert read(gateway, "rayhelm_gateway_requests_total", **labels) == before + 3
    assert read(gateway, "rayhelm_gateway_requests_total", tenant="slow") == slow


def test_refused_requests_are_counted_by_reason_and_not_as_requests(gateway: GatewayProcess) -> None:
    reasons = {"invalid_api_key": "", "model_not_found": "acme", "model_missing": "acme"}

    def by_reason() -> list[float]:
        return [rejected(gateway, tenant=name, reason=reason) for reason, name in reasons.items()]

    requests = read(gateway, "rayhelm_gateway_requests_total")
    before, each = rejected(gateway), by_reason()
    assert gateway.chat(key="unknown").status == 401
    assert gateway.request(CHAT, {"model": "unknown"}).status == 404
    assert gateway.request(CHAT, {}).status == 400
    assert by_reason() == [count + 1 for count in each]
    assert rejected(gateway) == before + 3
    assert read(gateway, "rayhelm_gateway_requests_total") == requests


def test_requests_over_the_rate_are_counted_for_their_tenant(gateway: GatewayProcess) -> None:
    while gateway.chat(key="slow-key").status != 429:
        pass
    before = rejected(gateway, tenant="slow", reason="rate_limit_exceeded")
    assert gateway.chat(key="slow-key").status == 429
    assert rejected(gateway, tenant="slow", reason="rate_limit_exceeded") == before + 1
    assert rejected(gateway, tenant="acme", reason="rate_limit_exceeded") == 0


def test_limits_of_a_pod_are_shown(gateway: GatewayProcess) -> None:
    assert read(gateway, "rayhelm_gateway_limit", tenant="slow", limit="requests_per_minute") == 1
    assert read(gateway, "rayhelm_gateway_limit", tenant="acme", limit="concurrency") > 0


def test_number_of_keys_and_time_of_their_last_read_are_shown(gateway: GatewayProcess) -> None:
    assert read(gateway, "rayhelm_gateway_keys") == 2
    started = gateway.folder.stat().st_mtime
    assert read(gateway, "rayhelm_gateway_keys_read_timestamp_seconds") >= int(started) - 1


def test_requests_in_flight_end_at_zero(gateway: GatewayProcess) -> None:
    gateway.chat()
    wait_for(lambda: read(gateway, "rayhelm_gateway_requests_in_flight") == 0, "no request in flight")


def test_responses_do_not_show_the_reason_header(gateway: GatewayProcess) -> None:
    for response in (gateway.chat(key="unknown"), gateway.request("/unknown"), gateway.chat()):
        assert not [name for name in response.headers if name.startswith("x-rayhelm")]


def test_every_error_of_the_gateway_has_a_counter(gateway: GatewayProcess) -> None:
    text = (gateway.folder / "haproxy.cfg").read_text()
    loaded = next(line for line in text.splitlines() if "metrics.lua" in line).split("metrics.lua ")[1].split()
    counted = [
        line.split("-m str ")[1].split()[0]
        for line in text.splitlines()
        if "sc-inc-gpc" in line and "txn.reason" in line
    ]
    sent = {
        json.loads(line.split("string '")[1].split("'")[0])["error"]["code"]
        for line in text.splitlines()
        if "hdr x-rayhelm-reason" in line
    }
    assert set(loaded) == set(counted) >= sent
    assert loaded == counted == sorted(loaded)
