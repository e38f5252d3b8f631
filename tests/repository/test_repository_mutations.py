"""ci/mutate.py: which lines it chooses, what it makes of them, and which tests it runs."""

import ast
import json
import random
from pathlib import Path

import pytest

from ci import mutate
from ci.mutate import Mutation, Place

ROOT = Path(__file__).resolve().parent.parent.parent
PLANNER = '''"""Divides GPUs by models, and returns the rest."""


def share(gpus: int, models: int) -> int:
    """Return gpus / models."""
    if gpus > models:
        raise ValueError("more gpus and fewer models")
    found.append(models)
    return gpus * models
'''
TEMPLATE = """{{- /* a line and another line */}}
{{- if .enabled }}
replicas: {{ int .replicas }}
name: gateway
{{- end }}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "python/src/rayhelm/planner/share.py": PLANNER,
        "charts/gateway/templates/a.yaml": TEMPLATE,
        "charts/gateway/templates/b.yaml": "same: line in two files\n",
        "charts/tenant/templates/b.yaml": "same: line in two files\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_mutations_change_only_lines_that_do_something(tree: Path) -> None:
    chosen = mutate.choose([tree])
    assert {each.line for each in chosen if each.kind == "planner"} == {
        "if gpus > models:",
        "found.append(models)",
        "return gpus * models",
    }
    assert {each.line for each in chosen if each.kind == "template"} == {
        "{{- if .enabled }}",
        "replicas: {{ int .replicas }}",
        "name: gateway",
    }


def test_mutations_are_the_same_in_trees_with_other_paths(tree: Path) -> None:
    first = mutate.choose([tree])
    (tree / "python/src/rayhelm/planner/deep").mkdir()
    (tree / "python/src/rayhelm/planner/share.py").rename(tree / "python/src/rayhelm/planner/deep/divide.py")
    assert mutate.choose([tree]) == first


def test_mutation_of_the_planner_is_still_python(tree: Path) -> None:
    for mutation in mutate.choose([tree]):
        place = mutate.places(tree, mutation.kind)[mutation.line]
        if mutation.kind == "planner":
            assert ast.dump(ast.parse(mutate.with_fault(mutation, place))) != ast.dump(ast.parse(PLANNER))


@pytest.mark.parametrize("line", ["a: and b", "{{- end }}", '{{- fail "a and b" }}', "{{- $a := .b }}"])
def test_mutation_of_a_template_is_not_one_of_prose_or_blocks(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{line}\n")
    found = mutate.mutated("template", line, random.Random(1), [Place(path, 0)])
    assert found in (None, Mutation("template", "a: and b", ""))


def test_committed_mutations_are_ten_of_a_kind_and_have_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [Mutation(**each) for each in json.loads(mutate.LINES.read_text())["lines"]]
    assert [each.kind for each in lines] == ["template"] * 10 + ["planner"] * 10
    for kind in mutate.SOURCES:
        for path in mutate.source_files(ROOT, kind):
            assert mutate.covering_tests(ROOT, kind, path), path
