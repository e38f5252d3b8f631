"""Allow-lists of a tenant that would refuse what the charts render are refused at render."""

from pathlib import Path

import pytest
import yaml

from rayhelm.deploy.render.files import render_fleet
from rayhelm.errors import Fix, FleetError
from rayhelm.fleet.document import read_document
from shared.apply_fix import apply_fix

FLEET = """\
fleet: one
pools: {{pool: {{gpu: L4-24GB, nodes: 2}}}}
models:
  a: {{source: meta-llama/Llama-3.1-8B-Instruct, revision: 0e9e39f249a16976918f6564b8830bc894c89659, context: 4096}}
services: {{a: {{tenant: search}}}}
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, values: {platform}}}}}
tenants:
  search:
    values: {values}
"""


def write(folder: Path, values: str, platform: str = "{}") -> Path:
    path = folder / "fleet.yaml"
    path.write_text(FLEET.format(values=values, platform=platform))
    return path


@pytest.mark.parametrize(
    ("values", "words", "key"),
    [
        ("{quota: {allowedPriorityClasses: [rayhelm-batch]}}", "it lacks rayhelm-head, rayhelm-workers", "quota"),
        ("{networkPolicy: {allowed: {namespaces: [\"kube-system:53\"]}}}", "kuberay-system", "networkPolicy"),
    ],
    ids=["priority classes", "namespaces"],
)  # fmt: skip
def test_allow_list_that_refuses_our_charts_is_refused(tmp_path: Path, values: str, words: str, key: str) -> None:
    path = write(tmp_path, values)
    with pytest.raises(FleetError) as caught:
        render_fleet(path)
    (problem,) = caught.value.problems
    assert words in problem.message
    assert problem.line
    assert isinstance(problem.fix, Fix)
    assert problem.fix.path.startswith(f"tenants.search.values.{key}.")
    path.write_text(yaml.safe_dump(apply_fix(read_document(path), problem.fix)))
    render_fleet(path)


def test_priority_class_with_a_quota_of_its_own_counts_as_allowed(tmp_path: Path) -> None:
    classes = "priorityClasses: {rayhelm-head: {pods: 4}}"
    render_fleet(write(tmp_path, f"{{quota: {{allowedPriorityClasses: [rayhelm-workers], {classes}}}}}"))


def test_namespaces_may_be_missing_when_the_policy_only_warns(tmp_path: Path) -> None:
    platform = "{policies: {tenantNetwork: {action: Warn, reason: the rollout of policies}}}"
    render_fleet(write(tmp_path, '{networkPolicy: {allowed: {namespaces: ["kube-system:53"]}}}', platform))
