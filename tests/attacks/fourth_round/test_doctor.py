"""Fourth round: no text of a tenant ends the command of a fix of `rayhelm doctor`."""

import copy
import re
import shlex

import pytest

from attacks.kit.fourth_round import Attempt, read_attempts
from live.test_doctor_odd_objects import replace
from rayhelm.live.cluster.kinds import RAY_SERVICES
from shared.doctor_world import KINDS, World, fleet

HEAD = ["spec", "rayClusterConfig", "headGroupSpec", "template", "spec"]


def is_outside_quotes(fix: str) -> bool:
    """Return whether a shell would run the text of an attempt besides the command of the fix."""
    return "pasted" in re.sub(r"'[^']*'|\"[^\"]*\"", "", fix)


def examine(attempt: Attempt) -> World:
    kind = KINDS[attempt.row.get("kind", RAY_SERVICES.name)]
    world = World(fleet())
    mine = copy.deepcopy(world.items(kind)[0]) if world.items(kind) else {"kind": kind.name, "spec": {"x": 0}}
    mine["metadata"] = {
        "name": "mine",
        "namespace": "lab",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    path, value = attempt.row.get("path", HEAD), attempt.row.get("value", attempt.row.get("pod"))
    parent = mine
    for step in path[:-1]:
        parent = parent[step]
    parent.setdefault(path[-1], None)
    world.items(kind).append(replace(mine, tuple(path), value))
    return world


@pytest.mark.parametrize("attempt", read_attempts("doctor"), ids=str)
def test_text_of_a_tenant_ends_no_command_of_a_fix(attempt: Attempt) -> None:
    findings = examine(attempt).examine().findings
    assert any("mine" in each.object or "old" in each.object for each in findings)
    assert [each.fix for each in findings if is_outside_quotes(each.fix)] == []


def test_text_outside_quotes_is_found() -> None:
    texts = ("x;pasted", "x';pasted", "x\npasted")
    assert all(is_outside_quotes(f"kubectl get x --from-file={text}=FILE") for text in texts)
    assert not any(is_outside_quotes(f"kubectl get x --from-file={shlex.quote(text)}=FILE") for text in texts)
