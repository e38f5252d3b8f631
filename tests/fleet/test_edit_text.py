"""One number of a fleet file changes, and every other byte stays."""

import random
import re
from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.edit_text import set_number, set_text
from rayhelm.fleet.load import parse_fleet
from shared.small_fleet import SMALL

ROOT = Path(__file__).parents[2]
FLEETS = [
    *sorted((ROOT / "values").glob("*/fleet.yaml")),
    *sorted((ROOT / "benchmarks/failures/fleets").glob("*.yaml")),
]
VERSION = """\
  chat-next: {source: Qwen/Qwen3-8B, context: 4096, servedAs: {model: chat, version: next, weight: 20}}
"""
PATH = ("models", "chat-next", "servedAs", "weight")
BLOCK = """\
# fleet é 😀
fleet: small
pools: {gpu: {gpu: L4-24GB, nodes: 2}}   # two

models:
  chat-next:
    source: Qwen/Qwen3-8B
    servedAs:   # canary
      version: next   # a comment
      model: "chat"
      weight: 5       # raised by hand
    context: 4096
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096}
"""


def edit(text: str, value: int) -> str:
    return set_number(text, "fleet.yaml", PATH, value)


def without_weight(text: str) -> str:
    return re.sub(r"( *|, )weight: \d+[^\n}]*", "", text).replace('"chat"\n\n', '"chat"\n')


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("text", [SMALL + VERSION, BLOCK])
def test_edit_changes_the_digits_alone(text: str, mark: str, line_break: str) -> None:
    text = mark + text.replace("\n", line_break)
    old = re.search(r"weight: (\d+)", text)
    assert old
    assert edit(text, 100) == f"{text[: old.start(1)]}100{text[old.end(1) :]}"


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [SMALL + VERSION, BLOCK])
def test_missing_weight_becomes_the_last_key(text: str, line_break: str) -> None:
    text = without_weight(text).replace("\n", line_break)
    changed = edit(text, 1)
    (new,) = re.findall(r", weight: 1|\r?\n      weight: 1", changed)
    assert changed.replace(new, "") == text
    assert parse_document(changed, "f").value(PATH) == 1


def test_missing_weight_is_written_behind_the_last_line_without_a_line_break() -> None:
    text = f"{SMALL}  chat-next:\n    source: Qwen/Qwen3-8B\n    servedAs:\n      model: chat\n      version: next"
    assert edit(text, 1) == f"{text}\n      weight: 1"


@pytest.mark.parametrize(
    ("written", "more"),
    [
        ("weight: &w 20", "    replicas: 2\n"),
        ("weight: !!int 20", ""),
        ("weight:\n          20", ""),
    ],
)
def test_anchor_and_tag_of_a_number_stay(written: str, more: str) -> None:
    text = BLOCK.replace("weight: 5 ", f"{written} ").replace(
        "    context: 4096\n  chat:", f"    context: 4096\n{more}  chat:"
    )
    assert edit(text, 50) == text.replace("20 ", "50 ")


