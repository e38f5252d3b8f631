"""A plan that breaks several rules of the fleet: all of them are reported together, by line."""

import pytest

from rayhelm.errors import FleetError
from shared.fleets import plan

FLEET = """
fleet: broken
pools:
  pool: {gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g}
models:
  large: {source: meta-llama/Llama-3.1-405B-Instruct, context: 16384}
services: {large: {tenant: team}}
tenants: {team: {gpus: 2, models: [large]}}
"""


def test_broken_rules_are_reported_together() -> None:
    with pytest.raises(FleetError) as caught:
        plan(FLEET)
    places = [(problem.path, problem.line) for problem in caught.value.problems]
    assert places == [("pools.pool.network", 4), ("tenants.team.gpus", 8)]
