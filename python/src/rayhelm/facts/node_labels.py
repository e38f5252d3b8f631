"""Labels that say which GPUs a node has, and how they are shared. One file in `data/node_labels/` for each source."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["LabeledGpu", "NodeLabels", "load_node_labels"]

_FOLDER = Path(__file__).parent.parent / "data" / "node_labels"
Keys = tuple[str, ...]


class LabeledGpu(Closed):
    """What the value of a label means: `gpus`, or `reason`."""

    gpus: tuple[str, ...] = ()
    """GPUs of the catalog that have this value. Other labels decide between several."""
    reason: str = ""
    """Why no pool can have such a node; it follows the name of the node."""
    source: str


class NodeLabels(Closed):
    """Labels of one source. Each list has the keys that mean the same."""

    about: str
    """The source, as a noun with `labels` or `names`."""
    name: Keys
    """Name of the GPU."""
    memory_mib: Keys = ()
    """Memory of one GPU in MiB."""
    memory_gib: Keys = ()
    """Memory of one GPU in GiB, with or without the unit `G`."""
    count: Keys = ()
    """Number of GPUs, also if they are shared or divided."""
    sharing: Keys = ()
    """How several pods share a GPU: `time-slicing`, `time-sharing`, `mps`; `none` if they do not."""
    slices: Keys = ()
    """Number of pods that share a GPU."""
    mig_profile: Keys = ()
    """MIG profile of all instances."""
    partition: Keys = ()
    """Partition of an AMD GPU: `spx_nps1` is a whole one."""
    decides: bool = False
    """Read from the GPU itself: a name that is not known here is never replaced by that of another label."""
    values: dict[str, LabeledGpu]
    """Names, which may have `*`."""
    source: str

    def find(self, name: str) -> LabeledGpu | None:
        """Return what a name means; None if it is unknown."""
        if exact := self.values.get(name):
            return exact
        return next((gpu for pattern, gpu in self.values.items() if fnmatch(name.lower(), pattern.lower())), None)

    def list_names(self, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield key and value of each label with a name."""
        return _list_set(self.name, labels)

    def list_memory(self, labels: Mapping[str, str]) -> Iterator[tuple[str, float]]:
        """Yield key and GiB of each label with the memory of a GPU."""
        for keys, divisor in ((self.memory_mib, 1024), (self.memory_gib, 1)):
            for key, text in _list_set(keys, labels):
                number = text.removesuffix("G")
                if number.isdecimal() and int(number):
                    yield key, int(number) / divisor

    def list_counts(self, labels: Mapping[str, str]) -> Iterator[tuple[str, int]]:
        """Yield key and value of each label with the number of GPUs."""
        for key, text in _list_set(self.count, labels):
            if text.isdecimal() and int(text):
                yield key, int(text)


def _list_set(keys: Keys, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((key, labels[key]) for key in keys if labels.get(key))


@cache
def load_node_labels() -> dict[str, NodeLabels]:
    """Return the labels by the name of their file. Those that are read from the GPU are first."""
    tables = {
        path.stem: NodeLabels.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        for path in sorted(_FOLDER.glob("*.yaml"))
    }
    return dict(sorted(tables.items(), key=lambda item: not item[1].decides))
