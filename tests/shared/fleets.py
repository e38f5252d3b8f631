"""Fleets for the tests of the planner."""

import textwrap

from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import LoadedFleet, parse_fleet
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes

__all__ = ["load", "one", "plan", "refused"]


def load(text: str) -> LoadedFleet:
    """Load a fleet. Without `clusters` it has one whose NVIDIA GPUs are labeled, so that pools need no labels."""
    text = textwrap.dedent(text).rstrip() + "\n"
    if "clusters" not in text:
        text += "clusters: {main: {gpuFeatureDiscovery: true}}\n"
    return parse_fleet(parse_document(text, "fleet.yaml"))


def plan(text: str) -> Plan:
    return plan_fleet(load(text))


def one(pool: str, model: str, more: str = "") -> ModelPlan:
    """The plan of one model on one pool, both as YAML flow mappings."""
    return plan(_text(pool, model, more)).models["model"]


def _text(pool: str, model: str, more: str) -> str:
    return f"fleet: one\npools: {{pool: {pool}}}\nmodels: {{model: {model}}}\n{more}"


def refused(pool: str, model: str, more: str = "") -> Problem:
    """The one problem of such a fleet. Its fixes are applied, and have to solve it."""
    try:
        found = one(pool, model, more)
    except FleetError as error:
        (problem,) = error.problems
        check_fixes(_text(pool, model, more), [problem], plan)
        return problem
    raise AssertionError(f"planned: {found}")
