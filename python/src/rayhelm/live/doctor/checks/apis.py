"""The API server serves every kind that the installation needs: CRDs are installed, in the version that is used."""

from collections.abc import Iterator

from rayhelm.live.cluster.reader import AbsentError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts
from rayhelm.live.doctor.finding import Finding, Severity

_ALWAYS = {("ray.io/v1", "RayService"), ("ray.io/v1", "RayCluster")}
_SOURCES = {
    "ray.io": "helm install kuberay-operator kuberay/kuberay-operator -n {kuberay} --create-namespace",
    "keda.sh": "helm install keda kedacore/keda -n keda --create-namespace",
    "monitoring.coreos.com": "helm install kube-prometheus-stack prometheus-community/kube-prometheus-stack"
    " -n monitoring --create-namespace",
    "gateway.networking.k8s.io": "kubectl apply --server-side -f standard-install.yaml"
    "    # of a release of kubernetes-sigs/gateway-api",
    "cert-manager.io": "helm install cert-manager jetstack/cert-manager -n cert-manager --create-namespace"
    " --set crds.enabled=true",
    "nvidia.com": "helm install gpu-operator nvidia/gpu-operator -n gpu-operator --create-namespace",
}
"""How to install the CRDs of an API group; `{kuberay}` is the namespace of the KubeRay operator."""


def _find(facts: Facts) -> Iterator[Finding]:
    wanted = _ALWAYS | {(item["apiVersion"], item["kind"]) for item in facts.manifests}
    for version in sorted({version for version, _ in wanted}):
        kinds = {kind for each, kind in wanted if each == version}
        try:
            served = {item["kind"] for item in facts.reader.get_path(_path(version)).get("resources", [])}
        except AbsentError:
            served = set()
        for kind in sorted(kinds - served):
            group = version.partition("/")[0] if "/" in version else ""
            yield Finding(
                object=f"{version} {kind}",
                evidence=f"the API server does not serve it at {_path(version)}",
                cause="the CRD is not installed, or has another version; the objects of this kind cannot be applied",
                fix=_SOURCES.get(
                    group, f"kubectl api-resources --api-group={group}    # install what provides it"
                ).replace("{kuberay}", facts.kuberay_namespace),
            )


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


CHECK = Check(title="kinds and CRDs", severity=Severity.critical, find=_find)
