"""An old key of the fleet file, and an old option of a command, is refused with its new name."""

from typing import Any

import pytest
import yaml

from rayhelm.cli.renamed_options import renamed_options
from rayhelm.facts.renamed import Renamed, renamed
from shared.command import run
from shared.small_fleet import SMALL, problems, read

VALUES: dict[str, Any] = {
    "servedAs": {"model": "chat", "version": "next", "weight": 20},
    "pinnedVersions": {"chat": "stable"},
    "allowedClients": ["apps"],
    "includesRayhelm": True,
    "scraping": "PodMonitor",
    "scrapeLabels": {"release": "prometheus"},
}
"""A value that each new key accepts."""


def fleet_with(path: str, value: object) -> str:
    """The small fleet with `value` at a path of the table; `*` becomes a name that the fleet can have."""
    fleet = yaml.safe_load(SMALL)
    fleet["models"]["other"] = {"source": "Qwen/Qwen3-8B", "context": 4096}
    names = {"models": "other", "tenants": "team", "clusters": "main", "pools": "gpu"}
    steps = path.split(".")
    steps[1] = names[steps[0]]
    here = fleet
    for step in steps[:-1]:
        here = here.setdefault(step, {})
    if steps[0] == "tenants":
        here["models"] = ["chat", "other"]
    if "image" in steps:
        here |= {"repository": "registry.example/ray", "tag": "ours"}
    if "prometheus" in steps:
        here["url"] = "http://prometheus:9090"
    here[steps[-1]] = value
    return str(yaml.safe_dump(fleet, sort_keys=False))


@pytest.mark.parametrize("row", renamed("fleet"), ids=lambda row: row.old)
def test_fleet_refuses_an_old_key_with_the_new_name(row: Renamed) -> None:
    new = row.new.rpartition(".")[2]
    (problem,) = problems(fleet_with(row.old, VALUES[new]))
    old = row.old.rpartition(".")[2]
    assert problem.message == f"`{old}` was renamed to `{new}` in rayhelm 0.2.0"
    assert problem.line
    assert problem.path.rpartition(".")[2] == old
    assert yaml.safe_load(str(problem.fix)) == {new: VALUES[new]}


@pytest.mark.parametrize("row", renamed("fleet"), ids=lambda row: row.new)
def test_fleet_accepts_the_new_key(row: Renamed) -> None:
    read(fleet_with(row.new, VALUES[row.new.rpartition(".")[2]]))


@pytest.mark.parametrize("row", renamed_options(), ids=lambda row: str(row["old"]))
def test_command_refuses_an_old_option_with_the_new_name(
    row: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, row["command"], "fleet.yaml", row["old"])
    assert answer.code == 2
    assert f"`{row['old']}` was renamed to `{row['new']}` in rayhelm 0.2.0" in " ".join(
        answer.err.replace("│", " ").split()
    )
