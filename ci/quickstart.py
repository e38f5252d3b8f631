"""Write the example values of chart quickstart from fleet files, or check that they are current.

python ci/quickstart.py [--check]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import dump_yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts/quickstart"
HEADER = "# Generated from {fleet}. Do not edit: `make generate` writes it.\n"
BEGIN, END = "<!-- example: generated -->\n```yaml\n", "```\n<!-- end of the example -->\n"
PAGE, README = "llama-8b", "qwen3-4b"
"""Models of the examples: of the chart's page, and of the three commands of the README."""
FLEETS = {PAGE: ROOT / "values/single-gpu/fleet.yaml", README: ROOT / "ci/quickstart.yaml"}


def main(arguments: Sequence[str]) -> int:
    """Write the examples and the copy in the chart's README, or with --check return 1 if one is not current."""
    examples = {model: yaml.safe_dump(_build_values(FLEETS[model]), sort_keys=False, width=120) for model in FLEETS}
    page = (CHART / "README.md").read_text()
    before, rest = page.split(BEGIN)
    texts = {CHART / "README.md": before + BEGIN + examples[PAGE] + END + rest.split(END)[1]}
    for model, text in examples.items():
        header = HEADER.format(fleet=FLEETS[model].relative_to(ROOT))
        texts[CHART / f"examples/{model}.yaml"] = header + text
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    if "--check" not in arguments:
        for path in stale:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path])
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not current: make generate", file=sys.stderr)
    return 1 if stale else 0


def _build_values(fleet: Path) -> dict[str, Any]:
    """Return the values of both releases, for one namespace and a cluster without chart platform."""
    rendered = {release.chart: release for release in render_fleet(fleet).releases}
    service, gateway = (_to_dict(rendered[chart]) for chart in ("ray-service", "gateway"))
    service["nameOverride"], gateway["nameOverride"] = rendered["ray-service"].name, "gateway"
    # The priority classes are in chart platform.
    for part in (service["head"], *service["workerGroups"].values(), gateway):
        del part["priorityClassName"]
    # The chart reads the address of the API server from the cluster.
    del service["networkPolicy"]["apiServer"]
    # A peer with labels alone is in the namespace of the release.
    for peer in service["networkPolicy"]["allowedGateways"].values():
        del peer["namespace"]
    for model in gateway["models"].values():
        for version in model["versions"].values():
            for endpoint in version["endpoints"].values():
                del endpoint["namespace"]
    return {
        "ray-service": {key: value for key, value in service.items() if value != {}},
        "gateway": gateway,
    }


def _to_dict(release: Release) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(dump_yaml(release.values, release.about))
    return values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
