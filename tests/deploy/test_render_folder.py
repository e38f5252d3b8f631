"""The folder of `rayhelm render`: its manifest, what is removed from it, and what is never touched."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.command import Answer, run

VALUES = Path(__file__).parents[2] / "values"
MANIFEST = ".rayhelm-files.json"
Render = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the fleet `single-gpu`."""
    (tmp_path / "fleet.yaml").write_text((VALUES / "single-gpu" / "fleet.yaml").read_text())
    return tmp_path


@pytest.fixture
def render(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Render:
    return lambda *options: run(capsys, monkeypatch, "render", str(folder), *options)


def rename_model(folder: Path) -> None:
    fleet = folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("llama-8b", "llama"))


def rename_fleet(folder: Path) -> None:
    fleet = folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("fleet: single-gpu", "fleet: other"))


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


BASE = {"fleet.yaml", MANIFEST, "plan.md", "map.svg", "network.md", "platform/platform.yaml", "gateway/gateway.yaml"}


def test_render_lists_its_files_in_the_manifest(folder: Path, render: Render) -> None:
    assert render().code == 0
    first = (folder / MANIFEST).read_text()
    manifest = json.loads(first)
    assert set(manifest["files"]) == names(folder) - {"fleet.yaml", MANIFEST}
    assert (manifest["fleet"], manifest["source"]) == ("single-gpu", "fleet.yaml")
    assert str(folder) not in first
    assert render().code == 0
    assert (folder / MANIFEST).read_text() == first


def test_render_removes_files_of_a_removed_service(folder: Path, render: Render) -> None:
    assert render("--manifests").code == 0
    rename_model(folder)
    check = render("--check")
    assert check.code == 1
    assert "ray-service/llama-8b.yaml: is stale: the fleet no longer has it" in check.err
    assert (folder / "ray-service/llama-8b.yaml").exists()
    answer = render()
    assert answer.out.count("removed  ") == 2
    objects = {"manifests/platform/platform.yaml", "manifests/gateway/gateway.yaml"}
    assert names(folder) == BASE | objects | {"ray-service/llama.yaml"}
    assert "manifests: not updated" in answer.err
    assert not (folder / "manifests/ray-service").exists(), "no empty folder is left"
    assert render("--check").code == 0


def test_render_never_touches_foreign_files(folder: Path, render: Render) -> None:
    foreign = folder / "ray-service/mine.yaml"
    foreign.parent.mkdir()
    foreign.write_text("# Written by `rayhelm render fleet.yaml`; but not listed\n")
    (folder / "notes.md").write_text("mine")
    assert render().code == 0
    rename_model(folder)
    assert render().code == 0
    assert foreign.exists()
    assert (folder / "notes.md").read_text() == "mine"
    assert render("--check").code == 0


def test_render_keeps_an_edited_file_that_the_fleet_no_longer_has(folder: Path, render: Render) -> None:
    assert render().code == 0
    edited = folder / "ray-service/llama-8b.yaml"
    edited.write_text(edited.read_text() + "# by hand\n")
    rename_model(folder)
    answer = render()
    assert answer.code == 0
    assert f"kept     {edited}" in answer.out
    assert "the fleet no longer has it; kept" in answer.err
    assert edited.read_text().endswith("# by hand\n")
    check = render("--check")
    assert check.code == 1
    assert f"rm {edited}" in check.err
    edited.unlink()
    assert render().code == 0
    assert render("--check").code == 0
    assert "llama-8b" not in (folder / MANIFEST).read_text()


def test_render_copies_an_edited_file_before_it_overwrites_it(folder: Path, render: Render) -> None:
    assert render().code == 0
    edited = folder / "gateway/gateway.yaml"
    for text in ("first\n", "second\n"):
        edited.write_text(text)
        answer = render()
        assert answer.code == 0
        assert "gateway.yaml: was edited, and is overwritten" in answer.err
    copies = {path.read_text() for path in (folder / ".rayhelm-edited/gateway").iterdir()}
    assert copies == {"first\n", "second\n"}
    assert (folder / ".rayhelm-edited/.gitignore").read_text() == "*\n"
    assert "first" not in edited.read_text()


def test_render_copies_a_foreign_file_at_the_path_of_its_own(folder: Path, render: Render) -> None:
    (folder / "plan.md").write_text("# A plan of ours\n")
    assert "plan.md: was edited, and is overwritten" in render().err
    (copy,) = (folder / ".rayhelm-edited").glob("plan.md.*")
    assert copy.read_text() == "# A plan of ours\n"


def test_render_removes_old_files_of_a_renamed_fleet(folder: Path, render: Render) -> None:
    assert render().code == 0
    rename_fleet(folder)
    rename_model(folder)
    assert "removed  " in render().out
    assert names(folder) == BASE | {"ray-service/llama.yaml"}
    assert json.loads((folder / MANIFEST).read_text())["fleet"] == "other"


