"""`rayhelm charts`: the folder of the charts that this installation carries."""

import json

from rayhelm.cli.output import Format, FormatOption
from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["charts_command"]


def charts_command(format: FormatOption = Format.text) -> None:
    """Print the folder of the Helm charts of this version: `helm install x $(rayhelm charts)/tenant`."""
    folder = charts_dir()
    if format is Format.json:
        names = sorted(path.parent.name for path in folder.glob("*/Chart.yaml"))
        print(json.dumps({"folder": str(folder), "charts": names}, indent=2))
        return
    print(folder)
