"""`import rayhelm`: the functions, their errors, and the examples of the documentation."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rayhelm
from rayhelm.check.diff.report import DiffReport
from rayhelm.planner.plan import Plan

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "values/single-gpu/fleet.yaml"
PAGE = (ROOT / "docs/tasks/use-it-from-python.md").read_text()


@pytest.mark.parametrize("path", [FLEET, str(FLEET), FLEET.parent], ids=["path", "text", "folder"])
def test_plan_takes_a_file_or_its_folder(path: Any) -> None:
    plan = rayhelm.plan(path)
    assert isinstance(plan, Plan)
    assert list(plan.models) == ["llama-8b"]


def test_examples_of_the_fleet_reference_are_one_fleet_that_renders(tmp_path: Path) -> None:
    page = (ROOT / "docs/reference/fleet.md").read_text()
    file = tmp_path / "fleet.yaml"
    file.write_text("".join(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)))
    assert set(rayhelm.plan(file).models) == {"qwen3-32b"}
    assert re.findall("^### (.*)", page, re.MULTILINE)[:2] == ["pools", "models"]
    assert rayhelm.render(file)


def test_render_returns_the_committed_files() -> None:
    files = rayhelm.render(FLEET)
    assert files
    assert {name: (FLEET.parent / name).read_text() for name in files} == files


def test_render_with_manifests_has_the_objects() -> None:
    objects = rayhelm.render(FLEET, manifests=True).keys() - rayhelm.render(FLEET).keys()
    assert objects
    assert all(name.startswith("manifests/") for name in objects)


def test_diff_of_a_fleet_with_itself_changes_nothing() -> None:
    report = rayhelm.diff(FLEET, FLEET)
    assert isinstance(report, DiffReport)
    assert {release.effect for release in report.releases} <= {"nothing"}


@pytest.mark.parametrize("path", ["", " ", "fleet: a\nmodels: {}", "a\0b", 3, None, b"fleet.yaml"], ids=repr)
def test_argument_that_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(rayhelm.UsageError, match="is not a path: give the path of a fleet file"):
        rayhelm.plan(path)


def test_missing_file_and_empty_folder_have_different_messages(tmp_path: Path) -> None:
    with pytest.raises(rayhelm.FleetError, match="no such file") as missing:
        rayhelm.plan(tmp_path / "fleet.yaml")
    assert missing.value.problems[0].file == str(tmp_path / "fleet.yaml")
    with pytest.raises(rayhelm.FleetError, match=r"the folder has no `fleet\.yaml`"):
        rayhelm.plan(tmp_path)


def test_path_below_a_file_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "fleet").touch()
    with pytest.raises(rayhelm.FleetError, match="no such file"):
        rayhelm.plan(tmp_path / "fleet/fleet.yaml")


def test_path_that_no_file_can_have_is_not_made_readable() -> None:
    with pytest.raises(rayhelm.FleetError, match="cannot be read: File name too long") as caught:
        rayhelm.plan("a" * 5000)
    assert "name a fleet file" in caught.value.problems[0].fix_text


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        _ = rayhelm.plans


def test_import_alone_loads_nothing_else() -> None:
    code = (
        "import sys, rayhelm; print(sorted(name for name in sys.modules if name.startswith(('rayhelm.', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def example(tmp_path: Path) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Runs the example of the page below a heading, in a folder with the reference fleets."""
    shutil.copytree(ROOT / "values", tmp_path / "values")

    def run(heading: str) -> "subprocess.CompletedProcess[str]":
        (code,) = re.findall(rf"^## {heading}$.*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_example_of_plan_prints_each_model(example: Callable[[str], "subprocess.CompletedProcess[str]"]) -> None:
    done = example("Plan")
    assert done.stderr == ""
    assert re.fullmatch(r"(llama-\w+: \d+ x [\w-]+, [\d.]+ USD/h\n)+", done.stdout)


def test_example_of_render_writes_values_and_manifests(
    example: Callable[[str], "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    assert example("Render").stderr == ""
    written = (tmp_path / "rendered/ray-service/llama-8b.yaml").read_text()
    assert written == (FLEET.parent / "ray-service/llama-8b.yaml").read_text()
    assert (tmp_path / "rendered/manifests/ray-service/llama-8b.yaml").is_file()


@pytest.mark.parametrize(
    ("context", "output", "errors"),
    [
        ("4096", r"(?s).*ray-service/llama-8b: serve config .*", ""),
        ("0", "", r"(?s)edited\.yaml:16: models\.llama-8b\.context: .*\nfix: .*"),
    ],
    ids=["accepted", "refused"],
)
def test_example_of_diff_prints_effects_or_problems(
    example: Callable[[str], "subprocess.CompletedProcess[str]"], context: str, output: str, errors: str, tmp_path: Path
) -> None:
    (tmp_path / "edited.yaml").write_text(FLEET.read_text().replace("context: 8192", f"context: {context}"))
    done = example("Gate an edit")
    assert done.returncode == 0
    assert re.fullmatch(output, done.stdout)
    assert re.fullmatch(errors, done.stderr)
