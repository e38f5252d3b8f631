"""A RayService as a document in which serveConfigV2 is data too, with the line of each key in its block of text."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from rayhelm.check.admission.manifests import Manifest
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.document import Document
from rayhelm.fleet.yaml_nodes import Builder, Loader, Path, dotted

__all__ = [
    "CLUSTER",
    "CONFIG",
    "ImageVersions",
    "RayService",
    "as_list",
    "as_map",
    "read_ray_service",
    "read_service_config",
]

CONFIG: Path = ("spec", "serveConfigV2")
CLUSTER: Path = ("spec", "rayClusterConfig")
_BLOCK = re.compile(r"[|>][-+0-9]*\s*(#.*)?$")
"""End of a line before a block of text."""
_RAY_IMAGE = re.compile(r"(?:.*/)?rayproject/(?P<name>ray[a-z-]*):(?P<tag>(?P<ray>\d+\.\d+\.\d+)\S*)")
_PYTHON = re.compile(r"-py(3)(\d+)\b")


def as_map(value: Any) -> Mapping[str, Any]:
    """Return a map, or an empty one for a value that is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one for a value that is none."""
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class ImageVersions:
    """What the tag of an image of the Ray project says; empty texts for another image."""

    name: str = ""
    """`ray-llm`."""
    ray: str = ""
    python: str = ""
    tag: str = ""

    @classmethod
    def of_image(cls, image: object) -> "ImageVersions":
        found = _RAY_IMAGE.fullmatch(str(image).partition("@")[0])
        if not found:
            return cls()
        python = _PYTHON.search(found["tag"])
        return cls(found["name"], found["ray"], ".".join(python.groups()) if python else "", found["tag"])


@dataclass(frozen=True)
class RayService:
    """One RayService."""

    name: str
    document: Document

    @property
    def config(self) -> Mapping[str, Any]:
        return as_map(as_map(self.document.data.get("spec")).get("serveConfigV2"))

    @property
    def cluster(self) -> Mapping[str, Any]:
        return as_map(as_map(self.document.data.get("spec")).get("rayClusterConfig"))

    def list_applications(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield each application with its path."""
        for at, application in enumerate(as_list(self.config.get("applications"))):
            if isinstance(application, dict):
                yield (*CONFIG, "applications", at), application

    def list_groups(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield the head group and the worker groups with their paths."""
        yield (*CLUSTER, "headGroupSpec"), as_map(self.cluster.get("headGroupSpec"))
        for at, group in enumerate(as_list(self.cluster.get("workerGroupSpecs"))):
            yield (*CLUSTER, "workerGroupSpecs", at), as_map(group)

    def list_images(self) -> Iterator[tuple[Path, str]]:
        """Yield the image of the Ray container, which is the first one, of each group that has one."""
        for path, group in self.list_groups():
            containers = as_list(as_map(as_map(group.get("template")).get("spec")).get("containers"))
            if containers and (image := as_map(containers[0]).get("image")):
                yield (*path, "template", "spec", "containers", 0, "image"), str(image)


def read_service_config(name: str, text: str) -> RayService:
    """Read the Serve config of a RayService alone, as the chart writes it: JSON."""
    return RayService(name, Document("", {"spec": {"serveConfigV2": json.loads(text)}}))


def read_ray_service(manifest: Manifest) -> RayService:
    """Read the serveConfigV2 of a RayService. Raises FleetError with file and line if it is no map."""
    item, name = dict(manifest.item), str(manifest.item["metadata"].get("name", ""))
    spec, lines = dict(as_map(item.get("spec"))), dict(manifest.lines)
    text = spec.get("serveConfigV2")
    if text is not None and not isinstance(text, str):
        message = "is not a text, and the API server refuses it: `serveConfigV2: |` with the YAML below it"
        raise _refuse(message, manifest, manifest.lines.get(CONFIG, 1))
    if isinstance(text, str):
        spec["serveConfigV2"], below = _read_config(text, manifest)
        lines.update(below)
    return RayService(name, Document(manifest.file, {**item, "spec": spec}, lines))


def _read_config(text: str, manifest: Manifest) -> tuple[Any, dict[Path, int]]:
    start = manifest.lines.get(CONFIG, 1)
    is_block = start <= len(manifest.text) and bool(_BLOCK.search(manifest.text[start - 1]))
    builder = Builder(manifest.file)
    try:
        nodes = builder.compose(text)
    except yaml.MarkedYAMLError as error:
        row = error.problem_mark.line + 1 if error.problem_mark else 0
        raise _refuse(f"not valid YAML: {error.problem}", manifest, start + row * is_block) from None
    except yaml.YAMLError:
        raise _refuse("not valid YAML: a control character", manifest, start) from None
    if len(nodes) != 1 or not isinstance(nodes[0], yaml.MappingNode):
        raise _refuse("not a map with `applications`", manifest, start)
    data = builder.build(nodes[0], ())
    problems = [problem for problem in builder.problems if not problem.message.startswith("merge keys")]
    if problems:
        raise FleetError([_move(problem, start, is_block=is_block) for problem in problems])
    if builder.problems:  # KubeRay reads merge keys, which a fleet file does not have
        data = yaml.load(text, Loader=Loader)
    return data, {(*CONFIG, *path): start + line * is_block for path, line in builder.lines.items() if path}


def _refuse(message: str, manifest: Manifest, line: int) -> FleetError:
    fix = Fix.advice("`applications:`, a list of maps with `name` and `import_path`")
    return FleetError(Problem(message, dotted(CONFIG), manifest.file, line, fix, "ray-config"))


def _move(problem: Problem, start: int, *, is_block: bool) -> Problem:
    path = ".".join(part for part in (dotted(CONFIG), problem.path) if part)
    message = re.sub(r"(?<=line )\d+", lambda found: str(start + int(found[0]) * is_block), problem.message)
    line = start + (problem.line or 0) * is_block
    return replace(problem, message=message, path=path, line=line, rule="ray-config")
