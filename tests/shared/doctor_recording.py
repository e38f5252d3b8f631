"""The answers of a healthy cluster with fleet two-workstations.

It has the objects that controllers make, or write a status into.

Objects that the fleet renders are rendered again, so a change of a chart needs no new recording."""

import json
from pathlib import Path
from typing import Any

__all__ = ["FILE", "read_recording", "write_recording"]

FILE = Path(__file__).parent / "data/doctor-two-workstations.json"
_KEPT = {
    *("apiservices", "deployments", "endpointslices", "jobs", "namespaces", "nodes", "persistentvolumeclaims"),
    *("poddisruptionbudgets", "pods", "rayclusters", "rayservices", "resourcequotas", "services", "v1", "version"),
}
_NOT_ANSWERS = ("managedFields", "uid", "resourceVersion")


def write_recording(answers: dict[str, Any], file: Path) -> None:
    """Write answers, a line for each object, so that a new recording shows what differs."""
    kept = {path: _strip(answer) for path, answer in sorted(answers.items()) if path.rpartition("/")[2] in _KEPT}
    parts = [f"{json.dumps(path)}: {_format(answer)}" for path, answer in kept.items()]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def read_recording() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(FILE.read_text())
    return answers


def _format(answer: dict[str, Any]) -> str:
    if not isinstance(answer.get("items"), list):
        return json.dumps(answer, sort_keys=True)
    return '{"items": [\n' + ",\n".join(json.dumps(item, sort_keys=True) for item in answer["items"]) + "\n]}"


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if key not in _NOT_ANSWERS}
    return [_strip(item) for item in value] if isinstance(value, list) else value
