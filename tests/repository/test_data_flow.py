"""Data flows one way: values of charts are made from a plan, and only the edge knows the fleet file's lines."""

import ast
from collections.abc import Iterator
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "python" / "src" / "rayhelm" / "deploy"
BEFORE_THE_PLAN = {"Fleet", "LoadedFleet", "Document", "Catalog"}


def list_functions_that_take(types: set[str]) -> Iterator[str]:
    for file in sorted(DEPLOY.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            given = [*node.args.args, *node.args.kwonlyargs]
            if any(each.annotation and types & names_in(each.annotation) for each in given):
                yield f"{file.relative_to(DEPLOY)}:{node.name}"


def names_in(annotation: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}


def test_deploy_takes_a_plan_and_nothing_before_it() -> None:
    assert [*list_functions_that_take(BEFORE_THE_PLAN)] == []
    assert len([*list_functions_that_take({"Plan"})]) > 50
