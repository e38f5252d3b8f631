"""Evaluate the admission policies of a fleet's clusters on the objects of the fleet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayhelm.check.admission.evaluate import PolicyViolation, evaluate_policies, find_namespace, index_namespaces
from rayhelm.check.admission.pods import project_pods
from rayhelm.check.admission.policy import AdmissionPolicy, read_policies
from rayhelm.check.lint.locate import locate
from rayhelm.check.lint.unpinned import RULE, UNPINNED_FIX, list_unpinned_models
from rayhelm.deploy.render.files import Rendered, locate_manifest
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import FleetError, Problem
from rayhelm.fleet.problems import problem_at

__all__ = ["AdmissionResult", "RenderedReleases", "check_admission", "check_releases"]

RenderedReleases = Sequence[tuple[Release, Sequence[Mapping[str, Any]]]]
"""Releases with the objects that helm renders."""


FLEET_FIXES = {"image-source": "image: {digest: sha256:...}"}
"""Fixes for the fleet file by rule; the fixes of the policies are for manifests."""


@dataclass
class AdmissionResult:
    """Violations of the policies of each cluster by the objects of its releases."""

    problems: list[Problem] = field(default_factory=list)
    """Problems with their lines in the fleet file."""
    warnings: list[str] = field(default_factory=list)
    """Violations of policies that do not deny."""
    done: list[str] = field(default_factory=list)


def check_releases(made: RenderedReleases, rendered: Rendered) -> AdmissionResult:
    """Check the objects of each cluster with the policies that its own platform release installs."""
    result = AdmissionResult()
    for cluster in dict.fromkeys(release.cluster for release, _ in made):
        here = [(release, items) for release, items in made if release.cluster == cluster]
        policies = tuple(read_policies(item for _, items in here for item in items))
        before = len(result.problems)
        for release, item, violation in _find_violations(here, policies):
            for problem in _build_problems(release, item, violation, rendered):
                if problem in result.problems:
                    continue
                if violation.denies:
                    result.problems.append(problem)
                else:
                    result.warnings.append(str(problem))
        if len(result.problems) == before:
            result.done.append(f"cluster `{cluster}`: {len(policies)} admission policies accept every object")
    return result


def check_admission(rendered: Rendered, manifests: Mapping[str, str]) -> None:
    """Check manifests, by path, with the policies of their clusters. Raises FleetError with each denied object."""
    import yaml

    from rayhelm.deploy.charts.helm import Loader

    made = [
        (release, [item for item in yaml.load_all(manifests[locate_manifest(release)], Loader=Loader) if item])
        for release in rendered.releases
    ]
    if problems := check_releases(made, rendered).problems:
        raise FleetError(problems)


def _find_violations(
    here: RenderedReleases, policies: Sequence[AdmissionPolicy]
) -> Iterator[tuple[Release, Mapping[str, Any], PolicyViolation]]:
    """Yield each violation once per rule and release, because the objects of a release repeat each other."""
    known = index_namespaces(item for _, items in here for item in items)
    for release, items in here:
        seen: set[str] = set()
        # The RayService first, because it has the models.
        for item in sorted(items, key=lambda item: item["kind"] != "RayService"):
            violations = [
                violation
                for path, part in project_pods(item)
                for violation in evaluate_policies(
                    policies, part, find_namespace(part, known), by_tenant=not path and release.chart == "ray-service"
                )
                if violation.rule not in seen
            ]
            yield from ((release, item, violation) for violation in violations)
            seen |= {violation.rule for violation in violations}


def _build_problems(
    release: Release, item: Mapping[str, Any], violation: PolicyViolation, rendered: Rendered
) -> Iterator[Problem]:
    """Yield a problem for each model that breaks the rule, else one for the release. If the fleet file has other keys
    than a manifest, the fix of the policy is replaced."""
    message = f"{item['kind']} {item['metadata']['name']}: {violation.what or violation.message}"
    is_revision = violation.rule == RULE and release.chart == "ray-service"
    fleet = rendered.plan.declared
    unpinned = list_unpinned_models(fleet, fleet.models_of(release.name)) if is_revision else []
    for name in unpinned:
        path = rendered.plan.models[name].path
        yield rendered.plan.source.locate(problem_at(path, message, UNPINNED_FIX, violation.rule))
    if not unpinned:
        fix = FLEET_FIXES.get(violation.rule, violation.fix)
        yield locate(Problem(message, fix=fix, rule=violation.rule), release, rendered)
