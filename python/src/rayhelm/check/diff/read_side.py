"""Read a side from a path."""

from pathlib import Path

from rayhelm.check.diff.read_fleet import read_fleet
from rayhelm.check.diff.read_tree import is_tree, read_tree, refuse_several_fleets
from rayhelm.check.diff.side import Side
from rayhelm.fleet.find_file import find_fleet_file

__all__ = ["read_side"]


def read_side(path: Path) -> Side:
    """Read a fleet file, its folder, or a folder that `rayhelm render` wrote. Raises FleetError."""
    if is_tree(path):
        return read_tree(path)
    refuse_several_fleets(path)
    return read_fleet(find_fleet_file(path))
