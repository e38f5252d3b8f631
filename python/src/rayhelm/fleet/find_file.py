"""Find the fleet file that an argument names."""

from contextlib import suppress
from pathlib import Path

from rayhelm.facts.fleet_folder import check_link

__all__ = ["find_fleet_file"]


def find_fleet_file(path: Path) -> Path:
    """Return the fleet file at `path`, or in the folder `path`; what is missing is returned as it is, and its reader
    reports it. Raises FleetError for a link to a file outside of its folder."""
    inside = path / "fleet.yaml"
    with suppress(OSError):
        path = inside if inside.is_file() else path
        check_link(path)
    return path
