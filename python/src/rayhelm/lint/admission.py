"""What the admission policies of a fleet's clusters would say to the fleet's own objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayhelm.admission.evaluate import PolicyViolation, evaluate_policies, find_namespace, index_namespaces
from rayhelm.admission.pods import project_pods
from rayhelm.admission.policy import AdmissionPolicy, read_policies
from rayhelm.errors import Problem
from rayhelm.lint.locate import placed
from rayhelm.render.releases import Release
from rayhelm.spec.load import LoadedFleet

__all__ = ["AdmissionResult", "RenderedReleases", "check_releases"]

RenderedReleases = Sequence[tuple[Release, Sequence[Mapping[str, Any]]]]
"""Releases with the objects that helm renders of them."""

FLEET_FIXES = {
    "model-revision": 'revision: "<40 hexadecimal digits of the commit>"   # or unpinnedReason: "..."',
    "image-source": "image: {digest: sha256:...}",
}
"""What to write in the fleet file; the fixes of the policies are for manifests."""
OF_MODELS = ("model-revision", "trust-reason")
"""Rules whose words end in the names of models."""


@dataclass
class AdmissionResult:
    """What the policies of each cluster have against the objects of its releases."""

    problems: list[Problem] = field(default_factory=list)
    """At their places in the fleet file."""
    warnings: list[str] = field(default_factory=list)
    """Of policies that do not deny."""
    done: list[str] = field(default_factory=list)


def check_releases(made: RenderedReleases, loaded: LoadedFleet) -> AdmissionResult:
    """By the policies that each cluster's own platform release installs."""
    result = AdmissionResult()
    for cluster in dict.fromkeys(release.cluster for release, _ in made):
        here = [(release, items) for release, items in made if release.cluster == cluster]
        policies = tuple(read_policies(item for _, items in here for item in items))
        before = len(result.problems)
        for release, problem, denied in _problems_of(here, policies):
            told = placed(problem, release, loaded)
            if denied:
                result.problems.append(told)
            else:
                result.warnings.append(str(told))
        if len(result.problems) == before:
            result.done.append(f"cluster `{cluster}`: {len(policies)} admission policies let everything pass")
    return result


def _problems_of(
    here: RenderedReleases, policies: Sequence[AdmissionPolicy]
) -> Iterator[tuple[Release, Problem, bool]]:
    """By release, with whether it is denied; a rule once for each release, for its objects repeat each other."""
    known = index_namespaces(item for _, items in here for item in items)
    for release, items in here:
        told: set[str] = set()
        # A RayService names its models, and a Job only what it runs.
        for item in sorted(items, key=lambda item: item["kind"] != "RayService"):
            violations = list(_violations(item, policies, known))
            for violation in (each for each in violations if each.rule not in told):
                yield from ((release, problem, violation.denies) for problem in _problems(item, violation))
            told |= {each.rule for each in violations}


def _violations(
    item: Mapping[str, Any], policies: Sequence[AdmissionPolicy], known: Mapping[str, Any]
) -> Iterator[PolicyViolation]:
    for _, part in project_pods(item):
        yield from evaluate_policies(policies, part, find_namespace(part, known))


def _problems(item: Mapping[str, Any], violation: PolicyViolation) -> Iterator[Problem]:
    """One for each model that it names."""
    what, _, models = (
        (violation.what or violation.message).rpartition(": ") if violation.rule in OF_MODELS else ("", "", "")
    )
    for model in models.split(", "):
        told = f"{what}: {model}" if what else violation.what or violation.message
        name = f"{item['kind']} {item['metadata']['name']}"
        yield Problem(f"{name}: {told}", fix=FLEET_FIXES.get(violation.rule, violation.fix), rule=violation.rule)
