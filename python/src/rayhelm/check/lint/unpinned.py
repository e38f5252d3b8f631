"""Models that the admission policy `model-revision` refuses."""

from collections.abc import Iterable

from rayhelm.errors import Fix
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.sources import is_hub_id

__all__ = ["RULE", "UNPINNED_FIX", "list_unpinned_models"]

RULE = "model-revision"
UNPINNED_FIX = Fix(
    "unpinnedReason", "a trial: the weights may change", "or `revision`, the 40 hexadecimal digits of a commit"
)


def list_unpinned_models(fleet: Fleet, names: Iterable[str]) -> list[str]:
    """Return the hub models among `names` that have neither `revision` nor `unpinnedReason`."""
    models = {name: fleet.models[name] for name in names}
    return [
        name
        for name, model in models.items()
        if is_hub_id(model.source) and not model.revision and not model.unpinned_reason
    ]
