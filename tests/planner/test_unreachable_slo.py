"""An SLO that one request alone misses is refused: no number of replicas would meet it."""

import re

import pytest

from rayhelm.errors import Fix, FleetError
from shared.fleets import one, plan, refused

H100 = "{gpu: H100-SXM-80GB, nodes: 40, gpusPerNode: 8}"
TRAFFIC = "traffic: {requestsPerSecond: 10, inputTokens: 2000, outputTokens: 300}"
LLAMA_70B = "source: RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic, context: 8192"


def test_tpot_that_one_request_misses_is_refused_with_the_best_split() -> None:
    problem = refused(H100, f"{{{LLAMA_70B}, {TRAFFIC}, slo: {{tpot: 2ms}}}}")
    assert problem.path == "models.model.slo.tpot"
    assert problem.line == 3
    assert "even by one request alone" in problem.message
    assert "TP 8 x PP 1 on H100-SXM-80GB in pool `pool`, reaches" in problem.message
    high, middle = re.findall(r"(?:reaches|middle is) ([\d.]+)ms", problem.message)
    assert float(middle) < float(high)


def test_ttft_that_one_request_misses_is_refused() -> None:
    problem = refused(H100, f"{{{LLAMA_70B}, {TRAFFIC}, slo: {{ttft: 5ms}}}}")
    assert problem.path == "models.model.slo.ttft"
    assert problem.fix_text.startswith("ttft: ")


def test_both_objectives_are_refused_when_both_are_missed() -> None:
    with pytest.raises(FleetError) as caught:
        one(H100, f"{{{LLAMA_70B}, {TRAFFIC}, slo: {{ttft: 5ms, tpot: 2ms}}}}")
    assert [problem.path for problem in caught.value.problems] == ["models.model.slo.ttft", "models.model.slo.tpot"]


def test_unreachable_slo_is_refused_when_replicas_are_pinned() -> None:
    problem = refused(H100, f"{{{LLAMA_70B}, replicas: 2, slo: {{tpot: 2ms}}}}")
    assert "is not reached" in problem.message


def test_refusal_names_the_pins_that_limit_the_split() -> None:
    problem = refused(H100, f"{{{LLAMA_70B}, parallelism: {{tensor: 2}}, slo: {{tpot: 2ms}}}}")
    assert "that `parallelism` allows, TP 2 x PP 1" in problem.message


def test_no_nodes_are_proposed_for_an_unreachable_slo() -> None:
    problem = refused(
        "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}", f"{{{LLAMA_70B}, {TRAFFIC}, slo: {{tpot: 2ms}}}}"
    )
    assert "nodes" not in str(problem)


def test_split_that_misses_the_slo_alone_is_not_chosen_when_it_is_cheaper() -> None:
    model = plan(
        """
        fleet: two
        pools:
          fast: {gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 1}
          slow: {gpu: L4-24GB, nodes: 1, gpusPerNode: 1}
        models:
          chat: {source: meta-llama/Llama-3.1-8B-Instruct, context: 4096, slo: {tpot: 30ms}}
        """
    ).models["chat"]
    assert model.pool == "fast"


def test_embedding_with_an_unreachable_ttft_is_refused() -> None:
    traffic = "traffic: {requestsPerSecond: 5, inputTokens: 8000}"
    problem = refused(
        "{gpu: L4-24GB, nodes: 1}", f"{{source: BAAI/bge-m3, task: embed, {traffic}, slo: {{ttft: 1ms}}}}"
    )
    assert problem.path == "models.model.slo.ttft"


TWO_POOLS = """
fleet: two
pools:
  slow: {gpu: L4-24GB, nodes: 2, gpusPerNode: 1}
  fast: {gpu: L40S-48GB, nodes: 2, gpusPerNode: 1}
models:
  chat:
    source: Qwen/Qwen3-8B
    context: 8192
    pools: [slow, fast]
    slo: {ttft: SLO}
"""


def test_slo_that_several_pools_miss_is_refused_once() -> None:
    with pytest.raises(FleetError) as caught:
        plan(TWO_POOLS.replace("SLO", "1us"))
    (problem,) = caught.value.problems
    assert problem.path == "models.chat.slo.ttft"
    assert problem.message.startswith("a time to first token of 1us is not reached")
    assert "in pool `slow`, reaches" in problem.message
    assert "; in pool `fast` " in problem.message
    assert isinstance(problem.fix, Fix)
    assert plan(TWO_POOLS.replace("SLO", str(problem.fix.value)))


def test_revision_is_missing_once_for_several_pools() -> None:
    found = plan(TWO_POOLS.replace("SLO", "2s"))
    assert len(found.models) == 2
    assert len([text for text in found.all_warnings if "no `revision`" in text]) == 1
