"""What a check is, and the list of all checks."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rayhelm.live.cluster.kinds import Kind
from rayhelm.live.doctor import checks
from rayhelm.live.doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from rayhelm.live.doctor.facts import Facts

__all__ = ["Check", "load_checks"]


@dataclass(frozen=True)
class Check:
    """One check of a live installation."""

    title: str
    """What it checks; the progress and the table of the checks show it."""
    severity: Severity
    """Severity of its findings."""
    find: "Callable[[Facts], Iterable[Finding]]"
    reads: tuple[Kind, ...] = ()
    """Kinds that it lists; the doctor's ClusterRole is made of these."""
    needs_fleet: bool = False
    needs_prometheus: bool = False


@cache
def load_checks() -> dict[str, Check]:
    """Return all checks by id, which is the name of the module with dashes."""
    names = sorted(module.name for module in pkgutil.iter_modules(checks.__path__))
    modules = {name: importlib.import_module(f"{checks.__name__}.{name}") for name in names}
    return {name.replace("_", "-"): module.CHECK for name, module in modules.items() if hasattr(module, "CHECK")}
