"""`rayhelm lint` of Kubernetes objects: the violations of the admission policies, with file and line."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from rayhelm.check.admission.evaluate import PolicyViolation, evaluate_policies, find_namespace, index_namespaces
from rayhelm.check.admission.manifests import Manifest, read_manifests
from rayhelm.check.admission.pods import project_pods
from rayhelm.check.admission.policy import AdmissionPolicy, load_chart_policies, read_policies
from rayhelm.check.lint.fleet import Checked
from rayhelm.check.lint.ray_service.check import check_ray_services
from rayhelm.check.lint.scraping import check_scraping
from rayhelm.errors import Fix, FleetError, Problem

__all__ = ["check_manifests", "lint_manifests"]


def lint_manifests(path: Path, policies: Path | None = None) -> Checked:
    """Check Kubernetes objects as `check_manifests` does. Raises FleetError with every problem."""
    checked = check_manifests(path, policies)
    if checked.problems:
        raise FleetError(checked.problems)
    return checked


def check_manifests(path: Path, policies: Path | None = None) -> Checked:
    """Check the objects of a file or folder with the policies in `policies`, else with those among the objects, else
    with those of the chart `platform`. Raises FleetError if the files cannot be read."""
    manifests = read_manifests(path)
    asked = _select_policies(path, policies, manifests)
    known = index_namespaces(each.item for each in manifests)
    checked = Checked()
    for each in manifests:
        for place, part in project_pods(each.item):
            # Controllers create the pods of an object, and administrators the objects of chart tenant.
            by_tenant = not place and _get_chart(each.item) != "tenant"
            within = find_namespace(part, known)
            for violation in evaluate_policies(asked, part, within, by_tenant=by_tenant):
                _note(each.problem(violation, place), violation, checked)
    checked.problems += check_scraping(manifests)
    services = check_ray_services(manifests)
    if not checked.problems:
        checked.done.append(f"{path}: {len(manifests)} objects pass {len(asked)} policies")
    checked.add(services)
    return checked


def _get_chart(item: Mapping[str, Any]) -> str:
    labels = item["metadata"].get("labels") or {}
    return str(labels.get("app.kubernetes.io/name", ""))


def _select_policies(path: Path, named: Path | None, manifests: list[Manifest]) -> tuple[AdmissionPolicy, ...]:
    lint = f"rayhelm lint {quote(str(path))} --policies"
    among = read_manifests(named) if named else manifests
    found = tuple(read_policies(each.item for each in among))
    names = [policy.name for policy in found]
    if named and not found:
        message = "no policy with a binding in it: a ValidatingAdmissionPolicy and its ValidatingAdmissionPolicyBinding"
        raise FleetError(Problem(message, "", str(named), None, Fix(command=f"{lint} FILE")))
    if twice := next((name for name in names if names.count(name) > 1), ""):
        file = next(each for each in reversed(among) if each.item["metadata"]["name"] == twice).file
        fix = Fix(command=f"{lint} {quote(file)}", why="and only the objects of that cluster")
        raise FleetError(
            Problem(f"policy {twice} is in several files: policies of several clusters", "", file, None, fix)
        )
    return found or load_chart_policies()


def _note(problem: Problem, violation: PolicyViolation, checked: Checked) -> None:
    """Add a problem or a warning; a rule once per line, because an object and its pod can break it together."""
    if not violation.denies:
        checked.warnings.append(str(problem))
    elif (problem.rule, problem.location) not in {(each.rule, each.location) for each in checked.problems}:
        checked.problems.append(problem)
