"""Redis of a service: the one of its owner, else the one of its cluster, which a single owner may use. Pure."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.redis import Redis
from rayhelm.planner.plan import Plan

__all__ = ["find_redis", "find_shared_redis"]

SHARED = "models"
"""Owner of the services without a tenant: they are in one namespace."""


def find_redis(service: str, plan: Plan) -> Redis | None:
    """Return the Redis that stores the state of the head of a service; None without fault tolerance."""
    planned = plan.services[service]
    own = plan.declared.tenants[planned.tenant].redis if planned.tenant else None
    return own or plan.declared.clusters[planned.cluster].redis


def find_shared_redis(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each owner whose Redis another owner uses: with the password, code in a Ray worker of one
    owner can replace the actors of the other."""
    owners: dict[tuple[str, int], list[str]] = {}
    for service in plan.services:
        redis, owner = find_redis(service, plan), plan.services[service].tenant or SHARED
        if not redis:
            continue
        known = owners.setdefault((redis.host.lower(), redis.port), [])
        if owner not in known:
            known.append(owner)
    for (host, port), sharing in owners.items():
        for owner in sharing[1:] if len(sharing) > 1 else []:
            first = sharing[0]
            path = ("tenants", owner) if owner in plan.declared.tenants else ("clusters",)
            moved = owner if owner in plan.declared.tenants else first
            secret = {"name": "redis", "key": "password"}
            own = {"address": f"redis.{moved}-state:6379", "passwordSecret": secret}
            yield problem_at(
                path,
                f"`{owner}` and `{first}` use the same Redis, {host}:{port}: with its password, code in a"
                " Ray worker of one can run code in the Ray clusters of the other",
                Fix(f"/tenants.{moved}.redis", own, "a Redis of its own"),
            )
