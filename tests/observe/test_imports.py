"""Queries are cheap to import, and no other module and no chart template has PromQL."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayhelm.observe
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.facts.metrics import load_exporters, load_metrics

FOLDER = Path(rayhelm.observe.__file__).parent
QUERIES = sorted((FOLDER / "queries").glob("*.py"))
OTHERS = sorted(set(FOLDER.rglob("*.py")) - set(QUERIES))
ALLOWED = ("rayhelm.facts", "rayhelm.facts.closed", "rayhelm.errors", "rayhelm.facts.versions", "rayhelm.observe")
NAMES_OF_METRICS = {"check.py", "promql.py", "variables.py"}
"""The check names a metric in each fix, the parser names functions of PromQL, and a variable of a dashboard reads the
label of a metric."""
TEMPLATES = sorted(path for path in charts_dir().glob("*/templates/**/*") if path.is_file())
PROMQL = re.compile(r"\brate\(|histogram_quantile|\b(?:sum|max|min|avg|count) by \(")


def imported(module: Path) -> Iterator[str]:
    """Modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def texts(module: Path) -> Iterator[str]:
    """Texts of a file that are not docstrings."""
    tree = ast.parse(module.read_text())
    docstrings = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


@pytest.mark.parametrize("module", [*QUERIES, FOLDER / "check.py"], ids=lambda path: path.name)
def test_queries_and_check_import_only_the_catalog(module: Path) -> None:
    ours = {name for name in imported(module) if name.partition(".")[0] == "rayhelm"}
    assert {name for name in ours if not name.startswith(ALLOWED)} == set()


def test_import_of_queries_and_check_loads_no_parser_and_no_ray() -> None:
    code = (
        "import sys, rayhelm.observe.check, rayhelm.observe.queries as queries; queries.all_queries();"
        "print([name for name in ('promql_parser', 'ray', 'grafanalib', 'httpx', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module", [each for each in OTHERS if each.name not in NAMES_OF_METRICS], ids=lambda path: path.name
)
def test_module_outside_queries_has_no_promql(module: Path) -> None:
    written = [text for text in texts(module) if PROMQL.search(text)]
    named = [text for text in texts(module) if text in load_metrics()]
    assert written + named == []


def promql_of(template: str) -> list[str]:
    """PromQL of a template, and the metrics that it names. `up` is also a word, and templates name the series that the
    values become."""
    exported = {
        name for exporter in load_exporters().values() if exporter.scraped != "rules" for name in exporter.metrics
    } - {"up"}
    words = re.findall(r"[A-Za-z_:][\w:]*", template)
    return PROMQL.findall(template) + sorted(exported.intersection(word.removesuffix("_bucket") for word in words))


@pytest.mark.parametrize("chart", sorted({path.relative_to(charts_dir()).parts[0] for path in TEMPLATES}))
def test_templates_of_a_chart_have_no_promql(chart: str) -> None:
    ours = [path for path in TEMPLATES if path.is_relative_to(charts_dir() / chart)]
    assert {path.name: found for path in ours if (found := promql_of(path.read_text()))} == {}


@pytest.mark.parametrize(
    "template",
    [
        "{{- else if eq .rule.aggregate `Quantile` }}(histogram_quantile({{ .quantile }}, {{ .buckets }}))",
        "sum by ({{ .by }}) ({{ $series }})",
        '{{- $rate := printf "rate(%s[%ds])" $series $seconds }}',
        'sum(haproxy_backend_current_sessions{namespace="{{ .Release.Namespace }}"})',
    ],
)
def test_promql_of_a_template_is_found(template: str) -> None:
    assert promql_of(template) != []
