"""Models that move after one edit of a fleet."""

import copy
import random
from statistics import mean
from typing import Any

import yaml

from planning.fleets import generate_fleet
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.planner import plan_fleet

__all__ = ["measure_edits"]

_KINDS = ("traffic", "remove", "nodes", "price")


def measure_edits(models: int, pools: int, each: int) -> dict[str, Any]:
    """Return by kind of edit the share of the other models that are on another pool or split after it."""
    data = generate_fleet(models, pools)
    before = _plan(data)
    shares: dict[str, list[float]] = {}
    for kind in _KINDS:
        for seed in range(each):
            edited, touched = _edit(copy.deepcopy(data), kind, random.Random(seed))
            after = _plan(edited)
            others = [name for name in after.models if name != touched]
            moved = sum(_shape(after.models[name]) != _shape(before.models[name]) for name in others)
            shares.setdefault(kind, []).append(moved / len(others))
    return {
        "models": models,
        "pools": pools,
        "edits_of_each_kind": each,
        "share_moved": {
            kind: {"mean": round(mean(found), 4), "largest": round(max(found), 4)} for kind, found in shares.items()
        },
    }


def _edit(data: dict[str, Any], kind: str, dice: random.Random) -> tuple[dict[str, Any], str]:
    """Return the fleet after one edit, and the model that it is about, if any."""
    model, pool = dice.choice(sorted(data["models"])), dice.choice(sorted(data["pools"]))
    if kind == "traffic":
        traffic = data["models"][model]["traffic"]
        traffic["requestsPerSecond"] = round(traffic["requestsPerSecond"] * 1.5, 2)
        return data, model
    if kind == "remove":
        del data["models"][model]
        return data, model
    if kind == "nodes":
        data["pools"][pool]["nodes"] += 1
        return data, ""
    price = float(data["pools"][pool]["price"].split()[0])
    data["pools"][pool]["price"] = f"{price * 1.05:.3f} USD/h"
    return data, ""


def _plan(data: dict[str, Any]) -> Plan:
    return plan_fleet(parse_fleet(parse_document(yaml.safe_dump(data, sort_keys=False), "fleet.yaml")))


def _shape(model: ModelPlan) -> tuple[str, int, int]:
    return model.pool, model.tensor_parallel_size, model.pipeline_parallel_size
