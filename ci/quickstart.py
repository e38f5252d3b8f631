"""Write the example values of chart quickstart from the reference fleet single-gpu, or check that they are current.

python ci/quickstart.py [--check]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
FLEET = ROOT / "values/single-gpu"
CHART = ROOT / "charts/quickstart"
HEADER = "# Generated from values/single-gpu. Do not edit: `make generate` writes it.\n"
BEGIN, END = "<!-- example: generated -->\n```yaml\n", "```\n<!-- end of the example -->\n"


def main(arguments: Sequence[str]) -> int:
    """Write the example and its copy in the README, or with --check return 1 if one is not current."""
    example = yaml.safe_dump(_build_values(), sort_keys=False, width=120)
    readme = (CHART / "README.md").read_text()
    before, rest = readme.split(BEGIN)
    texts = {
        CHART / "examples/llama-8b.yaml": HEADER + example,
        CHART / "README.md": before + BEGIN + example + END + rest.split(END)[1],
    }
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    if "--check" not in arguments:
        for path in stale:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path])
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not current: make generate", file=sys.stderr)
    return 1 if stale else 0


def _build_values() -> dict[str, Any]:
    """Return the values of both releases, for one namespace and a cluster without chart platform."""
    (service_file,) = FLEET.glob("ray-service/*.yaml")
    service, gateway = _read_values(service_file), _read_values(FLEET / "gateway/gateway.yaml")
    service["nameOverride"], gateway["nameOverride"] = service_file.stem, "gateway"
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


def _read_values(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    return values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
