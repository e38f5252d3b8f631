"""Compare two Serve configurations: what Ray Serve restarts, scales, adds and removes."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import yaml

from rayhelm.deploy.serve_models import list_llm_configs

__all__ = ["ServeChange", "compare_serve_configs", "list_replicas", "parse_serve_config"]

_MODEL_ARGUMENTS = ("llm_configs", "llm_config", "prefill_config", "decode_config")


@dataclass(frozen=True)
class ServeChange:
    """What differs, by model."""

    restarted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Models whose replicas Serve restarts, by application."""
    scaled: frozenset[str] = frozenset()
    """Models with a change of the autoscaling only."""
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    @property
    def all_restarted(self) -> frozenset[str]:
        return frozenset(model for models in self.restarted.values() for model in models)


def parse_serve_config(text: str) -> dict[str, Any]:
    """Return a Serve configuration; an empty one for what is neither JSON nor YAML. No API server checks the text of a
    live RayService: applications of another form are left out."""
    try:
        found = json.loads(text)
    except RecursionError:
        found = None
    except ValueError:
        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError):
            found = None
    listed = _as_object(found).get("applications")
    applications = (
        [{"name": "default", **each} for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    )
    return {**_as_object(found), "applications": [each for each in applications if isinstance(each["name"], str)]}


def compare_serve_configs(before: Mapping[str, Any], after: Mapping[str, Any]) -> ServeChange:
    old_applications = {each["name"]: each for each in before["applications"]}
    changed: dict[str, frozenset[str]] = {}
    scaled: set[str] = set()
    for wanted in after["applications"]:
        previous = old_applications.get(wanted["name"])
        if previous is None or previous == wanted or not list_llm_configs(wanted):
            continue
        old, new = _list_models(previous), _list_models(wanted)
        edited = {
            name for name in new if name in old and _remove_autoscaling(old[name]) != _remove_autoscaling(new[name])
        }
        only_scaled = {name for name in new if name in old and old[name] != new[name]} - edited
        is_changed_around = _remove_autoscaling(previous, models=False) != _remove_autoscaling(wanted, models=False)
        # If only the application around the models changes, Serve deploys all of it again.
        changed[wanted["name"]] = frozenset(edited or (new if is_changed_around and not only_scaled else ()))
        scaled |= only_scaled
    first, last = (frozenset(_list_all(config)) for config in (before, after))
    return ServeChange(
        {name: models for name, models in changed.items() if models}, frozenset(scaled), last - first, first - last
    )


def list_replicas(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the replicas that always run, by model; 1 for an application without models."""
    found: dict[str, int] = {}
    for application in config["applications"]:
        models = _list_models(application)
        if not models:
            found[str(application["name"])] = 1
        for name, model in models.items():
            deployment = _as_object(model.get("deployment_config"))
            scaling = _as_object(deployment.get("autoscaling_config"))
            least = scaling.get("min_replicas", deployment.get("num_replicas", 1))
            found[name] = least if isinstance(least, int) else 1
    return found


def _list_all(config: Mapping[str, Any]) -> Iterator[str]:
    for application in config["applications"]:
        yield from _list_models(application) or [str(application["name"])]


def _list_models(application: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of each model; the one of its replicas for prompts is below `prefill_config`."""
    prefill = _as_object(application.get("args")).get("prefill_config")
    beside = {"prefill_config": prefill} if prefill else {}
    return {_name(config): config | beside for config in list_llm_configs(application)}


def _name(config: Mapping[str, Any]) -> str:
    return str(_as_object(config.get("model_loading_config")).get("model_id", "?"))


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _remove_autoscaling(part: Mapping[str, Any], *, models: bool = True) -> Any:
    """Return a part of the configuration without its autoscaling, and without models if `models` is false."""
    left = deepcopy(dict(part))
    if not models:
        left["args"] = {
            key: value for key, value in _as_object(left.get("args")).items() if key not in _MODEL_ARGUMENTS
        }
    for config in (left, _as_object(left.get("prefill_config"))):
        _as_object(config.get("deployment_config")).pop("autoscaling_config", None)
    return left