SHARED = {
    "the number is an alias": BLOCK.replace("weight: 5", "weight: *n").replace("nodes: 2", "nodes: &n 2"),
    "the number has an alias": BLOCK.replace("weight: 5", "weight: &n 5").replace(
        "  chat: {source", "  chat: {traffic: {requestsPerSecond: *n, inputTokens: 9, outputTokens: 9}, source"
    ),
    "the map is shared": SMALL
    + "  a: {source: Qwen/Qwen3-8B, context: 4096, servedAs: &canary {model: chat, version: next, weight: 5}}\n"
    + "  chat-next: {source: Qwen/Qwen3-8B, context: 4096, servedAs: *canary}\n",
}


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
def test_shared_number_is_refused_with_the_map_written_out(text: str) -> None:
    with pytest.raises(FleetError) as refused:
        edit(text, 50)
    (problem,) = refused.value.problems
    assert problem.path == "models.chat-next.servedAs"
    assert problem.line == text[: text.index("servedAs", text.index("chat-next"))].count("\n") + 1
    assert "an anchor (`&`) or alias (`*`) shares it with other values" in problem.message
    assert "servedAs: {" in problem.fix_text


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_edit_of_any_reference_fleet_keeps_every_other_byte(path: Path) -> None:
    """Each model gets a second version, in either style; the weights are random, and so is the model that is edited."""
    chosen = random.Random(path.parent.name)
    text = path.read_text(encoding="utf-8")
    models = [name for name, spec in parse_document(text, "f").data["models"].items() if "servedAs" not in spec]
    added, expected = [], {}
    for name in models:
        weight = chosen.randrange(101)
        key = f"{name}-second".replace("/", "-")
        served_as = f"{{model: {name}, version: next, weight: {weight}}}   # {weight}"
        if chosen.random() < 0.5:
            served_as = f"\n      model: {name}   # clients\n      weight: {weight}   # {weight}\n      version: next"
        added.append(f"  {key}:\n    servedAs: {served_as}\n")
        expected[key] = weight
    text = re.sub(r"(?m)^models:.*\n", lambda found: found[0] + "".join(added), text, count=1)
    for key, old in expected.items():
        new = (old + chosen.randrange(1, 100)) % 101
        changed = set_number(text, "f", ("models", key, "servedAs", "weight"), new)
        start = text.index("weight: ", text.index(f"  {key}:\n")) + len("weight: ")
        assert changed == text[:start] + str(new) + text[start + len(str(old)) :]


def test_edit_of_the_fleet_with_versions_is_an_accepted_fleet() -> None:
    path = ROOT / "benchmarks/failures/fleets/versions.yaml"
    text = path.read_text(encoding="utf-8")
    changed = edit(text, 20)
    assert parse_fleet(parse_document(changed, "f")).fleet.models["chat-next"].served_as.weight == 20  # type: ignore[union-attr]
    assert changed == text.replace("version: next, weight: 0", "version: next, weight: 20")


NESTED = """\
fleet: small   # a comment
clusters:
  main:
    image:   # ours
      repository: registry.example/ray   # moved
      tag: "1"
    # behind the image
  edge: {image: {repository: 'registry.example/ray', tag: '1'}}
pools: {gpu: {gpu: L4-24GB, nodes: 2}}
# the end
"""


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        (("clusters", "edge", "image", "tag"), "2.0-a", "tag: '1'}", "tag: 2.0-a}"),
        (("clusters", "main", "image", "tag"), "7", 'tag: "1"', 'tag: "7"'),
        (("clusters", "main", "image", "digest"), "sha256:ab", 'tag: "1"\n', 'tag: "1"\n      digest: sha256:ab\n'),
        (("clusters", "edge", "image", "digest"), "sha256:ab", "tag: '1'}", "tag: '1', digest: sha256:ab}"),
        (
            ("clusters", "main", "gateway", "values", "image", "tag"),
            "3.20",
            'tag: "1"\n',
            'tag: "1"\n    gateway: {values: {image: {tag: "3.20"}}}\n',
        ),
        (("models", "a", "source"), "x", "2}}\n", "2}}\nmodels: {a: {source: x}}\n"),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_edit_changes_one_text_alone(
    path: tuple[str, ...], value: str, before: str, after: str, line_break: str
) -> None:
    changed = set_text(NESTED.replace("\n", line_break), "fleet.yaml", path, value)
    assert changed == NESTED.replace(before, after, 1).replace("\n", line_break)


@pytest.mark.parametrize(
    "text",
    ["a: &b {tag: one}\nc: *b\n", "a: {tag: >-\n  one}\n", "a: {}\n", "a: {tag: [one]}\n", "a:\n  tag: |\n    one\n"],
)
def test_text_that_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(FleetError):
        set_text(text, "fleet.yaml", ("a", "tag"), "two")
