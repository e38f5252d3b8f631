"""Write the generated files of the charts, or check that they are current: ci/chart_files.py [--check]"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

from rayhelm.deploy.charts.argocd import build_health_config, load_allowed_kinds
from rayhelm.deploy.charts.docs import readme_table, values_yaml
from rayhelm.deploy.charts.gpus import counters, mig_layouts
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.charts.models import CHARTS
from rayhelm.deploy.charts.rules import rules
from rayhelm.deploy.charts.schema import values_schema
from rayhelm.deploy.charts.shape import default_of, entry_paths
from rayhelm.deploy.network import load_chart_flows
from rayhelm.deploy.network.table import format_flows_table
from rayhelm.deploy.values.ray_service.engine import list_refused_arguments
from rayhelm.facts.scaling import as_chart_data
from rayhelm.facts.tasks import gateway_data, ray_service_data
from rayhelm.observe.chart_queries import as_gateway_queries, as_platform_queries
from rayhelm.observe.rules.chart_data import as_rules_data
from rayhelm.runtime import bucket_download, log_relay

__all__ = ["BEGIN", "generated", "smallest_values", "stale"]

DATA: dict[tuple[str, str], Callable[[], object]] = {
    ("argocd", "kinds"): load_allowed_kinds,
    ("gateway", "scaling-queries"): as_gateway_queries,
    ("gateway", "tasks"): gateway_data,
    ("platform", "counters"): counters,
    ("platform", "mig"): mig_layouts,
    ("platform", "metric-catalog"): as_chart_data,
    ("platform", "prometheus-rules"): as_rules_data,
    ("platform", "scaling-queries"): as_platform_queries,
    ("ray-service", "engine-arguments"): list_refused_arguments,
    ("ray-service", "tasks"): ray_service_data,
}
"""Data of the catalog for templates, by chart and name of the JSON file."""

BEGIN = "<!-- values: generated -->\n"
"""Line of a README before the table of all values."""


def generated(chart: str) -> dict[Path, str]:
    """Return the text of each generated file by its path."""
    model, folder = CHARTS[chart], Path(chart)
    readme = folder / "README.md"
    return {
        folder / "values.yaml": values_yaml(model, chart, smallest_values(chart)),
        folder / "values.schema.json": _format_json(values_schema(model, chart)),
        folder / "files/defaults.json": _format_json(_list_defaults(model)),
        folder / "files/rules.json": _format_json(_list_rules(chart)),
        **_copy_shared_templates(chart),
        readme: _update_readme(chart, (charts_dir() / readme).read_text()),
        **{folder / f"files/{name}.json": _format_json(data()) for (of, name), data in DATA.items() if of == chart},
        **(_copy_policies(folder) if chart == "platform" else {}),
        **(_copy_programs(folder) if chart == "ray-service" else {}),
        **({folder / "files/argocd-cm.yaml": build_health_config()} if chart == "argocd" else {}),
    }


def smallest_values(chart: str) -> str:
    """Return the example of the README, with which values.yaml begins."""
    _, _, rest = (charts_dir() / chart / "README.md").read_text().partition("## The smallest values\n\n```yaml\n")
    return rest.partition("```")[0]


def stale(chart: str) -> list[Path]:
    """Return the generated files whose content is not current."""
    root = charts_dir()
    return [
        path
        for path, text in generated(chart).items()
        if not (root / path).is_file() or (root / path).read_text() != text
    ]


def _copy_shared_templates(chart: str) -> dict[Path, str]:
    """Return copies of the templates that all charts share, with the chart's own template names. charts/lib/README.md
    has the reason."""
    comment = "{{- /* Generated from charts/lib/%s by `make generate`. Do not edit. */ -}}\n"
    return {
        Path(chart, f"templates/lib/_{file.name}"): comment % file.name
        + file.read_text().replace('"lib.', f'"{chart}.')
        for file in sorted((charts_dir() / "lib").glob("*.tpl"))
    }


def _format_json(data: object) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _list_defaults(model: type[BaseModel]) -> list[dict[str, object]]:
    """Return the defaults of the entries of each map, with which templates/lib/_values.tpl completes the entries."""
    return [
        {"path": path, "defaults": defaults} for path, entry in entry_paths(model) if (defaults := default_of(entry))
    ]


def _list_rules(chart: str) -> dict[str, object]:
    """Return the messages of the rules by id; the templates in `validate/` have only the conditions."""
    fields = {"key", "message", "fix", "since", "until"}
    said = {name: rule for name, rule in rules(chart).items() if "chart" in rule.layers}
    return {
        name: {**rule.model_dump(include=fields), **({"ends": True} if rule.ends else {})}
        for name, rule in said.items()
    }


def _copy_programs(folder: Path) -> dict[Path, str]:
    """Copy the programs of containers: images with Ray do not have to contain rayhelm."""
    programs = [Path(bucket_download.__file__), Path(log_relay.__file__)]
    return {folder / "files" / program.name: program.read_text() for program in programs}


def _copy_policies(folder: Path) -> dict[Path, str]:
    """Return copies of the policies: `.Files.Get` of a file outside the chart returns an empty string."""
    files = sorted((charts_dir().parent / "policies").glob("*/policy.yaml"))
    return {folder / f"files/policies/{file.parent.name}.yaml": file.read_text() for file in files}


def _update_readme(chart: str, text: str) -> str:
    """Return the README with the generated tables between their marks."""
    tables = {"values": readme_table(CHARTS[chart])}
    if chart in load_chart_flows():
        tables["flows"] = format_flows_table(chart)
    for name, table in tables.items():
        begin, end = f"<!-- {name}: generated -->\n", f"<!-- /{name} -->\n"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


def main(arguments: list[str]) -> int:
    root = charts_dir()
    for chart in CHARTS:
        for path in stale(chart):
            if "--check" in arguments:
                print(f"stale: {path}: run `make generate`")
                continue
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(generated(chart)[path])
            print(f"wrote {path}")
    return 1 if "--check" in arguments and any(stale(chart) for chart in CHARTS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
