"""Rules between tenants, services and gateways: owners, allowed models, GPUs, keys and namespaces."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.fleet import UNOWNED, Fleet
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.references import reference

__all__ = ["RELEASES", "check_tenants"]

_GATEWAY = "gateway"
"""Name of the Service of each gateway: that of its release."""
RELEASES = "tenants"
"""Namespace of the releases of the chart `tenant`; no tenant has access to it."""


def check_tenants(fleet: Fleet) -> Iterator[Problem]:
    yield from _check_aliases(fleet)
    yield from _check_models(fleet)
    yield from _check_bounds(fleet)
    yield from _check_token_limits(fleet)
    yield from _check_gpus(fleet)
    yield from _check_keys(fleet)
    yield from _check_namespaces(fleet)
    yield from _check_gateways(fleet)


def _check_aliases(fleet: Fleet) -> Iterator[Problem]:
    """An alias is a Service, so a namespace has each alias once, and none with the name of the gateway's Service."""
    taken: dict[tuple[str, str], str] = {}
    gateways = {cluster.gateway.namespace for cluster in fleet.clusters.values()}
    for service, aliases in ((name, service.aliases) for name, service in fleet.services.items() if service.aliases):
        for index, alias in enumerate(aliases.names):
            if alias == _GATEWAY and aliases.namespace in gateways:
                yield problem_at(
                    ("services", service, "aliases", "names", index),
                    f"`{alias}` is the Service of the gateway in namespace `{aliases.namespace}`: clients would reach"
                    f" `{service}` in its place, without keys and limits",
                    Fix.removal("" if len(aliases.names) > 1 else "../.."),
                )
            other = taken.setdefault((aliases.namespace, alias), service)
            if other != service:
                yield problem_at(
                    ("services", service, "aliases", "names", index),
                    f"service `{other}` already has the alias `{alias}` in namespace `{aliases.namespace}`",
                    Fix.removal("" if len(aliases.names) > 1 else "../..", "one of the two services keeps it"),
                )


def _check_models(fleet: Fleet) -> Iterator[Problem]:
    for name, tenant in fleet.tenants.items():
        for index, model in enumerate(tenant.models):
            path = ("tenants", name, "models", index)
            known_names = [*fleet.models, *fleet.adapters, *fleet.aliases]
            yield from reference(path, model, known_names, "model", listed=tenant.models)
            if model in fleet.models and fleet.served_name(model) != model:
                known = fleet.served_name(model)
                yield problem_at(path, f"clients call `{model}` as `{known}`", Fix("", known))
            if model in tenant.models[:index]:
                unique = list(dict.fromkeys(tenant.models))
                yield problem_at(path, f"`{model}` is listed twice", Fix("..", unique))
    yield from _check_unused_models(fleet)
    for model, spec in fleet.models.items():
        if spec.application and not spec.application.paths and fleet.tenants_allowed(model):
            yield problem_at(
                ("models", model, "application"),
                f"tenant `{fleet.tenants_allowed(model)[0]}` may call `{model}`, but the gateway has no path for it",
                Fix("paths", {"/v1/ocr": "POST"}),
            )


def _check_unused_models(fleet: Fleet) -> Iterator[Problem]:
    """A model that no tenant may call holds GPUs without use, unless aliases lead to it without a gateway."""
    clients = [name for name, tenant in fleet.tenants.items() if tenant.models]
    named = {model for tenant in fleet.tenants.values() for model in tenant.models}
    known = {model for model in fleet.models if fleet.served_name(model) == model} | {*fleet.adapters}
    if not clients or not named <= known:
        return  # an unknown name may be a mistyped one of these models
    for model, spec in fleet.models.items():
        service = fleet.services.get(fleet.service_of(model))
        if fleet.tenants_allowed(model) or spec.served_as or (service and service.aliases) or named & {*spec.adapters}:
            continue
        models = [*fleet.tenants[clients[0]].models, model]
        yield problem_at(
            ("models", model),
            "no tenant may call it, so its GPUs would be unused",
            Fix(f"/tenants.{clients[0]}.models", models),
            alternatives=[Fix.removal(why="and what names it, if nothing uses it any more")],
        )


def _check_bounds(fleet: Fleet) -> Iterator[Problem]:
    """A bound of a model that the tenant may not call would have no effect."""
    for name, tenant in fleet.tenants.items():
        for key, bounds in (("maxOutputTokens", tenant.max_output_tokens), ("maxBodyBytes", tenant.max_body_bytes)):
            for model, bound in bounds.items():
                if model in tenant.models:
                    continue
                path, owner = ("tenants", name, key, model), fleet.find_alias_owner(model)
                if owner in tenant.models:
                    fixed = {**bounds, owner: bounds.get(owner, bound)}
                    del fixed[model]
                    message = f"`{model}` is an alias of `{owner}`: the bound of the model holds for its aliases"
                    yield problem_at(path, message, Fix("..", fixed))
                    continue
                near = nearest(model, [each for each in tenant.models if each not in bounds])
                what = "is not one of the models of the tenant" if model in fleet.models else "is no model"
                fix = Fix(f"../{near[0]}", bound, replaces="") if near else Fix.removal()
                yield problem_at(path, f"`{model}` {what}", fix)


