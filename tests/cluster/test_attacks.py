"""The attacks of `tests/attacks` on a real API server, in the name of a member of the tenant.

Each rule is installed as a policy of its own, and in one namespace per rule that rule alone is off. There the attack is
accepted: so the rule refuses it, and nothing else does."""

from collections.abc import Iterator

import pytest

from attacks.kit.objects import ATTACKS, NAMESPACE, RULES, Attack, Object, build_namespace, list_single_rules
from cluster.kit.cluster import Cluster
from cluster.kit.policies import MEMBER_RIGHTS, Answer, Asked
from cluster.kit.wait import eventually
from rayhelm.deploy.charts.helm import template

OFF = "attacks.example.com/off"
"""Label of a namespace of these tests: the rule that is off there."""


@pytest.fixture(scope="module")
def asked(cluster: Cluster) -> Iterator[Asked]:
    """The rules, in force."""
    rules = list_single_rules()
    policies = [item for rule, policy, binding in rules for item in (policy, _except_where_off(rule, binding))]
    places = {_get_place(each, off=off): each for each in ATTACKS for off in (False, True)}
    namespaces = [_build_namespace(place, each) for place, each in places.items()]
    classes = [
        item for item in template("platform", "platform", "rayhelm-system", {}) if item["kind"].endswith("Class")
    ]
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    cluster.apply(*namespaces, *classes, runtime, *MEMBER_RIGHTS)
    try:
        names = [item["metadata"]["name"] for item in namespaces]
        eventually(lambda: all(cluster.find("ServiceAccount", "default", name) for name in names), "service accounts")
        cluster.apply(*(_move(each.before, name) for each in ATTACKS if each.before for name in _list_places(each)))
        cluster.apply(*policies)
        found = Asked(cluster, NAMESPACE)
        for rule in RULES:
            first = next(each for each in ATTACKS if each.rule == rule)
            eventually(lambda first=first: _try(found, first, _get_place(first)).rules, f"rule {rule} being in force")
        yield found
    finally:
        for item in [*policies, *MEMBER_RIGHTS, runtime, *namespaces]:
            cluster.delete(item["kind"], item["metadata"]["name"])


def _build_namespace(place: str, attack: Attack) -> Object:
    found = build_namespace(place, is_unlabeled=attack.is_unlabeled)
    off = attack.rule if place == _get_place(attack, off=True) else "none"
    return {**found, "metadata": {**found["metadata"], "labels": {**found["metadata"]["labels"], OFF: off}}}


def _except_where_off(rule: str, binding: Object) -> Object:
    """Bind the rule in the namespaces of these tests only: other tests run beside them."""
    selector = {
        "matchExpressions": [
            {"key": OFF, "operator": "Exists"},
            {"key": OFF, "operator": "NotIn", "values": [rule]},
        ]
    }
    return {**binding, "spec": {**binding["spec"], "matchResources": {"namespaceSelector": selector}}}


def _get_place(attack: Attack, *, off: bool = False) -> str:
    """Return the namespace of the attack; with `off` the one where its rule is off."""
    place = f"{NAMESPACE}-unlabeled" if attack.is_unlabeled else NAMESPACE
    return f"{place}-{attack.rule}" if off else place


def _list_places(attack: Attack) -> list[str]:
    return [_get_place(attack), _get_place(attack, off=True)]


def _move(item: Object, namespace: str) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def _try(asked: Asked, attack: Attack, namespace: str) -> Answer:
    """Answer of the API server to the attack, which is a dry run."""
    if attack.item is None:
        assert attack.before
        return asked.remove(_move(attack.before, namespace))
    if not attack.before:
        return asked.create(_move(attack.item, namespace))
    there = asked.there(_move(attack.item, namespace))
    sent = {key: attack.item["metadata"].get(key, {}) for key in ("labels", "annotations")}
    changed = {**there, "metadata": {**there["metadata"], **sent}}
    return asked.replace({**changed, "spec": there["spec"] | (attack.changes.get("spec") or {})})


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_api_server_refuses_the_attack_by_its_rule(asked: Asked, attack: Attack) -> None:
    answer = _try(asked, attack, _get_place(attack))
    assert answer.rules == {attack.rule}, answer


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_api_server_accepts_the_attack_where_its_rule_is_off(asked: Asked, attack: Attack) -> None:
    answer = _try(asked, attack, _get_place(attack, off=True))
    assert answer.status < 300, answer
