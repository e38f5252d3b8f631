"""The first fix of a wrong value keeps what was meant: number, unit and word. It leads to a file that is read."""

from typing import Any

import pytest
import yaml

from rayhelm.errors import FleetError
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


def test_value_that_only_shows_the_form_is_called_an_example() -> None:
    text = FLEET.replace("TRAFFIC", "many").replace("SLO", SLO).replace("MODEL", "replicas: 1")
    with pytest.raises(FleetError) as caught:
        read(text.replace("TENANT", "requestsPerMinute: 60"))
    assert "an example" in str(caught.value.problems[0].fix)
