"""The first fix of a wrong value keeps what was meant: number, unit and word. It leads to a file that is read."""

from typing import Any

import pytest
import yaml

from rayhelm.errors import Fix, FleetError
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from shared.apply_fix import apply_fix

FLEET = """
fleet: small
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, traffic: TRAFFIC, slo: SLO, MODEL}
tenants:
  apps: {models: [chat], TENANT}
"""
TRAFFIC = "{requestsPerSecond: 1, inputTokens: 500, outputTokens: 100}"
SLO = "{ttft: 1s}"
ROWS = {
    "seconds": ("SLO", "{ttft: 2}", "slo.ttft", "2s"),
    "milliseconds": ("SLO", "{ttft: 600}", "slo.ttft", "600ms"),
    "tpot-in-milliseconds": ("SLO", "{tpot: 50}", "slo.tpot", "50ms"),
    "share-in-percent": ("MODEL", "engine: {gpu_memory_utilization: 85}", "engine.gpu_memory_utilization", 0.85),
    "share-with-sign": ("SLO", '{ttft: 1s, availability: "99.9%"}', "slo.availability", 0.999),
    "share-above-one": ("SLO", "{ttft: 1s, availability: 99.9}", "slo.availability", 0.999),
    "count-in-quotes": ("MODEL", "replicas: '2'", "replicas", 2),
    "count-with-a-part": ("MODEL", "engine: {max_num_seqs: 1.5}", "engine.max_num_seqs", 2),
    "thousands": ("MODEL", "engine: {max_num_batched_tokens: 8k}", "engine.max_num_batched_tokens", 8192),
    "rate-of-another-unit": (
        "TRAFFIC",
        "{requestsPerMinute: 60, inputTokens: 500, outputTokens: 100}",
        "traffic.requestsPerSecond",
        1,
    ),
    "word-in-a-list": ("MODEL", "task: [chat]", "task", "chat"),
    "objective-with-words": ("SLO", "{ttft: p95 < 2s}", "slo.ttft", "2s"),
    "count-with-a-point": ("MODEL", "replicas: 2.0", "replicas", 2),
    "number-with-its-noun": (
        "TRAFFIC",
        "{requestsPerSecond: 1, inputTokens: 1500 tokens, outputTokens: 100}",
        "traffic.inputTokens",
        1500,
    ),
    "thousands-of-tokens": (
        "TRAFFIC",
        "{requestsPerSecond: 1, inputTokens: 1.5k, outputTokens: 100}",
        "traffic.inputTokens",
        1500,
    ),
    "rate-in-words": (
        "TRAFFIC",
        "{requestsPerSecond: 90 requests per minute, inputTokens: 500, outputTokens: 100}",
        "traffic.requestsPerSecond",
        1.5,
    ),
    "rate-without-a-share": (
        "TRAFFIC",
        "{requestsPerSecond: 12%, inputTokens: 500, outputTokens: 100}",
        "traffic.requestsPerSecond",
        12,
    ),
    "comma-in-a-number": (
        "TRAFFIC",
        "{requestsPerSecond: 1,5, inputTokens: 500, outputTokens: 100}",
        "traffic.requestsPerSecond",
        1.5,
    ),
    "comma-of-thousands": (
        "TRAFFIC",
        "{requestsPerSecond: 1, inputTokens: 1,000, outputTokens: 100}",
        "traffic.inputTokens",
        1000,
    ),
    "other-word-for-a-rate": (
        "TRAFFIC",
        "{rpm: 90, inputTokens: 500, outputTokens: 100}",
        "traffic.requestsPerSecond",
        1.5,
    ),
    "other-word-for-a-key": ("MODEL", "minReplicas: 1", "replicas.min", 1),
    "engine-argument-of-a-model": ("MODEL", "kvCacheDtype: fp8", "engine.kv_cache_dtype", "fp8"),
    "word-that-several-keys-may-mean": ("MODEL", "precision: fp8", "engine.quantization", "fp8"),
    "other-word-for-a-task": ("MODEL", "task: text-generation", "task", "chat"),
}


def read(text: str) -> None:
    parse_fleet(parse_document(text, "fleet.yaml"))


