"""Write the rights of the doctor for chart `platform`; with `--check` fail where they are stale."""

import json
import sys

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.live.doctor.access import build_rules, list_kinds

__all__ = ["generate"]


def generate() -> str:
    """Return the rules of the ClusterRole as JSON."""
    return json.dumps(build_rules(list_kinds()), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    path, text = charts_dir() / "platform/files/doctor-rules.json", generate()
    if path.is_file() and path.read_text() == text:
        return 0
    if "--check" in arguments:
        print(f"stale: charts/platform/files/{path.name}: run `make generate`")
        return 1
    path.write_text(text)
    print(f"wrote charts/platform/files/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
