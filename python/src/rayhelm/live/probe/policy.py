"""The admission policy for Jobs in the namespace of a probe: their account may create any Job there, so the policy says
what a Job may be."""

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["POLICY", "build_policy"]

Object = dict[str, Any]
POLICY = "rayhelm-probe-jobs"
_ADMISSION = "admissionregistration.k8s.io/v1"
_FIELDS = {
    "probe-account": "serviceAccountName, template.spec, spec",
    "probe-token": "automountServiceAccountToken, template.spec, spec",
    "probe-volumes": "volumes, template.spec, spec",
    "probe-environment": "containers, template.spec, spec",
    "probe-image": "image, containers, template.spec, spec",
    "probe-priority": "priorityClassName, template.spec, spec",
    "probe-pull-secrets": "imagePullSecrets, template.spec, spec",
}
"""Possible paths of the field of each rule, as `rayhelm.dev/field-` annotations have them."""


def build_policy(
    namespace: str, account: str, worker: str, images: Sequence[str], priority_class: str
) -> tuple[Object, Object]:
    """Return the policy and its binding.

    `account` runs a probe, and may mount its own ConfigMap; `worker` is the account of the pods that measure."""
    variables = {
        "account": json.dumps(account),
        "worker": json.dumps(worker),
        "images": json.dumps(list(images), separators=(",", ":")),
        "priorityClass": json.dumps(priority_class),
        "pod": "object.spec.template.spec",
        "containers": (
            "variables.pod.containers + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])"
        ),
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["batch"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["jobs"],
                }
            ]
        },
        "variables": [{"name": name, "expression": text} for name, text in variables.items()],
        "validations": [{"expression": expression, "message": message} for expression, message in _list_rules()],
    }
    selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    binding = {
        "policyName": POLICY,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchExpressions": [selector]}},
    }
    about = {f"rayhelm.dev/field-{rule}": paths for rule, paths in _FIELDS.items()}
    return (
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": POLICY, "annotations": about},
            "spec": policy,
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": binding,
        },
    )


def _list_rules() -> list[tuple[str, str]]:
    """Return expressions with their messages, `RULE: WHAT. Write: FIX` as those of the other policies."""
    return [
        (
            "has(variables.pod.serviceAccountName)"
            " && variables.pod.serviceAccountName in [variables.account, variables.worker]",
            "probe-account: a Job of the probe has another account. Write: serviceAccountName: rayhelm-probe-worker",
        ),
        (
            "(has(variables.pod.serviceAccountName) && variables.pod.serviceAccountName == variables.account)"
            " || (has(variables.pod.automountServiceAccountToken) && !variables.pod.automountServiceAccountToken)",
            "probe-token: a pod that measures needs no token. Write: automountServiceAccountToken: false",
        ),
        (
            "!has(variables.pod.volumes) || variables.pod.volumes.all(v, has(v.emptyDir)"
            " || (has(v.configMap) && has(v.configMap.name) && v.configMap.name == variables.account))",
            "probe-volumes: a Job of the probe mounts a Secret, a token or another ConfigMap. Write: volumes: [{name:"
            " tmp, emptyDir: {sizeLimit: 1Gi}}]",
        ),
        (
            "variables.containers.all(c, !has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom))))",
            "probe-environment: a Job of the probe reads its environment from another object. Write: env: [{name:"
            ' HOME, value: "/tmp"}]',
        ),
        (
            "variables.containers.all(c, has(c.image) && c.image in variables.images)",
            "probe-image: the image of a Job is none of the probe's. Write: probe.images of chart platform, or rayhelm"
            " probe FLEET --setup --image IMAGE | kubectl apply -f -",
        ),
        (
            "!has(variables.pod.priorityClassName) || variables.pod.priorityClassName == variables.priorityClass",
            "probe-priority: a Job of the probe with another PriorityClass could preempt services. Write:"
            " priorityClassName: rayhelm-batch",
        ),
        (
            "!has(variables.pod.imagePullSecrets) || size(variables.pod.imagePullSecrets) == 0",
            "probe-pull-secrets: a Job of the probe uses a Secret. Write: imagePullSecrets: []",
        ),
    ]
