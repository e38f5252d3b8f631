"""Rules of `aliases`: further names of a model."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at

__all__ = ["check_aliases"]


def check_aliases(fleet: Fleet) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for model, spec in fleet.models.items():
        if not spec.aliases:
            continue
        path = ("models", model, "aliases")
        if spec.served_as:
            name = spec.served_as.model
            message = f"clients call `{model}` as `{name}`, and an alias belongs to the name that they call"
            yield problem_at(path, message, Fix.removal("", f"write it at `{name}`"))
        if get_task(spec.task).server != "vllm":
            message = f"task `{spec.task}` has an application of its own, which gets the name as the client sent it"
            yield problem_at(path, message, Fix.removal())
        for message in _list_untested(model, fleet):
            yield problem_at(path, message, Fix.removal())
        for index, alias in enumerate(spec.aliases):
            other = owners.setdefault(alias, model)
            if alias in fleet.models:
                what = f"`{alias}` is also the name of a model"
            elif alias in fleet.adapters:
                what = f"`{alias}` is also the name of an adapter"
            elif other != model or alias in spec.aliases[:index]:
                what = f"`{alias}` is already an alias of `{other}`"
            else:
                continue
            yield problem_at((*path, index), f"{what}: a request names one model", Fix.removal())
    for tenant, each in fleet.tenants.items():
        for index, name in enumerate(each.models):
            if name in owners and name not in fleet.models and name not in fleet.adapters:
                message = (
                    f"`{name}` is an alias of `{owners[name]}`: a tenant that may call the model may use its aliases"
                )
                fix = Fix("..", list(dict.fromkeys(owners.get(one, one) for one in each.models)))
                yield problem_at(("tenants", tenant, "models", index), message, fix)


def _list_untested(model: str, fleet: Fleet) -> Iterator[str]:
    """Yield splits of the models that serve a name with aliases, which were not tested with them."""
    for each in fleet.served_as(model):
        pin, whose = fleet.models[each].parallelism, "" if each == model else f" of `{each}`"
        if pin and pin.ranks > 1:
            yield f"aliases were not tested with data parallel ranks; remove them, or `parallelism.data`{whose}"
        if pin and pin.separates_prefill:
            key = "prefillDecode" if pin.prefill_decode else "prefill"
            yield (
                "aliases were not tested with prefill and decode on different replicas; remove them, or"
                f" `parallelism.{key}`{whose}"
            )
