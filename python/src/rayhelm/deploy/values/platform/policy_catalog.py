"""Settings of each policy, read from `data/policies.json`, which `make generate` writes."""

import json
from functools import cache
from importlib.resources import files
from typing import Literal

from rayhelm.facts.closed import Closed

__all__ = ["AboutPolicy", "PolicyList", "load_policy_catalog"]


class PolicyList(Closed):
    """A list of exceptions. The chart replaces the variable of the same name in the policy with this list."""

    of: Literal["models", "registries"]
    description: str
    default: dict[str, str] = {}
    """Entries with their reasons."""


class AboutPolicy(Closed):
    """First document of a policy.yaml.in."""

    description: str
    """One sentence: what the policy requires."""
    requires: tuple[str, ...] = ()
    """Policies that this one relies on: they must have action `Deny` too."""
    lists: dict[str, PolicyList] = {}


@cache
def load_policy_catalog() -> dict[str, AboutPolicy]:
    """Return the policies by name, in alphabetical order."""
    data = json.loads(files("rayhelm").joinpath("data/policies.json").read_text(encoding="utf-8"))
    return {name: AboutPolicy.model_validate(about) for name, about in data.items()}
