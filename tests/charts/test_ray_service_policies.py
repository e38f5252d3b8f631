"""The smallest values of the README pass the default policies of the smallest platform."""

import re

import pytest
import yaml

from charts.each_chart import chart_of
from charts.kit import HELMS
from rayhelm.check.lint.manifests import lint_manifests


def smallest_of_readme(name):
    (block,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", chart_of(name).readme, re.DOTALL)
    return yaml.safe_load(block)


@pytest.mark.parametrize("helm", HELMS)
def test_smallest_values_pass_the_default_policies(tmp_path, helm):
    service, platform = chart_of("ray-service"), chart_of("platform")
    objects, policies = tmp_path / "objects", tmp_path / "policies.yaml"
    objects.mkdir()
    (objects / "chat.yaml").write_text(service.text(smallest_of_readme("ray-service"), helm=HELMS[helm]))
    policies.write_text(platform.text(smallest_of_readme("platform"), helm=HELMS[helm]))
    assert "ValidatingAdmissionPolicyBinding" in policies.read_text()
    assert lint_manifests(objects, policies).done


def test_smallest_values_without_a_tenant_fail_the_policy_of_gpu_owners(tmp_path):
    values = {**smallest_of_readme("ray-service"), "tenant": ""}
    (tmp_path / "chat.yaml").write_text(chart_of("ray-service").text(values))
    with pytest.raises(Exception, match=re.escape("rayhelm.dev/tenant")):
        lint_manifests(tmp_path)
