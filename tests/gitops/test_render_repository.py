"""`rayhelm render` into a Git work tree: paths that Argo CD would not find, and two fleets in one folder."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gitops.test_render_argocd import FLEETS, GITOPS
from shared.command import Answer, run

URL = "https://git.example.com/ai/fleets.git"
Render = Callable[..., Answer]


@pytest.fixture
def render(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Render:
    return lambda *arguments: run(capsys, monkeypatch, "render", *map(str, arguments))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with a chart, and with the fleet in the folder that its Applications read."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    set_remote(tmp_path, "git@git.example.com:ai/fleets.git")
    (tmp_path / "charts/argocd").mkdir(parents=True)
    (tmp_path / "charts/argocd/Chart.yaml").write_text("name: argocd\n")
    write_fleet(tmp_path / "acme/fleet.yaml")
    return tmp_path


def set_remote(tree: Path, url: str) -> None:
    subprocess.run(["git", "-C", str(tree), "config", "remote.origin.url", url], check=True)


def write_fleet(path: Path, **changes: object) -> None:
    path.parent.mkdir(exist_ok=True)
    fleet = yaml.safe_load((FLEETS / "single-gpu/fleet.yaml").read_text())
    path.write_text(yaml.safe_dump({**fleet, "gitops": GITOPS, **changes}, sort_keys=False))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    "url", [URL, "git@git.example.com:ai/fleets.git", "ssh://git@git.example.com:2222/ai/fleets", f"{URL}/"]
)
def test_render_finds_its_repository_by_each_form_of_the_url(tree: Path, render: Render, url: str) -> None:
    set_remote(tree, url)
    assert render(tree / "acme").code == 0
    (tree / "acme/fleet.yaml").rename(tree / "fleet.yaml")
    assert "gitops.repository.path: it is `acme`" in render(tree / "fleet.yaml").err


def test_path_that_is_not_the_folder_is_refused_and_nothing_is_written(tree: Path, render: Render) -> None:
    (tree / "acme").rename(tree / "moved")
    answer = render(tree / "moved")
    assert answer.code == 1
    assert "it is `acme`, and the files are written to `moved` of that repository" in answer.err
    assert "path: moved" in answer.err
    assert names(tree / "moved") == {"fleet.yaml"}


def test_folder_without_charts_is_refused_and_nothing_is_written(tree: Path, render: Render) -> None:
    shutil.rmtree(tree / "charts")
    answer = render(tree / "acme")
    assert answer.code == 1
    assert "folder `charts` of that repository has no chart `argocd`" in answer.err
    assert f'cp -r "$(rayhelm charts)" {tree}/charts' in answer.err
    assert names(tree / "acme") == {"fleet.yaml"}


def test_preview_in_another_folder_is_written_with_a_warning(tree: Path, render: Render) -> None:
    answer = render(tree / "acme", "-o", tree / "preview")
    assert answer.code == 0
    assert "the files are written to `preview` of that repository" in answer.err
    assert (tree / "preview/plan.md").is_file()


def test_work_tree_of_another_repository_is_not_judged(tree: Path, render: Render) -> None:
    set_remote(tree, "https://git.example.com/ai/other.git")
    (tree / "acme").rename(tree / "moved")
    assert render(tree / "moved").code == 0


def test_second_file_of_the_same_fleet_name_is_refused(tree: Path, render: Render) -> None:
    assert render(tree / "acme").code == 0
    write_fleet(tree / "acme/copy.yaml", tenants={})
    before = (tree / "acme/plan.md").read_text()
    answer = render(tree / "acme/copy.yaml")
    assert answer.code == 1
    assert f"the folder has the files of {tree}/acme/fleet.yaml, and this is {tree}/acme/copy.yaml" in answer.err
    assert (tree / "acme/plan.md").read_text() == before
    (tree / "acme/fleet.yaml").unlink()
    assert render(tree / "acme/copy.yaml").code == 0


def test_folder_in_place_of_a_file_is_refused_before_anything_is_written(tree: Path, render: Render) -> None:
    (tree / "acme/network.md").mkdir()
    (tree / "acme/gateway").write_text("")
    answer = render(tree / "acme")
    assert answer.code == 1
    assert "network.md: cannot be written: a folder has the name of a file" in answer.err
    assert "gateway: cannot be written: a file has the name of a folder" in answer.err
    assert names(tree / "acme") == {"fleet.yaml", "network.md", "gateway"}
