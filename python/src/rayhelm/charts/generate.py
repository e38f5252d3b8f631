"""Writes, or proves fresh, everything in a chart that follows from its values model.

    python -m rayhelm.charts.generate [--check]
"""

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from rayhelm.charts.docs import readme_table, values_yaml
from rayhelm.charts.helm import charts_dir
from rayhelm.charts.schema import values_schema
from rayhelm.charts.shape import default_of, entry_models
from rayhelm.values.ray_service import RayServiceValues

__all__ = ["CHARTS", "generated", "stale"]

CHARTS: dict[str, type[BaseModel]] = {"ray-service": RayServiceValues}
"""A chart and the model of its values; another chart is one more line."""

BEGIN, END = "<!-- values: generated -->\n", "<!-- /values -->\n"


def generated(chart: str) -> dict[Path, str]:
    """Path in the charts folder, and what has to stand there."""
    model, folder = CHARTS[chart], Path(chart)
    readme = folder / "README.md"
    return {
        folder / "values.yaml": values_yaml(model),
        folder / "values.schema.json": json.dumps(values_schema(model, chart), indent=1, ensure_ascii=False) + "\n",
        folder / "templates/_defaults.tpl": _defaults(chart, model),
        readme: _with_table((charts_dir() / readme).read_text(), readme_table(model)),
    }


def stale(chart: str) -> list[Path]:
    """Files that are not what the model says."""
    root = charts_dir()
    return [
        path
        for path, text in generated(chart).items()
        if not (root / path).is_file() or (root / path).read_text() != text
    ]


def _defaults(chart: str, model: type[BaseModel]) -> str:
    """Defaults of the entries as one JSON object by model: `_values.tpl` completes what people wrote with them."""
    defaults = {name: default_of(entry) for name, entry in entry_models(model).items()}
    text = json.dumps(defaults, indent=1, ensure_ascii=False)
    comment = "{{- /* Generated from the values model. Do not edit. */ -}}"
    return f'{comment}\n{{{{- define "{chart}.defaults" -}}}}\n{text}\n{{{{- end }}}}\n'


def _with_table(readme: str, table: str) -> str:
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(arguments: list[str]) -> int:
    root = charts_dir()
    for chart in CHARTS:
        for path in stale(chart):
            if "--check" in arguments:
                print(f"stale: {path}: run `make generate`")
                continue
            (root / path).write_text(generated(chart)[path])
            print(f"wrote {path}")
    return 1 if "--check" in arguments and any(stale(chart) for chart in CHARTS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
