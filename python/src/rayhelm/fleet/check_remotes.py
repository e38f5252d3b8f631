"""Rules of names that several clusters serve: `gateway.remotes`, `spillAbove`, and the models behind such a name."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem, Rewrite
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import STABLE
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.remotes import Remote, rank_remotes

__all__ = ["check_clusters_of_name", "check_remotes"]


def check_remotes(fleet: Fleet) -> Iterator[Problem]:
    for name in fleet.clusters:
        yield from _check_cluster(name, fleet)
        yield from _check_weights(name, fleet)
    yield from _check_forwarding(fleet)
    for model, spec in fleet.models.items():
        if spec.spill_above is None:
            continue
        path = ("models", model, "spillAbove")
        if spec.served_as:
            message = f"it is a setting of the name `{spec.served_as.model}`, which clients call"
            yield problem_at(path, message, Fix.removal("", f"write it at `{spec.served_as.model}`"))
        elif spec.forwarding == "none":
            yield problem_at(path, "`forwarding: none` forwards no request of the model", Fix.removal())
        elif len(_clusters_of(model, fleet)) < 2:
            message = f"no other cluster serves `{model}`, so there is none to forward requests to"
            yield problem_at(path, message, Fix.removal())


def _check_forwarding(fleet: Fleet) -> Iterator[Problem]:
    for model, spec in fleet.models.items():
        if spec.served_as and spec.forwarding != "remotes":
            message = f"it is a setting of the name `{spec.served_as.model}`, which clients call"
            fix = Fix.removal("", f"write it at `{spec.served_as.model}`")
            yield problem_at(("models", model, "forwarding"), message, fix)


def _clusters_of(name: str, fleet: Fleet) -> dict[str, list[str]]:
    """Models that serve a name, by the cluster that they pin; those without a pin are with the model of that name."""
    found: dict[str, list[str]] = {}
    home = fleet.pinned_cluster(name)
    for model in fleet.served_as(name):
        if cluster := fleet.pinned_cluster(model) or home:
            found.setdefault(cluster, []).append(model)
    return found


def _check_cluster(name: str, fleet: Fleet) -> Iterator[Problem]:
    gateway = fleet.clusters[name].gateway
    hosts: dict[tuple[str, int], str] = {}
    for other, remote in gateway.remotes.items():
        path = ("clusters", name, "gateway", "remotes", other)
        if other == name:
            message = f"cluster `{name}` names itself: its gateway would forward requests to itself"
            yield problem_at(path, message, Fix.removal())
            continue
        if other not in fleet.clusters:
            yield _report_unknown(name, other, fleet)
            continue
        host = _find_host(other, remote, fleet)
        if not host:
            message = f"cluster `{other}` has no `gateway.host`, so this gateway has no address to forward requests to"
            yield problem_at(path, message, Fix("host", f"{other}.example.com", "or `gateway.host` of that cluster"))
            continue
        if host == gateway.host:
            message = f"`{host}` is the host of cluster `{name}` itself: its gateway would forward requests to itself"
            new = f"{other}.example.com"
            fix = Fix("host", new) if remote.host else Fix(f"/clusters.{other}.gateway.host", new)
            yield problem_at(path, message, fix)
        elif (first := hosts.setdefault((host, remote.port), other)) != other:
            message = f"cluster `{first}` has the host `{host}` too, and a host is one gateway"
            yield problem_at(path, message, Fix("host", f"gateway.{other}.example.com"))


def _check_weights(name: str, fleet: Fleet) -> Iterator[Problem]:
    remotes = fleet.clusters[name].gateway.remotes
    ranks = rank_remotes(remotes)
    for other, remote in remotes.items():
        if remote.weight is None:
            continue
        path = ("clusters", name, "gateway", "remotes", other, "weight")
        peers = [each for each in remotes if ranks[each] == ranks[other] and each != other]
        if not peers:
            message = (
                f"no other remote gateway of cluster `{name}` has the priority {ranks[other]}, so this one gets all"
            )
            message += " requests of that priority. Give another one the same `priority` or `latency`"
            yield problem_at(path, message, Fix.removal())
        elif missing := [each for each in peers if remotes[each].weight is None]:
            message = (
                f"remote gateway `{missing[0]}` has the same priority and no `weight`, and a number has no relation"
            )
            message += " to the planned capacity: set both, or none"
            yield problem_at(path, message, Fix.removal(), alternatives=[Fix(f"../../{missing[0]}.weight", 100)])


def _find_host(cluster: str, remote: Remote, fleet: Fleet) -> str | None:
    return remote.host or fleet.clusters[cluster].gateway.host


def _report_unknown(name: str, other: str, fleet: Fleet) -> Problem:
    path = ("clusters", name, "gateway", "remotes", other)
    known = [each for each in fleet.clusters if each != name and each not in fleet.clusters[name].gateway.remotes]
    same = Rewrite(path, lambda remote: remote)
    fixes = [Fix(f"../{near}", replaces="", rewrite=same) for near in nearest(other, known)]
    message = f"there is no cluster `{other}` in this fleet; a gateway of another fleet belongs to `gateway.values`"
    first, *rest = fixes or [Fix.removal()]
    return problem_at(path, message, first, alternatives=rest)


def check_clusters_of_name(name: str, fleet: Fleet) -> Iterator[Problem]:
    """Yield what prevents the gateways of several clusters from serving one name."""
    pinned = {
        model: cluster for model in fleet.served_as(name) if (cluster := fleet.pinned_cluster(model)) in fleet.clusters
    }  # an unknown cluster is a problem of the pool
    clusters = list(dict.fromkeys(pinned.values()))
    if len(clusters) < 2:
        return
    if name not in pinned:
        pools = [pool for pool in fleet.pools if fleet.pools[pool].cluster == clusters[0]]
        message = f"{_join(clusters)} serve `{name}`, so `{name}` itself needs a `pool` in one of them"
        yield problem_at(("models", name), message, Fix("pool", pools[0]))
        return
    home = pinned[name]
    for cluster in clusters:
        if cluster == home:
            continue
        models = [model for model, of in pinned.items() if of == cluster]
        if not _is_joined(cluster, clusters, fleet):
            yield _report_not_joined(models[0], name, cluster, home, fleet)
        elif all(fleet.version_of(model) != STABLE for model in models):
            yield problem_at(
                ("models", models[0], "servedAs", "version"),
                f"cluster `{cluster}` has no version `{STABLE}` of `{name}`, so its gateway could not serve requests"
                f" that name no version: add further replicas of `{name}` there, or use a pool of `{home}`",
                Fix("../../pool", _first_pool(home, fleet), f"a pool of `{home}`"),
            )


def _join(clusters: list[str]) -> str:
    return "clusters " + " and ".join(f"`{cluster}`" for cluster in clusters)


def _is_joined(cluster: str, others: list[str], fleet: Fleet) -> bool:
    """Return whether requests are forwarded between the cluster and one of the others, in some direction."""
    remotes = fleet.clusters[cluster].gateway.remotes
    return any(other in remotes or cluster in fleet.clusters[other].gateway.remotes for other in others)


def _first_pool(cluster: str, fleet: Fleet) -> str:
    return next(pool for pool in fleet.pools if fleet.pools[pool].cluster == cluster)


def _report_not_joined(model: str, name: str, cluster: str, home: str, fleet: Fleet) -> Problem:
    spec, path = fleet.models[model], ("models", model)
    host = {} if fleet.clusters[cluster].gateway.host else {"host": f"{cluster}.example.com"}
    remote = {**host, "certificateAuthority": {"configMap": "gateway-ca"}, "cidrs": ["203.0.113.10/32"]}
    fix = Fix.removal("servedAs" if spec.served_as else "")
    if spec.pool:
        fix = Fix("", _first_pool(home, fleet), f"a pool of `{home}`")
    place = ("clusters", home, "gateway", "remotes")
    joined = Rewrite(place, lambda given: {**(given or {}), cluster: remote})
    return problem_at(
        (*path, "pool") if spec.pool else path,
        f"it serves `{name}` on cluster `{cluster}`, and the gateway of cluster `{home}` reaches only services of"
        f" `{home}`: use a pool of `{home}`, or join the gateways by `gateway.remotes`",
        fix,
        alternatives=[Fix(f"/clusters.{home}.gateway.remotes", rewrite=joined)],
    )
