"""What the admission policies of a fleet's clusters would say to the fleet's own objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayhelm.admission.evaluate import Verdict, judge, namespace_of, namespaces_of
from rayhelm.admission.pods import projected
from rayhelm.admission.policy import Policy, policies_of
from rayhelm.errors import Problem
from rayhelm.lint.locate import placed
from rayhelm.render.releases import Release
from rayhelm.spec.load import LoadedFleet

__all__ = ["Judged", "Made", "judge_releases"]

Made = Sequence[tuple[Release, Sequence[Mapping[str, Any]]]]
"""Releases with the objects that helm renders of them."""

MENDS = {
    "model-revision": 'revision: "<40 hexadecimal digits of the commit>"   # or unpinnedReason: "..."',
    "image-source": "image: {digest: sha256:...}",
}
"""What to write in the fleet file; the fixes of the policies are for manifests."""
OF_MODELS = ("model-revision", "trust-reason")
"""Rules whose words end in the names of models."""


@dataclass
class Judged:
    """What the policies of each cluster have against the objects of its releases."""

    problems: list[Problem] = field(default_factory=list)
    """At their places in the fleet file."""
    warnings: list[str] = field(default_factory=list)
    """Of policies that do not deny."""
    done: list[str] = field(default_factory=list)


def judge_releases(made: Made, loaded: LoadedFleet) -> Judged:
    """By the policies that each cluster's own platform release installs."""
    judged = Judged()
    for cluster in dict.fromkeys(release.cluster for release, _ in made):
        here = [(release, items) for release, items in made if release.cluster == cluster]
        policies = tuple(policies_of(item for _, items in here for item in items))
        before = len(judged.problems)
        for release, problem, denied in _problems_of(here, policies):
            told = placed(problem, release, loaded)
            if denied:
                judged.problems.append(told)
            else:
                judged.warnings.append(str(told))
        if len(judged.problems) == before:
            judged.done.append(f"cluster `{cluster}`: {len(policies)} admission policies let everything pass")
    return judged


def _problems_of(here: Made, policies: Sequence[Policy]) -> Iterator[tuple[Release, Problem, bool]]:
    """By release, with whether it is denied; a rule once for each release, for its objects repeat each other."""
    known = namespaces_of(item for _, items in here for item in items)
    for release, items in here:
        told: set[str] = set()
        # A RayService names its models, and a Job only what it runs.
        for item in sorted(items, key=lambda item: item["kind"] != "RayService"):
            verdicts = list(_verdicts(item, policies, known))
            for verdict in (each for each in verdicts if each.rule not in told):
                yield from ((release, problem, verdict.denies) for problem in _problems(item, verdict))
            told |= {each.rule for each in verdicts}


def _verdicts(item: Mapping[str, Any], policies: Sequence[Policy], known: Mapping[str, Any]) -> Iterator[Verdict]:
    for _, part in projected(item):
        yield from judge(policies, part, namespace_of(part, known))


def _problems(item: Mapping[str, Any], verdict: Verdict) -> Iterator[Problem]:
    """One for each model that it names."""
    what, _, models = (verdict.what or verdict.message).rpartition(": ") if verdict.rule in OF_MODELS else ("", "", "")
    for model in models.split(", "):
        told = f"{what}: {model}" if what else verdict.what or verdict.message
        name = f"{item['kind']} {item['metadata']['name']}"
        yield Problem(f"{name}: {told}", fix=MENDS.get(verdict.rule, verdict.fix), rule=verdict.rule)
