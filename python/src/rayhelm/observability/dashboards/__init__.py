"""The dashboards, one module each. A new dashboard is a new module with a `DASHBOARD`; nothing else lists it."""

import pkgutil
from importlib import import_module

from rayhelm.observability.dashboard_model import Dashboard

__all__ = ["load_dashboards"]


def load_dashboards() -> dict[str, Dashboard]:
    """Dashboards by name: that of the module, with dashes."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): import_module(f"{__name__}.{name}").DASHBOARD for name in names}
