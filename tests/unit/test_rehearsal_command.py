"""`rayhelm rehearse` before it has a cluster: what it wants, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from unit.command import Answer, run

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
    """A kubeconfig with a server that nobody listens on."""
    server = {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "there", "context": {"cluster": "gone", "user": "me"}}
    file = tmp_path / "kubeconfig"
    parts = {"clusters": [server], "contexts": [context], "users": [{"name": "me"}], "current-context": "there"}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
    monkeypatch.setenv("KUBECONFIG", str(file))


def test_a_fleet_is_wanted(rehearse: Rehearse) -> None:
    answer = rehearse()
    assert answer.code == 2
    assert "which fleet? rayhelm rehearse FLEET" in answer.err


def test_cleaning_takes_no_fleet(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--clean")
    assert answer.code == 2
    assert "--clean takes no fleet" in answer.err


def test_the_same_twice_is_nothing_to_rehearse(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    same = fleet("# The smallest fleet", "# Another comment of the smallest fleet", "new.yaml")
    answer = rehearse(fleet(), "--change", same)
    assert answer.code == 1
    assert "nothing to rehearse: both render the same values" in answer.err


def test_another_fleet_is_no_change_of_this_one(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--change", fleet("fleet: single-gpu", "fleet: other", "new.yaml"))
    assert answer.code == 1
    assert "another fleet: other, not single-gpu" in answer.err


def test_a_fleet_of_several_clusters_is_asked_for_one(rehearse: Rehearse) -> None:
    for words in ([], ["--cluster", "moon"]):
        answer = rehearse(str(VALUES / "three-tiers"), *words)
        assert answer.code == 1
        assert "main, edge" in answer.err
        assert "--cluster main" in answer.err


def test_an_unknown_service_gets_the_nearest_one(rehearse: Rehearse, fleet: Callable[..., str]) -> None:
    answer = rehearse(fleet(), "--service", "lama-8b")
    assert answer.code == 1
    assert "--service llama-8b" in answer.err


@pytest.mark.parametrize("option", ["--seconds=0", "--format=yaml", "--image=ray", "--image=host:5000/ray"])
def test_what_it_cannot_be_told_is_wrong_usage(rehearse: Rehearse, fleet: Callable[..., str], option: str) -> None:
    assert rehearse(fleet(), option).code == 2


def test_without_kubectl_it_says_how_to_get_one(
    rehearse: Rehearse, fleet: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL", "/nowhere/kubectl")
    answer = rehearse(fleet())
    assert answer.code == 3
    assert "make setup" in answer.err


@pytest.mark.usefixtures("nowhere")
def test_a_cluster_that_does_not_answer_is_told_by_server_and_context(
    rehearse: Rehearse, fleet: Callable[..., str]
) -> None:
    answer = rehearse(fleet())
    assert answer.code == 3
    assert "https://127.0.0.1:1 (context there) does not answer" in answer.err
    told = json.loads(rehearse(fleet(), "--format", "json").out)
    assert told["missing"].startswith("https://127.0.0.1:1")


@pytest.mark.usefixtures("nowhere")
def test_cleaning_where_nothing_answers_is_no_traceback(rehearse: Rehearse) -> None:
    answer = rehearse("--clean", "--format", "markdown")
    assert answer.code == 3
    assert "https://127.0.0.1:1 (context there) does not answer" in answer.err
