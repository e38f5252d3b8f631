"""Reads many bodies with the gateway's own parser, which HAProxy runs while it checks a configuration."""

import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.kit.bodies import find_model_in_python, mutate
from gateway.kit.process import find_haproxy, render_files
from gateway.kit.values import Values

__all__ = ["WAYS", "Comparison", "compare", "generate_bodies", "read_bodies", "render_parser"]

OPERATION = "/v1/chat/completions"
WAYS = ("small", "large", "chunks")
"""How HAProxy hands a body to the parser."""
_KIT = Path(__file__).parent
_VALUES: Values = {
    "tenants": {"acme": {"keys": {"secretName": "acme-keys"}, "models": ["llama"]}},
    "models": {"llama": {"versions": {"stable": {"routePrefix": "/", "endpoints": {"one": {"service": "one"}}}}}},
    # The bodies have no messages.
    "validation": {"enabled": False},
}


@dataclass(frozen=True)
class Comparison:
    """What the gateway's parser and Python's found in some bodies."""

    bodies: int
    accepted: dict[str, int]
    """Bodies in which the gateway found a model, by way."""
    refused: dict[str, int]
    """Bodies that the gateway refused, by error, over all ways."""
    refused_by_python: int
    """Results of the gateway with a model whose body Python refuses, over all ways."""
    differences: list[str]
    """Bodies in which Python finds another model than the gateway."""


def render_parser() -> dict[str, str]:
    """Return the files of the chart that the parser is made of, by name."""
    files = render_files(_VALUES)
    return {name: files[name] for name in ("body.lua", "fields.lua", "fields.map")}


def generate_bodies(seed: int, count: int) -> list[bytes]:
    chance = random.Random(seed)
    return [mutate(chance) for _ in range(count)]


def read_bodies(
    bodies: Sequence[bytes], parser: Mapping[str, str], edit: Callable[[str], str] | None = None
) -> list[list[str]]:
    """Return the three results of each body: the model, or `!` and the error. `edit` changes body.lua."""
    with tempfile.TemporaryDirectory(prefix="rayhelm-") as name:
        folder = Path(name)
        for file, text in parser.items():
            folder.joinpath(file).write_text(edit(text) if edit and file == "body.lua" else text)
        folder.joinpath("bodies").write_bytes(b"".join(b"%08d%s" % (len(body), body) for body in bodies))
        loaded = [
            f"{_KIT}/capture.lua",
            "fields.lua",
            "body.lua 256",
            f"{_KIT}/read_bodies.lua bodies results {OPERATION}",
        ]
        folder.joinpath("haproxy.cfg").write_text("\n".join(["global", *(f"  lua-load {each}" for each in loaded), ""]))
        done = subprocess.run(
            [find_haproxy(), "-C", folder, "-c", "-f", "haproxy.cfg"], check=False, capture_output=True, text=True
        )
        results = folder / "results"
        assert results.exists(), done.stderr
        lines = [line.split(" ") for line in results.read_text().splitlines()]
    assert len(lines) == len(bodies), done.stderr
    return lines


def compare(bodies: Sequence[bytes], results: Sequence[Sequence[str]]) -> Comparison:
    """Compare the results with Python's parser. A body that the gateway refuses is no difference."""
    accepted, refused, differences, refused_by_python = Counter[str](), Counter[str](), [], 0
    for body, found in zip(bodies, results, strict=True):
        expected = find_model_in_python(body)
        for way, result in zip(WAYS, found, strict=True):
            if result.startswith("!"):
                refused[result[1:]] += 1
                continue
            accepted[way] += 1
            refused_by_python += expected is None
            if expected not in (result, None):
                differences.append(f"{way}: {result!r} and {expected!r} in {body!r}")
    return Comparison(len(bodies), dict(accepted), dict(refused), refused_by_python, differences)
