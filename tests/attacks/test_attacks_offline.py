"""Each attack is refused by its rule, and accepted where that one rule is off: `rayhelm lint` evaluates the same."""

import pytest

from attacks.kit.objects import ATTACKS, RULES, Attack, build_namespace, list_single_rules
from rayhelm.check.admission.evaluate import evaluate_policies
from rayhelm.check.admission.policy import AdmissionPolicy, read_policies


@pytest.fixture(scope="module")
def single_rules() -> dict[str, AdmissionPolicy]:
    return {rule: next(read_policies([policy, binding])) for rule, policy, binding in list_single_rules()}


def find_broken(attack: Attack, policies: list[AdmissionPolicy]) -> list[str]:
    within = build_namespace(is_unlabeled=attack.is_unlabeled)
    return [each.rule for each in evaluate_policies(policies, attack.item, within, attack.before)]


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_attack_is_refused_by_its_rule_only(attack: Attack, single_rules: dict[str, AdmissionPolicy]) -> None:
    assert find_broken(attack, [*single_rules.values()]) == [attack.rule]


@pytest.mark.parametrize("attack", [each for each in ATTACKS if each.before], ids=str)
def test_object_before_the_attack_breaks_no_rule(attack: Attack, single_rules: dict[str, AdmissionPolicy]) -> None:
    administrator = evaluate_policies(single_rules.values(), attack.before, build_namespace(), by_tenant=False)
    assert administrator == []


def test_every_rule_of_an_attack_is_a_rule_of_a_policy(single_rules: dict[str, AdmissionPolicy]) -> None:
    assert sorted(single_rules) == RULES


def test_every_finding_about_objects_has_an_attack() -> None:
    assert {attack.finding for attack in ATTACKS} >= {*range(1, 12)}


def test_command_of_the_autoscaler_in_kuberay_1_7_is_refused(
    single_rules: dict[str, AdmissionPolicy],
) -> None:
    attack = next(each for each in ATTACKS if each.name == "variable-of-the-autoscaler")
    for options in ({"command": ["sh"]}, {"args": ["x"]}):
        item = {**attack.base, "metadata": {"name": "x"}, "spec": {**attack.base["spec"], "autoscalerOptions": options}}
        found = evaluate_policies([*single_rules.values()], item, build_namespace())
        assert [each.rule for each in found] == ["autoscaler-code"]
