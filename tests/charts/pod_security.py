"""Pod Security Standards, profile `restricted`, as the standard lists its fields.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator
from typing import Any

VOLUMES = {
    *(
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
}
"""`image` as in the admission plugin of Kubernetes 1.36 (check_restrictedVolumes.go), which tests/cluster asks."""
SAFE_SYSCTLS = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"}


def violations(pod: dict[str, Any]) -> list[str]:
    """What the profile forbids in a pod; empty when it passes."""
    return [
        *_pod(pod["spec"]),
        *(found for part in _containers(pod["spec"]) for found in _container(part, pod["spec"])),
    ]


def _pod(spec: dict[str, Any]) -> Iterator[str]:
    security = spec.get("securityContext", {})
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield key
    for volume in spec.get("volumes", []):
        for kind in set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume['name']}: {kind}"
    if security.get("runAsUser") == 0:
        yield "runAsUser 0"
    for sysctl in security.get("sysctls", []):
        if sysctl["name"] not in SAFE_SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    for key in ("seLinuxOptions", "windowsOptions", "appArmorProfile"):
        if key in security:
            yield f"{key}: not judged here"


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"], *spec.get("ephemeralContainers", [])]


def _container(container: dict[str, Any], spec: dict[str, Any]) -> Iterator[str]:
    name, own, pod = container["name"], container.get("securityContext", {}), spec.get("securityContext", {})
    if own.get("privileged"):
        yield f"{name}: privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: allowPrivilegeEscalation"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{name}: runAsNonRoot"
    if own.get("runAsUser") == 0:
        yield f"{name}: runAsUser 0"
    if own.get("procMount", "Default") != "Default":
        yield f"{name}: procMount"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield f"{name}: capabilities not dropped"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield f"{name}: capabilities added"
    profile = own.get("seccompProfile", pod.get("seccompProfile", {})).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield f"{name}: seccompProfile"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield f"{name}: hostPort"
