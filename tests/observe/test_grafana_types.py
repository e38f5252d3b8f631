"""TypeScript compares the dashboards with the types of Grafana 11.6 and 12.4."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ci.fetch_npm import Package, packages
from rayhelm.deploy.charts.helm import charts_dir

HERE = Path(__file__).parent
FILES = sorted((charts_dir().parent / "dashboards").glob("*.json"))
PANELS = {
    "timeseries": "TimeSeries",
    "stat": "Stat",
    "gauge": "Gauge",
    "bargauge": "BarGauge",
    "heatmap": "Heatmap",
    "statetimeline": "StateTimeline",
    "table": "Table",
}
GIVEN = {
    "11.6.0": "export type Given<T> = T;",
    # Panels of 11.6 lack options that came later; Grafana adds their defaults.
    "12.4.11": "export type Given<T> = Partial<T>;",
}
"""Whether every required option has to be there."""


@cache
def package(name: str, version: str = "") -> Path:
    """Folder of a package."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed")
    (found,) = [each for each in packages() if each.name == name and version in ("", each.version)]
    if not found.folder.is_dir():
        pytest.skip("no types of Grafana: `make tools` fetches them")
    return found.folder


def compile_against(version: str, folder: Path, dashboards: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Let TypeScript check dashboards against one version of Grafana's types."""
    compiler, schema = package("typescript") / "lib/tsc.js", package("@grafana/schema", version)
    index = next(path for path in (schema / "dist/types/index.d.ts", schema / "dist/esm/index.d.ts") if path.is_file())
    paths = {"@grafana/schema": [str(index)]}
    for name, prefix in PANELS.items():
        path = schema / f"dist/esm/raw/composable/{name}/panelcfg/x/{prefix}PanelCfg_types.gen.d.ts"
        paths[f"panelcfg/{name}"] = [str(path)]
    shutil.copy(HERE / "grafana_types/check.ts", folder)
    (folder / "given.ts").write_text(GIVEN[version] + "\n")
    for name, dashboard in dashboards.items():
        text = f"export const dashboard: Dashboard = {json.dumps(dashboard)};\n"
        (folder / f"{name}.ts").write_text("import type { Dashboard } from './check';\n" + text)
    options = {
        "strict": True, "noEmit": True, "skipLibCheck": True, "target": "es2022", "module": "esnext",
        "moduleResolution": "bundler", "types": [], "paths": paths,
    }  # fmt: skip
    config = {"compilerOptions": options, "files": [f"{name}.ts" for name in dashboards]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    return subprocess.run(
        ["node", str(compiler), "-p", str(folder)], capture_output=True, text=True, check=False, cwd=folder
    )


@pytest.mark.parametrize("version", GIVEN)
def test_dashboards_have_the_types_of_grafana(version: str, tmp_path: Path) -> None:
    ended = compile_against(version, tmp_path, {file.stem: json.loads(file.read_text()) for file in FILES})
    assert ended.returncode == 0, ended.stdout[:4000]


@pytest.mark.parametrize("version", GIVEN)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("gridPos",), "nonsense"),
        (("options", "colorMode"), "sideways"),
        (("options", "unknownOption"), True),
        (("fieldConfig", "defaults", "thresholds", "steps"), [{"color": "red", "value": "high"}]),
        (("fieldConfig", "defaults", "unit"), 7),
        (("targets", 0, "expr"), None),
    ],
)
def test_types_of_grafana_refuse_a_wrong_value(version: str, path: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    changed = json.loads((charts_dir().parent / "dashboards/service.json").read_text())
    panel = node = next(panel for panel in changed["panels"] if panel["type"] == "stat")
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    # The rest of the dashboard is known to be right, and a short file gives short messages.
    ended = compile_against(version, tmp_path, {"changed": {**changed, "panels": [panel]}})
    assert ended.returncode != 0
    assert "changed.ts" in ended.stdout


def test_packages_have_a_checksum_and_the_versions_that_are_tested() -> None:
    found = packages()
    assert all(isinstance(each, Package) and each.integrity.startswith("sha512-") for each in found)
    assert {each.version for each in found if each.name == "@grafana/schema"} == set(GIVEN)
