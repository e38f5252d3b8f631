"""rayhelm: from a fleet file to an inference API on Kubernetes, through Helm and GitOps.

`rayhelm.plan`, `rayhelm.render` and `rayhelm.diff` are what the commands of these names compute. Errors are
`rayhelm.RayhelmError`: `FleetError`, `MissingError` and `UsageError`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayhelm.api import diff, plan, render
    from rayhelm.errors import FleetError, MissingError, RayhelmError, UsageError

__version__ = "0.2.0"
__all__ = ["FleetError", "MissingError", "RayhelmError", "UsageError", "__version__", "diff", "plan", "render"]


def __getattr__(name: str) -> Any:
    """Import on use: `rayhelm.runtime` runs in images without the requirements of the rest."""
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rayhelm import api, errors

    return getattr(errors if name.endswith("Error") else api, name)
