"""The load of a version without `traffic`: its weight of the requests of the model that it is a version of."""

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.traffic import Traffic

__all__ = ["share_load"]


def share_load(fleet: Fleet) -> Fleet:
    """Return the fleet in which such versions have that load. The model itself keeps the whole: after a rollback its
    replicas serve all requests."""
    changed = {name: _take(spec, load) for name, spec in fleet.models.items() if (load := _find_load(name, fleet))}
    return fleet.model_copy(update={"models": fleet.models | changed}) if changed else fleet


def _find_load(name: str, fleet: Fleet) -> Traffic | None:
    spec = fleet.models[name]
    base = fleet.models.get(spec.served_as.model) if spec.served_as else None
    if spec.traffic or not base or not base.traffic or not spec.served_as or not spec.served_as.version:
        return None
    same = [each for each in fleet.served_as(spec.served_as.model) if fleet.version_of(each) == fleet.version_of(name)]
    weight = max((other.weight or 0 for each in same if (other := fleet.models[each].served_as)), default=0)
    tokens = base.traffic.input_tokens + (base.traffic.output_tokens or 0)
    if not weight or base.task != spec.task or (spec.context and spec.context < tokens):
        return None
    return base.traffic.multiply(weight / 100 / len(same))


def _take(spec: ModelSpec, load: Traffic) -> ModelSpec:
    taken = spec.model_copy(update={"traffic": load})
    # `states_traffic` is false for it: the file has no such load.
    taken.model_fields_set.discard("traffic")
    return taken
