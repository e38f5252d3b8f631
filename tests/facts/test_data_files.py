"""Data files of the package."""

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

DATA = Path(str(files("rayhelm").joinpath("data")))
FILES = sorted(DATA.rglob("*.yaml"))


def list_duplicates(node: yaml.Node | None) -> Iterator[str]:
    """Keys that a mapping has twice. YAML's loaders keep the last one without an error."""
    if isinstance(node, yaml.MappingNode):
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        yield from (f"line {node.start_mark.line + 1}: {key}" for key, count in counts.items() if count > 1)
        for _, value in node.value:
            yield from list_duplicates(value)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from list_duplicates(item)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_data_file_has_each_key_once(path: Path) -> None:
    documents = yaml.compose_all(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert [text for document in documents for text in list_duplicates(document)] == []


def test_duplicate_key_is_found() -> None:
    assert [*list_duplicates(yaml.compose("a: [{b: 1, b: 2}]"))] == ["line 1: b"]
