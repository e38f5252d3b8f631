"""The dashboards, one module each. A new dashboard is a new module with a `DASHBOARD`; nothing else lists it."""

import pkgutil
from importlib import import_module

from pydantic import ValidationError

from rayhelm.errors import FleetError, Problem
from rayhelm.observe.dashboard_model import Dashboard

__all__ = ["load_dashboards"]


def load_dashboards() -> dict[str, Dashboard]:
    """Return the dashboards by name: that of the module, with dashes. Raise FleetError for a module that has none, has
    one with another name, or has one that cannot be drawn."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): _load(name) for name in names}


def _load(module: str) -> Dashboard:
    file, name = f"rayhelm/observe/dashboards/{module}.py", module.replace("_", "-")
    try:
        found = getattr(import_module(f"{__name__}.{module}"), "DASHBOARD", None)
    except ValidationError as error:
        problems = [
            Problem(each["msg"], path=".".join(map(str, each["loc"])) or error.title, file=file)
            for each in error.errors()
        ]
        raise FleetError(problems) from None
    if not isinstance(found, Dashboard):
        fix = f'DASHBOARD = Dashboard(name="{name}", ...)'
        raise FleetError(Problem("the module has no DASHBOARD", path="DASHBOARD", file=file, fix=fix))
    if found.name != name:
        message = f'the name is "{found.name}", and the file requires "{name}"'
        raise FleetError(Problem(message, path="DASHBOARD.name", file=file, fix=f'name="{name}"'))
    return found
