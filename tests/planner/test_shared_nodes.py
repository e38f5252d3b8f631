"""Hosts of a pool are nodes of their own."""

import pytest

from rayhelm.errors import FleetError
from shared.apply_fix import check_fixes
from shared.fleets import plan

FLEET = """\
fleet: mixed
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: %s}}
pools:
  box:
    hosts:
      - {gpu: %s, gpus: 1, name: fast, nodeSelector: {kubernetes.io/hostname: box}}
      - {gpu: RTX-3090-24GB, gpus: 1, name: slow, nodeSelector: {kubernetes.io/hostname: %s}}
models:
  m: {source: Qwen/Qwen3-32B-AWQ, task: chat, context: 8192, unpinnedReason: an example, parallelism: {%s: 2}}
"""


@pytest.mark.parametrize("is_labeled", ["true", "false"])
@pytest.mark.parametrize("gpu", ["RTX-5090-32GB", "RTX-3090-24GB"])
@pytest.mark.parametrize("split", ["pipeline", "tensor"])
def test_hosts_that_select_one_node_are_refused(split: str, gpu: str, is_labeled: str) -> None:
    text = FLEET % (is_labeled, gpu, "box", split)
    with pytest.raises(FleetError) as raised:
        plan(text)
    (problem,) = raised.value.problems
    assert problem.path == "pools.box.hosts"
    assert "offers its 2 GPUs together" in problem.message
    assert "gpu: RTX-3090-24GB, gpus: 2" in problem.fix_text
    check_fixes(text, [problem], plan)


def test_hosts_with_nodes_of_their_own_are_accepted() -> None:
    assert plan(FLEET % ("true", "RTX-5090-32GB", "other", "pipeline")).models
