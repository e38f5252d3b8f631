"""Puts into the wheel what lies beside the package in a checkout; an editable install reads it there."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build_data["force_include"] |= {"../charts": "rayhelm/data/charts", "../LICENSE": "rayhelm/LICENSE"}
