"""Data flows one way: values of charts are made from a plan, and only the edge knows the fleet file's lines."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "src" / "rayhelm"
BEFORE_THE_PLAN = {"Fleet", "LoadedFleet", "Document", "Catalog"}
"""Types of what a plan is made from. It carries what later stages need of them."""
READERS = ("fleet", "cli")
"""Packages that know the document of a fleet file."""
MANIFESTS = "check/lint/ray_service"
"""Its documents are those of manifests."""


def parse(folder: str = "") -> Iterator[tuple[str, ast.Module]]:
    for file in sorted((PACKAGE / folder).rglob("*.py")):
        yield file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def list_functions_that_take(types: set[str], folder: str) -> Iterator[str]:
    for file, tree in parse(folder):
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            given = [*node.args.args, *node.args.kwonlyargs]
            if any(each.annotation and types & names_in(each.annotation) for each in given):
                yield f"{file}:{node.name}"


def names_in(annotation: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}


def test_deploy_takes_a_plan_and_nothing_before_it() -> None:
    assert [*list_functions_that_take(BEFORE_THE_PLAN, "deploy")] == []
    assert len([*list_functions_that_take({"Plan"}, "deploy")]) > 50


def test_what_was_read_ends_at_the_plan() -> None:
    """Later stages find it in `plan.source`."""
    taken = {"fleet", "planner", "cli"}
    others = [folder.name for folder in PACKAGE.iterdir() if folder.is_dir() and folder.name not in taken]
    assert "observe" in others
    assert [each for folder in others for each in list_functions_that_take({"LoadedFleet"}, folder)] == []
    assert [*list_functions_that_take({"LoadedFleet"}, "planner")] == [
        "planner/added_capacity.py:plan_with_more_capacity",
        "planner/planner.py:plan_fleet",
        "planner/resolved.py:resolve",
        "planner/what_if.py:parse_changes",
        "planner/what_if.py:plan_changed",
    ]


def test_documents_of_fleet_files_are_read_by_fleet_and_commands_only() -> None:
    found = {
        file
        for file, tree in parse()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "document" and not file.startswith(MANIFESTS)
    }
    assert "fleet/load.py" in found
    assert [file for file in sorted(found) if not file.startswith(READERS)] == []
