"""An alert file with a fault is refused with its file, its line and a fix."""

from importlib.resources import files

import pytest
import yaml

from rayhelm.errors import FleetError
from rayhelm.observe.rules import load_alerts
from rayhelm.observe.rules.alerts import read_alert

GOOD = files("rayhelm").joinpath("data/alerts/HeadMemoryHigh.yaml").read_text(encoding="utf-8")


def refusal(**changes: object) -> str:
    """Message of the refusal of a good alert with changes; None removes a key."""
    data = {key: value for key, value in {**yaml.safe_load(GOOD), **changes}.items() if value is not None}
    with pytest.raises(FleetError) as caught:
        read_alert("HeadMemoryHigh", yaml.safe_dump(data, sort_keys=False), set(load_alerts())).query  # noqa: B018
    return str(caught.value)


def test_alert_without_runbook_is_refused_with_its_parts() -> None:
    message = refusal(runbook=None)
    assert "data/alerts/HeadMemoryHigh.yaml: runbook: is missing" in message
    assert "cause" in message.partition("fix:")[2]


def test_alert_without_commands_in_its_runbook_is_refused() -> None:
    runbook = yaml.safe_load(GOOD)["runbook"] | {"check": "Look at the memory of the head for a while."}
    assert "runbook.check: has no block of commands" in refusal(runbook=runbook)


def test_runbook_link_to_an_unknown_alert_is_refused() -> None:
    runbook = yaml.safe_load(GOOD)["runbook"] | {"fix": "See [HeadMemoryFull](HeadMemoryFull.md) first."}
    assert "there is no alert HeadMemoryFull" in refusal(runbook=runbook)


def test_alert_without_an_idle_case_is_refused() -> None:
    tests = {key: value for key, value in yaml.safe_load(GOOD)["tests"].items() if key != "idle"}
    assert "no alert may fire for an idle service" in refusal(tests=tests)


def test_unknown_query_is_refused_with_the_nearest_one() -> None:
    message = refusal(expr="{{ ray_cluster.head_memory() }} > 0.85")
    assert "there is no query `head_memory`" in message
    assert "fix:" in message


def test_unknown_severity_is_refused_at_its_line() -> None:
    message = refusal(severity="page")
    assert "HeadMemoryHigh.yaml:2: severity" in message
