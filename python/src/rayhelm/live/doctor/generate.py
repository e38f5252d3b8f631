"""Write the rights of the doctor for chart `platform`; with `--check` fail where they are stale."""

import json
import sys

from rayhelm.deploy.charts.chart_file import write_chart_file
from rayhelm.live.doctor.access import build_rules, list_kinds

__all__ = ["generate"]


def generate() -> str:
    """Return the rules of the ClusterRole as JSON."""
    return json.dumps(build_rules(list_kinds()), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    return write_chart_file("platform/files/doctor-rules.json", generate(), check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
