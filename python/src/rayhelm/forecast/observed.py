"""Edits of a RayService and what KubeRay was seen to do with each: `data/kuberay/edits-<version>.yaml`.

A test makes every edit on a real API server with the real operator, and compares what it sees with these files.
"""

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.closed import Closed

__all__ = ["Count", "Edit", "Observed", "Operator", "Outcome", "Pods", "Put", "Row", "Step", "Table", "observed_edits"]

Outcome = Literal[
    "nothing",  # no RayCluster, Service or pod changed, and Ray was told nothing
    "serve config",  # Ray was told a configuration, and nothing else changed
    "in place",  # the RayCluster that serves was changed, and goes on serving
    "beside",  # Services or labels of pods changed, and no RayCluster
    "new cluster",  # another RayCluster was built and took over
    "new cluster, waiting",  # another RayCluster was built and has not taken over
    "invalid",  # the operator calls the RayService wrong, and looks at it no more
    "refused",  # the API server did not take the edit
]

Operator = Literal["runs", "restarts", "other takes over", "takes over from other"]
"""Where the operator is while the edit is made: `runs`; otherwise it is down, and then the same one starts, or one of
another version in place of the one under test, or the one under test in place of the other."""


class Step(Closed):
    """One thing that is done. The next one is done when the operator has come to rest."""

    patch: dict[str, Any] | list[dict[str, Any]] | None = None
    """Of the RayService: a merge patch, or a JSON patch where it is a list."""
    scale: dict[str, int] = {}
    """Workers by group, written into the serving RayCluster as Ray's autoscaler does."""
    ray: Literal["", "fails", "heals"] = ""
    """`fails`: applications of every RayCluster that is built from now on end in DEPLOY_FAILED; `heals`: they run."""

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if sum(map(bool, (self.patch, self.scale, self.ray))) != 1:
            raise ValueError("a step is one of patch, scale and ray")
        return self


class Edit(Closed):
    """An edit of a RayService that is Ready."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    edit: str
    """In words."""
    before: tuple[Step, ...] = ()
    """What leads from the chart's own RayService to the one that is edited."""
    operator: Operator = "runs"
    steps: tuple[Step, ...] = ()
    """The edit; none where something happens to the operator alone."""
    by_chance: tuple[str, ...] = ()
    """What of `Observed` is not the same in every run: it hangs on which of two things the operator sees first."""


class Count(Closed):
    """How many before the edit, at most or at least on the way, and when the operator had come to rest."""

    before: int
    on_the_way: int
    after: int


class Pods(Closed):
    """Pods of the head or of a group, before the edit and after."""

    kept: int = 0
    """The same pods, by UID."""
    added: int = 0
    gone: int = 0


class Put(Closed):
    """A Serve configuration that the operator sent to Ray."""

    to: str
    """RayCluster."""
    config: Literal["first", "edited", "other"]
    """`first`: the one before the edit, whether or not it was edited."""
    status: int
    """HTTP status of Ray's answer."""
    again_and_again: bool = False


class Observed(Closed):
    """What was seen. RayClusters are called `<rs>-1`, `<rs>-2`, ... in the order in which they were made; `<rs>` is the
    RayService."""

    outcome: Outcome
    said: tuple[str, ...] = ()
    """The words of a refusal, and warnings of the API server."""
    serves: tuple[str, str]
    """The RayCluster that serves, before and after."""
    hash: Literal["kept", "changed"]
    """The hash of the RayCluster that serves: that of the specification from which the operator made it."""
    clusters: Count
    """RayClusters; at most on the way."""
    gpus: Count
    """Cards held by pods that are bound to a node; at most on the way."""
    endpoints: Count
    """Pods that are Ready and that the Service for traffic selects; at least on the way."""
    endpoints_said: int
    """Those that the RayService's status tells after the edit."""
    conditions: tuple[str, ...]
    """Conditions of the RayService before the edit, and each change of one; reasons included."""
    errors: tuple[str, ...] = ()
    """With what the operator's passes ended at last, again and again; the beginning of each."""
    puts: tuple[Put, ...] = ()
    pods: dict[str, Pods]
    """By `head` or the group's name."""
    changed: dict[str, dict[str, tuple[Any, Any]]]
    """Object to path to old and new value, as the API server stores them; null for what is not there. Of a RayService
    and of kept pods without status; of the serving RayCluster also where another one has taken its place. Names that
    are made by chance, UIDs, times and hashes are left out."""


class Row(Edit):
    """An edit and what it did."""

    kuberay: str
    """Version of the operator under test."""
    other: str = ""
    """Version of the other operator, where there is one."""
    how: str = ""
    """The command that observes it, where it is not that of the table."""
    observed: Observed | Literal["no"]
    reason: str = ""
    """Why it was not observed."""

    @model_validator(mode="after")
    def _says_why_not(self) -> Self:
        if (self.observed == "no") != bool(self.reason):
            raise ValueError(f"{self.id}: a row that was not observed gives the reason, and no other does")
        return self


class Table(Closed):
    """One file."""

    kuberay: str
    """Version of the operator."""
    kubernetes: str
    """Version of the API server on which it was written."""
    how: str
    """The command that observes the rows and writes them down."""
    values: dict[str, Any]
    """Of the chart `ray-service`: its RayService is the one that is edited."""
    rows: tuple[Row, ...]


@cache
def observed_edits(kuberay: str) -> Table | None:
    """What an operator of this version was seen to do; None where nobody has looked."""
    file = files("rayhelm").joinpath(f"data/kuberay/edits-{kuberay}.yaml")
    return Table.model_validate(yaml.safe_load(file.read_bytes())) if file.is_file() else None
