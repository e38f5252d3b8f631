"""Rules of `adapters`: names, and models that can have them."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem, Rewrite
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at

__all__ = ["check_adapters"]


def check_adapters(fleet: Fleet) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for model, spec in fleet.models.items():
        if spec.adapter_slots and not spec.adapters:
            yield problem_at(("models", model, "adapterSlots"), "the model has no `adapters`", Fix.removal())
        if not spec.adapters:
            continue
        path = ("models", model, "adapters")
        if spec.task != "chat":
            message = f"task `{spec.task}` cannot have adapters: Ray Serve LLM and vLLM serve them for `chat`"
            yield problem_at(path, message, Fix.removal())
        if spec.served_as:
            message = (
                f"clients call `{model}` as `{spec.served_as.model}`, and an adapter has a name of its own: give it to"
                f" `{spec.served_as.model}`"
            )
            yield problem_at(path, message, Fix.removal())
        if spec.parallelism and (spec.parallelism.data or 1) > 1:
            message = "adapters were not tested with data parallel ranks; remove them, or `parallelism.data`"
            yield problem_at(path, message, Fix.removal())
        for adapter in spec.adapters:
            yield from _check_name(adapter, model, owners, fleet)


def _check_name(adapter: str, model: str, owners: dict[str, str], fleet: Fleet) -> Iterator[Problem]:
    """Clients send one name, and it has to identify one model or adapter."""
    path, spec = ("models", model, "adapters"), fleet.models[model].adapters[adapter]
    other = owners.setdefault(adapter, model)
    if adapter in fleet.models:
        message = f"`{adapter}` is also the name of a model"
    elif other != model:
        message = f"model `{other}` already has an adapter `{adapter}`"
    else:
        return
    new = {f"{model}-{adapter}": spec.model_dump(mode="json", by_alias=True, exclude_unset=True)}
    renamed = Rewrite(path, lambda written: {**{name: one for name, one in written.items() if name != adapter}, **new})
    fix = Fix("..", replaces="", rewrite=renamed)
    yield problem_at((*path, adapter), f"{message}: clients send one name for each", fix)
