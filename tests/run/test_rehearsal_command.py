"""`rayhelm rehearse` without a cluster: its arguments and errors."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.command import Answer, run

VALUES = Path(__file__).parents[2] / "values"
FLEET = (VALUES / "single-gpu" / "fleet.yaml").read_text()
Rehearse = Callable[..., Answer]


@pytest.fixture
def rehearse(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rehearse:
    return lambda *words: run(capsys, monkeypatch, "rehearse", *words)


@pytest.fixture
def fleet(tmp_path: Path) -> Callable[..., str]:
    def write(old: str = "", new: str = "", name: str = "fleet.yaml") -> str:
        assert old in FLEET
        (tmp_path / name).write_text(FLEET.replace(old, new) if old else FLEET)
        return str(tmp_path / name)

    return write


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig with a server that does not listen."""
    server = {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "there", "context": {"cluster": "gone", "user": "me"}}
    file = tmp_path / "kubeconfig"
    parts = {"clusters": [server], "contexts": [context], "users": [{"name": "me"}], "current-context": "there"}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
    monkeypatch.setenv("KUBECONFIG", str(file))


def test_fleet_is_required(rehearse: Rehearse) -> None:
    answer = rehearse()
    assert answer.code == 2
    assert "FLEET is missing: rayhelm rehearse FLEET" in answer.err


def test_clean_takes_no_fleet(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--clean")
    assert answer.code == 2
    assert "--clean takes no fleet" in answer.err


def test_equal_fleets_are_refused(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    same = fleet("# The smallest fleet", "# Another comment of the smallest fleet", "new.yaml")
    answer = rehearse(fleet(), "--change", same)
    assert answer.code == 1
    assert "nothing to rehearse: both fleets have the same values" in answer.err


def test_change_to_another_fleet_is_refused(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--change", fleet("fleet: single-gpu", "fleet: other", "new.yaml"))
    assert answer.code == 1
    assert "the changed fleet is `other`, not `single-gpu`" in answer.err


def test_fleet_with_several_clusters_needs_the_cluster_option(rehearse: Rehearse) -> None:
    for words in ([], ["--cluster", "moon"]):
        answer = rehearse(str(VALUES / "three-tiers"), *words)
        assert answer.code == 2
        assert "main" in answer.err


def test_unknown_service_has_the_nearest_name_as_fix(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--service", "lama-8b")
    assert answer.code == 2
    assert "did you mean `llama-8b`?" in answer.err


@pytest.mark.parametrize("option", ["--seconds=0", "--format=yaml", "--image=ray", "--image=host:5000/ray"])
def test_wrong_option_values_are_wrong_usage(rehearse: Rehearse, fleet: Callable[..., str], option: str) -> None:
    assert rehearse(fleet(), option).code == 2


def test_missing_kubectl_has_advice(
    rehearse: Rehearse, fleet: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL", "/nowhere/kubectl")
    answer = rehearse(fleet())
    assert answer.code == 3
    assert "make setup" in answer.err


@pytest.mark.usefixtures("nowhere")
def test_unreachable_cluster_is_named_by_server_and_context(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet())
    assert answer.code == 3
    assert "https://127.0.0.1:1 (context there) does not answer" in answer.err
    error = json.loads(rehearse(fleet(), "--format", "json").out)
    assert error["missing"].startswith("https://127.0.0.1:1")
    assert error["fixes"][0]["command"].startswith("kubectl ")


@pytest.mark.usefixtures("nowhere")
def test_clean_of_an_unreachable_cluster_is_an_error(rehearse: Rehearse) -> None:
    answer = rehearse("--clean", "--format", "markdown")
    assert answer.code == 3
    assert "https://127.0.0.1:1 (context there) does not answer" in answer.err
