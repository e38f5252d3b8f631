"""Puts into the wheel what lies beside the package in a checkout; an editable install reads it there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from pathspec import GitIgnoreSpec


class Hook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        charts = {f"../{file}": f"rayhelm/data/{file}" for file in list_charts(Path(self.root).parent)}
        build_data["force_include"] |= {**charts, "../LICENSE": "rayhelm/LICENSE"}


def list_charts(checkout: Path) -> Iterator[str]:
    """Files of the charts without those that git ignores, such as what `helm dependency update` leaves."""
    ignored = GitIgnoreSpec.from_lines((checkout / ".gitignore").read_text().splitlines())
    for path in sorted((checkout / "charts").rglob("*")):
        file = path.relative_to(checkout).as_posix()
        if path.is_file() and not ignored.match_file(file):
            yield file