def test_render_refuses_the_folder_of_another_fleet(
    folder: Path, render: Render, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = folder / "out"
    assert render("-o", str(out)).code == 0
    before = names(folder)
    rename_fleet(folder)
    answer = render("-o", str(out))
    assert answer.code == 1
    assert "the folder has the files of fleet `single-gpu`, and this is fleet `other`" in answer.err
    assert names(folder) == before


def test_render_keeps_files_of_a_render_without_a_manifest(folder: Path, render: Render) -> None:
    assert render().code == 0
    (folder / MANIFEST).unlink()
    rename_model(folder)
    old = folder / "ray-service/llama-8b.yaml"
    assert f"{old}: is stale" in render("--check").err
    answer = render()
    assert f"kept     {old}" in answer.out
    assert not (folder / ".rayhelm-edited").exists(), "the header says that render wrote the others"
    assert render("--check").code == 0, "from now on the manifest decides"
    assert old.exists()


def test_check_fails_when_the_manifest_is_missing(folder: Path, render: Render) -> None:
    assert render().code == 0
    (folder / MANIFEST).unlink()
    answer = render("--check")
    assert answer.code == 1
    assert f"{folder / MANIFEST} is stale" in answer.err.replace(": is", " is")


@pytest.mark.parametrize(
    "name", ["ray-service", "tenant", "plan.md", MANIFEST, ".rayhelm-edited", ".rayhelm-edited/ray-service",
     "gateway/gateway.yaml"],
)  # fmt: skip
def test_render_refuses_links_in_its_folder(folder: Path, render: Render, tmp_path: Path, name: str) -> None:
    assert render().code == 0
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(elsewhere)
    path.symlink_to(elsewhere)
    rename_model(folder)
    for options in ((), ("--check",)):
        answer = render(*options)
        assert answer.code == 1
        assert f"{path}: is a link, and nothing is written through links" in answer.err
    assert (folder / "ray-service/llama-8b.yaml").exists(), "nothing was removed or written"


def test_render_copies_nothing_from_behind_a_link(folder: Path, render: Render, tmp_path: Path) -> None:
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("s3cret")
    (folder / "plan.md").symlink_to(secret)
    assert render().code == 1
    assert not (folder / ".rayhelm-edited").exists()
    assert secret.read_text() == "s3cret"


def test_render_writes_into_a_folder_that_is_a_link_of_the_user(folder: Path, render: Render, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    assert render("-o", str(tmp_path / "out")).code == 0
    assert (tmp_path / "real/plan.md").exists()


def test_temporary_file_of_render_is_not_written_through_a_link(folder: Path, render: Render, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("own")
    (folder / f".plan.md.{os.getpid()}").symlink_to(outside)
    assert render().code == 0
    assert outside.read_text() == "own"


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< HEAD\n",
        "[]",
        '{"files": []}',
        '{"files": {"a": 1}}',
        '{"fleet": "single-gpu", "files": {"../fleet.yaml": "0"}}',
        '{"fleet": "single-gpu", "files": {"/etc/passwd": "0"}}',
    ],
)
def test_render_refuses_a_broken_manifest(folder: Path, render: Render, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    answer = render()
    assert answer.code == 1
    assert f"{folder / MANIFEST} is not a list of files that rayhelm wrote" in answer.err.replace(": is", " is")
    assert "Traceback" not in answer.err
    assert names(folder) == {"fleet.yaml", MANIFEST}


def test_render_as_json_lists_each_file(folder: Path, render: Render) -> None:
    pages = ("plan.md", "map.svg", "network.md")
    releases = ("platform/platform.yaml", "ray-service/llama-8b.yaml", "gateway/gateway.yaml")
    files = [str(folder / name) for name in (*pages, *releases)]
    checked = render("--check", "--format", "json")
    assert checked.code == 1
    assert json.loads(checked.out)["stale"] == files
    assert [problem["file"] for problem in json.loads(checked.out)["problems"]] == files
    first = json.loads(render("--format", "json").out)
    assert (first["written"], first["current"], first["stale"], first["kept"]) == (files, [], [], [])
    assert "no `revision`" in first["warnings"][0]
    rename_model(folder)
    assert json.loads(render("--format", "json").out)["removed"] == files[4:5]


def test_render_reports_a_folder_without_write_permission(
    folder: Path, render: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the file system cannot refuse it here."""

    def refuse(path: Path, content: bytes) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    answer = render("-o", str(folder / "out"))
    assert answer.code == 1
    assert "plan.md: cannot be written: Permission denied" in answer.err.replace(".md cannot", ".md: cannot")
    assert "Traceback" not in answer.err


def test_reference_fleets_have_a_current_manifest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for fleet in sorted(VALUES.glob("*/fleet.yaml")):
        answer = run(capsys, monkeypatch, "render", str(fleet.parent), "--check")
        assert (answer.code, answer.err.count("is stale")) == (0, 0), answer.err