@pytest.mark.parametrize(("place", "written", "path", "meant"), ROWS.values(), ids=ROWS)
def test_first_fix_of_a_wrong_value_keeps_its_meaning(place: str, written: str, path: str, meant: Any) -> None:
    parts = {"TRAFFIC": TRAFFIC, "SLO": SLO, "MODEL": "replicas: 1", "TENANT": "requestsPerMinute: 60"} | {
        place: written
    }
    text = FLEET
    for name, part in parts.items():
        text = text.replace(name, part)
    with pytest.raises(FleetError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert not isinstance(problem.fix, str)
    assert problem.fix is not None
    fixed = apply_fix(parse_document(text, "fleet.yaml"), problem.fix)
    read(yaml.safe_dump(fixed, sort_keys=False))
    found = fixed["models"]["chat"]
    for key in path.split("."):
        found = found[key]
    assert found == meant, problem.fix


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("requestsPerMinute: 100/s", {"requestsPerMinute": 6000}),
        ("rps: 2", {"requestsPerMinute": 120}),
        ("tpm: 1000", {"tokensPerMinute": 1000}),
        ("tokensPerMinute: 1M", {"tokensPerMinute": 1_000_000}),
        ('requestsPerMinute: "10_000"', {"requestsPerMinute": 10_000}),
    ],
)
def test_limit_of_a_tenant_keeps_its_number_and_unit(written: str, fixed: dict[str, int]) -> None:
    text = (
        FLEET.replace("TRAFFIC", TRAFFIC).replace("SLO", SLO).replace("MODEL", "replicas: 1").replace("TENANT", written)
    )
    with pytest.raises(FleetError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert isinstance(problem.fix, Fix)
    assert apply_fix(parse_document(text, "fleet.yaml"), problem.fix)["tenants"]["apps"] == {
        "models": ["chat"],
        **fixed,
    }


def test_fix_below_another_key_shows_that_key() -> None:
    text = FLEET.replace("TRAFFIC", TRAFFIC).replace("SLO", SLO).replace("MODEL", "tp: 2").replace("TENANT", "gpus: 1")
    with pytest.raises(FleetError) as caught:
        read(text)
    assert caught.value.problems[0].fix_text == "parallelism:\n  tensor: 2   # instead of `tp`"


def test_label_that_yaml_reads_as_a_number_keeps_it() -> None:
    text = (
        FLEET.replace("TRAFFIC", TRAFFIC)
        .replace("SLO", SLO)
        .replace("MODEL", "replicas: 1")
        .replace("TENANT", "gpus: 1")
    )
    with pytest.raises(FleetError) as caught:
        read(text.replace("nodes: 2", "nodes: 2, nodeSelector: {generation: 3}"))
    assert caught.value.problems[0].fix_text == "generation: '3'   # in quotes"


@pytest.mark.parametrize(("written", "network"), [("1 Gbit/s", "1gbe"), ("25G", "25gbe"), ("100Gbps", "100gbe")])
def test_unknown_network_keeps_its_rate(written: str, network: str) -> None:
    with pytest.raises(FleetError) as caught:
        load_catalog().network(written)
    fix = caught.value.problems[0].fix
    assert isinstance(fix, Fix)
    assert fix.value == network


def test_value_that_only_shows_the_form_is_called_an_example() -> None:
    text = FLEET.replace("TRAFFIC", "many").replace("SLO", SLO).replace("MODEL", "replicas: 1")
    with pytest.raises(FleetError) as caught:
        read(text.replace("TENANT", "requestsPerMinute: 60"))
    assert "an example" in str(caught.value.problems[0].fix)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("dataPath: Direct", "it is a key of `services.NAME`"),
        ("spot: true", "it is a key of `pools.NAME`"),
        ("zzz: 1", "`rayhelm explain` lists the keys"),
    ],
)
def test_key_of_another_section_is_named_there(key: str, why: str) -> None:
    text = FLEET.replace("TRAFFIC", TRAFFIC).replace("SLO", SLO).replace("MODEL", key).replace("TENANT", "")
    with pytest.raises(FleetError) as refused:
        parse_fleet(parse_document(text, "fleet.yaml"))
    (problem,) = refused.value.problems
    assert problem.fix
    assert problem.fix.why == why
