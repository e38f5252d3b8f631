"""What the chart's tests share: rendering with either Helm, picking objects, projecting Ray pods."""

import copy
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from rayhelm.deploy.charts.helm import Loader, charts_dir, render

HERE = Path(__file__).parent
VALUES = HERE / "values"
TOOLS = charts_dir().parent / ".tools/bin"
HELMS = {"4": TOOLS / "helm", "3": TOOLS / "helm3"}
FLEETS = {f"{path.parts[-3]}/{path.stem}": path for path in charts_dir().parent.glob("values/*/ray-service/*.yaml")}
EXAMPLES = sorted(path.stem for path in VALUES.glob("*.yaml")) + sorted(FLEETS)

Object = dict[str, Any]


def chat(**model: Any) -> dict[str, Any]:
    """An overlay of the one model of `minimal`."""
    return {"serve": {"applications": {"chat": {"models": {"llama-8b": model}}}}}


FIXED = {"autoscaler": {"enabled": False}, **chat(autoscaling={"maxReplicas": 1})}
"""Without Ray's autoscaler nothing grows."""
INGRESS_ON_CPUS = {
    "serve": {"applications": {"chat": {"ingress": {"workerGroup": "ingress"}}}},
    "workerGroups": {
        "ingress": {
            "gpu": {"count": 0},
            "mountsWeights": False,
            "resources": {"limits": {"cpu": 4, "memory": "8Gi"}},
            "shmSize": "1Gi",
        }
    },
}
"""The ingress on a worker without GPUs, so that those of the model can scale to zero."""
ENGINE_QUEUE = {
    "image": {"includesRayhelm": True},
    "serve": {
        "prometheus": {"url": "http://prometheus.monitoring:9090"},
        **chat(autoscaling={"policy": {"kind": "EngineQueue", "ttftSeconds": 0.6}})["serve"],
    },
}
"""A model that scales by what its engines say."""


def example(name: str) -> dict[str, Any]:
    """Values of this folder, or of a release of a reference fleet (`homelab/ai-inference`)."""
    return copy.deepcopy(_read_example(name))


@cache
def _read_example(name: str) -> dict[str, Any]:
    return yaml.load(values_file(name).read_text(), Loader=Loader)


def values_file(name: str) -> Path:
    return FLEETS.get(name, VALUES / f"{name}.yaml")


def over(base: Any, overlay: Any) -> Any:
    """Helm's merge: maps merge, null drops a key, anything else replaces."""
    if not (isinstance(base, dict) and isinstance(overlay, dict)):
        return copy.deepcopy(overlay)
    merged = copy.deepcopy(base)
    for key, value in overlay.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = over(merged.get(key), value)
    return merged


def accepted_first(model: type[BaseModel], candidates: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Values that the model accepts, then the others: the schema refuses most of those, and only helm can say it."""
    refused = []
    for values in candidates:
        try:
            model.model_validate(values)
        except ValidationError:
            refused.append(values)
        else:
            yield values
    yield from refused


def rendered(
    overlay: dict[str, Any] | None = None,
    *,
    base: str = "minimal",
    release: str = "",
    helm: str = "4",
    options: tuple[str, ...] = (),
    chart: str = "ray-service",
    namespace: str = "models",
) -> list[Object]:
    """Objects of an example's values with others laid over them."""
    release = release or (base.split("/")[1] if base in FLEETS else "chat")
    values = json.dumps(over(example(base), overlay or {}))
    return copy.deepcopy(_rendered(chart, values, release, namespace, helm, options))


def only(objects: list[Object], kind: str, name: str = "") -> Object:
    found = [item for item in objects if item["kind"] == kind and name in ("", item["metadata"]["name"])]
    assert len(found) == 1, f"{kind} {name}: {[item['metadata']['name'] for item in found]}"
    return found[0]


def kinds(objects: list[Object]) -> set[str]:
    return {item["kind"] for item in objects}


def ray_service(overlay: dict[str, Any] | None = None, **options: Any) -> Object:
    return only(rendered(overlay, **options), "RayService")


def serve_config(overlay: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return json.loads(ray_service(overlay, **options)["spec"]["serveConfigV2"])


def llm_config(overlay: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return serve_config(overlay, **options)["applications"][0]["args"]["llm_configs"][0]


def cluster(overlay: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return ray_service(overlay, **options)["spec"]["rayClusterConfig"]


def worker(overlay: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return cluster(overlay, **options)["workerGroupSpecs"][0]


def env(container: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in container["env"]}


def pods(objects: list[Object]) -> list[Object]:
    """Every pod that comes of the objects, those that KubeRay and the Job controller make included."""
    found = [item for item in objects if item["kind"] == "Pod"]
    found += [_pod(item["spec"]["template"], item) for item in objects if item["kind"] == "Job"]
    for service in (item for item in objects if item["kind"] == "RayService"):
        config = service["spec"]["rayClusterConfig"]
        head = _pod(config["headGroupSpec"]["template"], service)
        if config["enableInTreeAutoscaling"]:
            options = config["autoscalerOptions"]
            head["spec"]["containers"].append(
                {
                    "name": "autoscaler",
                    "image": head["spec"]["containers"][0]["image"],
                    **{key: options[key] for key in ("resources", "securityContext", "env", "volumeMounts")},
                }
            )
        found.append(head)
        for group in config["workerGroupSpecs"]:
            pod = _pod(group["template"], service)
            ray = pod["spec"]["containers"][0]
            # KubeRay's own init container copies these from the Ray container.
            copied = {key: ray[key] for key in ("image", "securityContext", "env", "volumeMounts")}
            pod["spec"].setdefault("initContainers", []).append({"name": "wait-gcs-ready", **copied})
            found.append(pod)
    return found


def _pod(template: dict[str, Any], owner: Object) -> Object:
    metadata = {"name": owner["metadata"]["name"], **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template["spec"])}


@cache
def _rendered(
    chart: str, values: str, release: str, namespace: str, helm: str, options: tuple[str, ...]
) -> list[Object]:
    text = render(chart, release, namespace, json.loads(values), options=options, helm=HELMS[helm])
    return parsed(text)


def parsed(text: str) -> list[Object]:
    return [document for document in yaml.load_all(text, Loader=Loader) if document]
