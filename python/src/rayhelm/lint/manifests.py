"""`rayhelm lint` of Kubernetes objects: what the admission policies would say, at file and line."""

from pathlib import Path

from rayhelm.admission.evaluate import Verdict, judge, namespace_of, namespaces_of
from rayhelm.admission.manifests import Manifest, read_manifests
from rayhelm.admission.pods import projected
from rayhelm.admission.policy import Policy, policies_of, shipped
from rayhelm.errors import FleetError, Problem
from rayhelm.lint.fleet import Checked

__all__ = ["lint_manifests"]


def lint_manifests(path: Path, policies: Path | None = None) -> Checked:
    """Judge a file or a folder, by the policies among its own objects or in `policies`, else by those that the chart
    `platform` has. Raises FleetError with every problem."""
    manifests = read_manifests(path)
    asked = _policies(policies, manifests)
    known = namespaces_of(each.item for each in manifests)
    checked = Checked()
    problems: list[Problem] = []
    for each in manifests:
        for place, part in projected(each.item):
            for verdict in judge(asked, part, namespace_of(part, known)):
                _note(each.problem(verdict, place), verdict, problems, checked)
    if problems:
        raise FleetError(problems)
    checked.done.append(f"{path}: {len(manifests)} objects pass {len(asked)} policies")
    return checked


def _policies(named: Path | None, manifests: list[Manifest]) -> tuple[Policy, ...]:
    among = read_manifests(named) if named else manifests
    found = tuple(policies_of(each.item for each in among))
    names = [policy.name for policy in found]
    if named and not found:
        fix = "rayhelm lint manifests.yaml --policies policies/token-auth/policy.yaml"
        raise FleetError(Problem("no policy with a binding in there", "", str(named), None, fix))
    if twice := next((name for name in names if names.count(name) > 1), ""):
        file = next(each for each in reversed(among) if each.item["metadata"]["name"] == twice).file
        fix = f"rayhelm lint FOLDER --policies {file}   # of one cluster, with the objects of that cluster"
        raise FleetError(Problem(f"policies of several clusters: {twice} stands twice", "", file, None, fix))
    return found or shipped()


def _note(problem: Problem, verdict: Verdict, problems: list[Problem], checked: Checked) -> None:
    """Once for each line: an object and the pod in it may break one rule together."""
    if not verdict.denies:
        checked.warnings.append(str(problem))
    elif (problem.rule, problem.location) not in {(each.rule, each.location) for each in problems}:
        problems.append(problem)
