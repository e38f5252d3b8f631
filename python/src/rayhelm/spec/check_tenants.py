"""Rules between tenants, services and gateways: who owns what, who may call it, and what may not lie side by side."""

from collections.abc import Iterator

from rayhelm.errors import Problem
from rayhelm.spec.document import Document
from rayhelm.spec.fleet import UNOWNED, Fleet
from rayhelm.spec.pools import Pool
from rayhelm.spec.references import reference

__all__ = ["RELEASES", "check_tenants"]

RELEASES = "tenants"
"""Namespace that the releases of the chart `tenant` lie in, out of the tenants' reach."""


def check_tenants(fleet: Fleet, document: Document) -> Iterator[Problem]:
    yield from _aliases(fleet, document)
    yield from _calls(fleet, document)
    yield from _claims(fleet, document)
    yield from _keys(fleet, document)
    yield from _namespaces(fleet, document)
    yield from _doors(fleet, document)


def _aliases(fleet: Fleet, document: Document) -> Iterator[Problem]:
    """An alias is a Service, so one namespace has it once."""
    taken: dict[tuple[str, str], str] = {}
    for service, aliases in ((name, service.aliases) for name, service in fleet.services.items() if service.aliases):
        for index, alias in enumerate(aliases.names):
            other = taken.setdefault((aliases.namespace, alias), service)
            if other != service:
                yield document.problem(
                    ("services", service, "aliases", "names", index),
                    f"service `{other}` has the alias `{alias}` in namespace `{aliases.namespace}` already",
                    "keep it with one of the two",
                )


def _calls(fleet: Fleet, document: Document) -> Iterator[Problem]:
    for name, tenant in fleet.tenants.items():
        for index, model in enumerate(tenant.models):
            path = ("tenants", name, "models", index)
            yield from reference(document, path, model, fleet.models, "model")
            if model in fleet.models and fleet.served_name(model) != model:
                known = fleet.served_name(model)
                yield document.problem(path, f"clients know `{model}` as `{known}`", f"models: [{known}]")
            if model in tenant.models[:index]:
                models = ", ".join(dict.fromkeys(tenant.models))
                yield document.problem(path, f"`{model}` stands twice", f"models: [{models}]")
    yield from _forgotten(fleet, document)
    for model, spec in fleet.models.items():
        if spec.application and not spec.application.paths and fleet.tenants_allowed(model):
            yield document.problem(
                ("models", model, "application"),
                f"`{fleet.tenants_allowed(model)[0]}` may call `{model}`, and the gateway opens no path of it",
                "paths: {/v1/ocr: POST}",
            )


def _forgotten(fleet: Fleet, document: Document) -> Iterator[Problem]:
    """A model beside others that may be called holds cards for nobody; aliases lead to it without a gateway."""
    callers = [name for name, tenant in fleet.tenants.items() if tenant.models]
    named = {model for tenant in fleet.tenants.values() for model in tenant.models}
    if not callers or not named <= {model for model in fleet.models if fleet.served_name(model) == model}:
        return  # a name that leads nowhere may be meant for it
    for model, spec in fleet.models.items():
        service = fleet.services.get(fleet.service_of(model))
        if fleet.tenants_allowed(model) or spec.served_as or (service and service.aliases):
            continue
        models = ", ".join([*fleet.tenants[callers[0]].models, model])
        yield document.problem(
            ("models", model),
            f"nobody may call `{model}`: no tenant names it among its `models`",
            f"tenants:\n  {callers[0]}: {{models: [{models}]}}",
        )


def _claims(fleet: Fleet, document: Document) -> Iterator[Problem]:
    claimed = sum(tenant.gpus or 0 for tenant in fleet.tenants.values())
    there = sum(_gpus_in(pool) for pool in fleet.pools.values())
    if claimed > there:
        claims = ", ".join(f"{name} {tenant.gpus:g}" for name, tenant in fleet.tenants.items() if tenant.gpus)
        yield document.problem(
            ("tenants",),
            f"tenants claim {claimed:g} GPUs ({claims}), and the pools have {there}",
            f"lower the claims to {there} in all, or add nodes",
        )


def _gpus_in(pool: Pool) -> int:
    if pool.hosts:
        return sum(host.gpus for host in pool.hosts)
    return (pool.nodes or 0) * (pool.gpus_per_node or 1)


def _keys(fleet: Fleet, document: Document) -> Iterator[Problem]:
    """A key has to tell who calls."""
    owners: dict[str, str] = {}
    for name, tenant in fleet.tenants.items():
        other = owners.setdefault(fleet.keys_of(name), name)
        if other != name:
            both = f"`{other}` and `{name}` would have the same keys, those of Secret `{fleet.keys_of(name)}`"
            path = ("tenants", name, "keys", "secret") if tenant.keys.secret else ("tenants", other, "keys", "secret")
            yield document.problem(
                path, f"{both}: nobody could tell who calls", f"secret: gateway-keys-{path[1]}   # one for each"
            )


def _namespaces(fleet: Fleet, document: Document) -> Iterator[Problem]:
    """A namespace has one owner: its quota, its rights and its Secrets are for one team alone."""
    owners: dict[str, str] = {}
    for tenant in fleet.tenants:
        owned = fleet.services_of(tenant)
        if not owned:
            continue
        namespace, path = fleet.namespace_of(owned[0]), ("tenants", tenant, "namespace")
        other = owners.setdefault(namespace, tenant)
        unowned = next((service for service in fleet.service_names if not fleet.owner_of(service)), None)
        if other != tenant:
            message = f"`{other}` has the namespace `{namespace}` already"
        elif namespace == "default" or namespace.startswith("kube-"):
            message = f"`{namespace}` is no namespace for a tenant: Kubernetes itself, or everybody, lives in it"
        elif namespace == RELEASES:
            message = f"the releases of the chart `tenant` lie in `{namespace}`, where no tenant may reach them"
        elif namespace == UNOWNED and unowned:
            message = f"`{unowned}`, which nobody owns, lives in `{namespace}`"
        else:
            continue
        yield document.problem(path, message, f"namespace: {tenant}-models   # one of its own")


def _doors(fleet: Fleet, document: Document) -> Iterator[Problem]:
    """Whoever may edit a RayService can mount every Secret beside it: keys lie elsewhere."""
    taken = {fleet.namespace_of(service): service for service in reversed(fleet.service_names)}
    for name, cluster in fleet.clusters.items():
        namespace = cluster.gateway.namespace
        if service := taken.get(namespace):
            yield document.problem(
                ("clusters", name, "gateway", "namespace"),
                f"service `{service}` lives in `{namespace}` too, and its pods could mount the tenants' keys",
                f"namespace: {'gateway' if namespace != 'gateway' else 'door'}   # one of its own",
            )