def _check_token_limits(fleet: Fleet) -> Iterator[Problem]:
    """The gateway counts tokens only where responses have their number."""
    for name, tenant in fleet.tenants.items():
        served = [base for name in tenant.models if (base := fleet.served_by(name)) in fleet.models]
        tasks = [get_task(fleet.models[model].task) for model in served]
        is_known = len(tasks) == len(tenant.models)
        if tenant.tokens_per_minute and is_known and not any(task.reports_usage for task in tasks):
            yield problem_at(
                ("tenants", name, "tokensPerMinute"),
                f"tenant `{name}` may call no model of a task whose responses have a number of tokens, so the limit has"
                " no effect",
                Fix.removal("", "the other limits of the tenant stay"),
            )


def _check_gpus(fleet: Fleet) -> Iterator[Problem]:
    claimed = sum(tenant.gpus or 0 for tenant in fleet.tenants.values())
    available = sum(_gpus_in(pool) for pool in fleet.pools.values())
    if claimed > available:
        most, lower = max((tenant.gpus or 0, name) for name, tenant in fleet.tenants.items())[1], claimed - available
        left = (fleet.tenants[most].gpus or 0) - lower
        why = f"{lower:g} less, as the pools have"
        fix = (
            Fix(f"{most}.gpus", left, why)
            if left > 0
            else Fix.removal(f"{most}.gpus", "it then has no limit of its own")
        )
        claims = ", ".join(f"{name} {tenant.gpus:g}" for name, tenant in fleet.tenants.items() if tenant.gpus)
        yield problem_at(
            ("tenants",),
            f"`gpus` of the tenants add up to {claimed:g} ({claims}), and the pools have {available}: lower them, or"
            " add nodes",
            fix,
        )


def _gpus_in(pool: Pool) -> int:
    if pool.hosts:
        return sum(host.gpus for host in pool.hosts)
    return (pool.nodes or 0) * (pool.gpus_per_node or 1)


def _check_keys(fleet: Fleet) -> Iterator[Problem]:
    """An API key identifies one tenant."""
    owners: dict[str, str] = {}
    for name, tenant in fleet.tenants.items():
        other = owners.setdefault(fleet.keys_of(name), name)
        if other != name:
            both = f"tenants `{other}` and `{name}` have the same keys, those of Secret `{fleet.keys_of(name)}`"
            path = ("tenants", name, "keys", "secret") if tenant.keys.secret else ("tenants", other, "keys", "secret")
            yield problem_at(path, f"{both}: a key has to identify one tenant", Fix("", f"gateway-keys-{path[1]}"))


def _check_namespaces(fleet: Fleet) -> Iterator[Problem]:
    """A namespace has one owner, because its quota, access rights and Secrets are for one team."""
    owners: dict[str, str] = {}
    for tenant in fleet.tenants:
        owned = fleet.services_of(tenant)
        if not owned:
            continue
        namespace, path = fleet.namespace_of(owned[0]), ("tenants", tenant, "namespace")
        other = owners.setdefault(namespace, tenant)
        unowned = next((service for service in fleet.service_names if not fleet.owner_of(service)), None)
        if other != tenant:
            message = f"tenant `{other}` already has the namespace `{namespace}`"
        elif namespace == "default" or namespace.startswith("kube-"):
            message = f"namespace `{namespace}` belongs to Kubernetes, not to a tenant"
        elif namespace == RELEASES:
            message = f"namespace `{namespace}` has the releases of the chart `tenant`, which no tenant may change"
        elif namespace == UNOWNED and unowned:
            message = f"namespace `{namespace}` has service `{unowned}`, which has no owner"
        else:
            continue
        yield problem_at(path, message, Fix("", f"{tenant}-models"))


def _check_gateways(fleet: Fleet) -> Iterator[Problem]:
    """Keys need a namespace of their own: a user who may edit a RayService can mount every Secret of its namespace."""
    taken = {fleet.namespace_of(service): service for service in reversed(fleet.service_names)}
    for name, cluster in fleet.clusters.items():
        namespace = cluster.gateway.namespace
        if service := taken.get(namespace):
            yield problem_at(
                ("clusters", name, "gateway", "namespace"),
                f"namespace `{namespace}` also has service `{service}`, whose pods could mount the keys of the tenants",
                Fix("", "gateway" if namespace != "gateway" else "ai-gateway"),
            )
