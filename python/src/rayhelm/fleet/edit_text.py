"""Change one value in the text of a fleet file. Every other byte stays: comments, anchors, order, line breaks."""

import re

import yaml

from rayhelm.errors import Fix, FleetError, Problem, attempt
from rayhelm.fleet.document import Document, parse_document
from rayhelm.fleet.yaml_nodes import Builder, Path

__all__ = ["set_number", "set_text"]

_BOM = "\ufeff"
_NUMBER = re.compile(r"(?P<before>(?:[&!]\S+\s+)*[\"']?)(?P<number>[-+]?\d+|~|null|Null|NULL)[\"']?")
"""A scalar with its anchor, tag and quotes; a null is no number yet."""
_LINE_BREAK = re.compile("\r\n?|[\n\x85\u2028\u2029]|$")
"""What ends a line of YAML."""
_TEXT = re.compile(r"""(?P<before>(?:[&!]\S+\s+)*)(?P<text>"[^"\\\n]*"|'[^'\n]*'|[^"'\s{}\[\],&*!|>][^\s{}\[\],]*)""")
"""A scalar in one line, quoted or without spaces."""


def set_number(text: str, file: str, path: Path, value: int) -> str:
    """Return the text with the number at `path`, or with a new last key in the map above. Raises FleetError for a
    number that other values share."""
    return _set(text, file, path, value, str(value), _NUMBER, "number")


def set_text(text: str, file: str, path: Path, value: str) -> str:
    """Return the text with `value` at `path`, or with a new last key, with maps in braces where there are none yet.
    `value` has no quotes in it. Raises FleetError for a text that other values share."""
    written = value if yaml.safe_load(value) == value else f'"{value}"'
    return _set(text, file, path, value, written, _TEXT, "text")


def _set(text: str, file: str, path: Path, value: object, written: str, pattern: re.Pattern[str], group: str) -> str:
    before = parse_document(text, file)
    body = text.removeprefix(_BOM)  # positions of libyaml are without it
    nodes = _find_nodes(Builder(file).compose(body)[0], path)
    if len(nodes) == len(path) + 1:
        start, end, new = _place_value(body, nodes[-1], written, pattern, group)
    else:
        key, *below = map(str, path[len(nodes) - 1 :])
        start, end, new = _place_key(body, nodes[-1], key, _nest(below, written))
    changed = text[: len(text) - len(body)] + body[:start] + new + body[end:]
    if not _is_only_change(changed, before, path, value):
        raise FleetError(_describe_shared(before, path))
    return changed


def _nest(keys: list[str], written: str) -> str:
    """A value in maps in braces."""
    for key in reversed(keys):
        written = f"{{{key}: {written}}}"
    return written


def _find_nodes(root: yaml.Node, path: Path) -> list[yaml.Node]:
    """Return the nodes on the way to `path`, up to the last map that has the key of the next one."""
    found = [root]
    for step in path:
        items = found[-1].value if isinstance(found[-1], yaml.MappingNode) else []
        below = [value for key, value in items if key.value == step]
        if not below:
            break
        found.append(below[0])
    return found


def _place_value(
    text: str, node: yaml.Node, written: str, pattern: re.Pattern[str], group: str
) -> tuple[int, int, str]:
    start, end = node.start_mark.index, node.end_mark.index
    if start == end:  # nothing stands behind the colon
        return start, end, f" {written}"
    match = pattern.fullmatch(text, start, end)
    return (match.start(group), match.end(group), written) if match else (start, start, "")


def _place_key(text: str, node: yaml.Node, key: str, written: str) -> tuple[int, int, str]:
    """Place `key: value` behind the last key of a map: in braces beside it, otherwise in a line of its own."""
    if not isinstance(node, yaml.MappingNode) or not node.value:
        return 0, 0, ""
    last_key, last_value = node.value[-1]
    end = _find_end(last_value)
    if node.flow_style:
        return end, end, f", {key}: {written}"
    # A text in several lines ends with the line breaks behind it.
    line_end = _LINE_BREAK.search(text, len(text[:end].rstrip()))
    first = _LINE_BREAK.search(text)
    assert line_end
    assert first
    line_break = first[0] or "\n"
    new = f"{line_break}{' ' * last_key.start_mark.column}{key}: {written}"
    return line_end.start(), line_end.start(), new


def _find_end(node: yaml.Node) -> int:
    """End of the last scalar or brace: a block ends for libyaml where the next key starts, behind comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)


def _is_only_change(text: str, before: Document, path: Path, value: object) -> bool:
    """Return whether the text differs from the document at `path` alone; with an anchor it can also do elsewhere."""
    after = attempt(lambda: parse_document(text, before.file))
    return after is not None and bool(after.data == _with(before.data, path, value))


def _with(data: dict[str, object], path: Path, value: object) -> dict[str, object]:
    first, rest = str(path[0]), path[1:]
    below = data.get(first)
    return {**data, first: _with(below if isinstance(below, dict) else {}, rest, value) if rest else value}


def _describe_shared(document: Document, path: Path) -> Problem:
    """The problem of a value that is, or is part of, a value with an anchor."""
    path = next(path[:end] for end in range(len(path), 0, -1) if end == 1 or _has_map(document, path[: end - 1]))
    above = document.value(path[:-1])
    why = "without `&` and `*`; other values that use its anchor need theirs written out too"
    message = (
        "an anchor (`&`) or alias (`*`) shares it with other values, or it is written in an unusual way, so that it"
        " cannot be changed alone"
    )
    return document.problem(path[:-1], message, Fix("", dict(above), why))


def _has_map(document: Document, path: Path) -> bool:
    try:
        return isinstance(document.value(path), dict)
    except (KeyError, IndexError, TypeError):
        return False
