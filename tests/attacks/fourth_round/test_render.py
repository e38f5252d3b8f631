"""Fourth round: names and texts in the syntax of what is written are refused, or stay text."""

import copy
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from attacks.kit.fourth_round import Attempt, read_attempts
from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.deploy.render.fleet_map import draw_fleet_map
from rayhelm.deploy.render.plan_view import build_plan_view
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

REASON = "a plain reason"
FLEET: dict[str, Any] = {
    "fleet": "one",
    "clusters": {"main": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}},
    "pools": {"gpu": {"gpu": "H100-SXM-80GB", "nodes": 2, "gpusPerNode": 1}},
    "models": {"chat": {"source": "Qwen/Qwen3-8B", "context": 8192, "unpinnedReason": REASON}},
    "tenants": {"apps": {"models": ["chat"]}},
}
KINDS = ("fleet", "clusters", "pools", "models", "tenants", "services", "aliases", "version")


def rename(kind: str, name: str) -> dict[str, Any]:
    """Return the fleet with a name of one kind."""
    fleet = copy.deepcopy(FLEET)
    match kind:
        case "fleet":
            fleet["fleet"] = name
        case "aliases":
            fleet["models"]["chat"]["aliases"] = [name]
        case "version":
            fleet["models"]["next"] = {**fleet["models"]["chat"], "servedAs": {"model": "chat", "version": name}}
        case "services":
            fleet["models"]["chat"]["service"] = name
        case "models":
            fleet["models"] = {name: fleet["models"]["chat"]}
            fleet["tenants"]["apps"]["models"] = [name]
        case "clusters":
            fleet["clusters"] = {name: fleet["clusters"]["main"]}
            fleet["pools"]["gpu"]["cluster"] = name
        case _:
            fleet[kind] = {name: next(iter(fleet[kind].values()))}
    return fleet


@pytest.mark.parametrize("kind", KINDS)
def test_plain_name_is_accepted(kind: str) -> None:
    load(json.dumps(rename(kind, "plain")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attempt", read_attempts("render", "names"), ids=str)
def test_name_in_the_syntax_of_a_file_is_refused(attempt: Attempt, kind: str) -> None:
    with pytest.raises(FleetError) as caught:
        load(json.dumps(rename(kind, attempt.row["names"])))
    assert caught.value.problems


@pytest.mark.parametrize("attempt", read_attempts("render", "text"), ids=str)
def test_text_stays_text_in_every_file(attempt: Attempt) -> None:
    text = attempt.row["text"]
    fleet = copy.deepcopy(FLEET)
    fleet["models"]["chat"]["unpinnedReason"] = text
    plain, rendered = (render_plan(plan_fleet(load(json.dumps(each)))) for each in (FLEET, fleet))
    before, after = build_files(plain), build_files(rendered)
    assert before.keys() == after.keys()
    for name in (each for each in after if each.endswith(".yaml")):
        found, expected = (json.dumps(list(yaml.safe_load_all(files[name]))) for files in (after, before))
        assert found.replace(json.dumps(text)[1:-1], REASON) == expected
    pages = "".join(content for name, content in after.items() if name.endswith(".md"))
    svg, page = draw_fleet_map(rendered.plan), build_plan_view(rendered.plan)
    ElementTree.fromstring(svg)
    assert ("7 * 7" in text) == ("7 * 7" in pages)
    assert not re.search(r"<(img|script|blink)\b", pages + page + svg)
    assert "](https" not in pages
    assert not set(pages + page + svg) & {"\x07", "\x1b", "\u202e", "\u2066"}
    assert not re.search(r"(?m)^(# c|kind: Secret|---)$", pages)
