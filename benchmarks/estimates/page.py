"""Write the comparison with AIConfigurator in `docs/explanation/speed.md` from the result."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "build_text", "replace_text"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "speed.md"
_TEXT = re.compile(r"(<!-- AIConfigurator -->\n).*(<!-- end of AIConfigurator -->)", re.DOTALL)
_KINDS = {"all": "all", "dense": "dense", "sparse": "with experts"}
_FIGURES = ("tpot", "ttft")
_COLUMNS = ("rayhelm: median", "mean", "90th percentile", "AIConfigurator: median", "mean", "90th percentile")
_FEWEST_ROWS = 10
"""Of a model on a GPU, to be listed by itself."""


def build_text(result: Mapping[str, Any]) -> str:
    """Build the tables of the result, and what they leave out."""
    fp8, bf16 = (result["by_kv_cache"][name] for name in ("fp8", "bf16"))
    errors, other = fp8["errors"], bf16["errors"]["all"]["tpot"]
    rows = [
        _join(f"{name}, {errors[kind][figure]['rows']}", figure.upper(), *_list_errors(errors[kind][figure]))
        for kind, name in _KINDS.items()
        for figure in _FIGURES
    ]
    behind = [_join(*row) for row in _list_behind(errors)]
    answered = sum(fp8["answered"].values())
    refused = [f"- {count} rows: {why.removeprefix('RuntimeError: ')}" for why, count in fp8["not_answered"].items()]
    theirs = other["aiconfigurator"]
    return "\n".join(
        (
            *_build_head("rows", "figure", *_COLUMNS, texts=2),
            *rows,
            "",
            f"Of {result['rows']} rows rayhelm answers all and AIConfigurator {answered}. It answers for the others:",
            "",
            *refused,
            "",
            "The rows do not record the precision of the KV cache. The table has FP8, as NVIDIA's checkpoints set it.",
            f"With 16 bits the TPOT of AIConfigurator errs by {theirs['median']} (median) and {theirs['mean']} (mean)"
            f" over {other['rows']} rows.",
            "",
            f"Models on GPUs with at least {_FEWEST_ROWS} rows where AIConfigurator has the smaller median:",
            "",
            *_build_head("model and GPU", "figure", "rows", "rayhelm: median", "AIConfigurator: median", texts=2),
            *behind,
            "",
        )
    )


def replace_text(page: str, result: Mapping[str, Any]) -> str:
    return _TEXT.sub(lambda found: f"{found[1]}{build_text(result)}{found[2]}", page)


def _list_behind(errors: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the models and GPUs on which the estimates of AIConfigurator err less."""
    for name, group in errors.items():
        for figure in _FIGURES:
            found = group.get(figure)
            if " on " not in name or not found or found["rows"] < _FEWEST_ROWS:
                continue
            ours, theirs = (found[each]["median"] for each in ("rayhelm", "aiconfigurator"))
            if theirs < ours:
                yield name, figure.upper(), str(found["rows"]), str(ours), str(theirs)


def _list_errors(found: Mapping[str, Any]) -> Iterator[str]:
    for each in ("rayhelm", "aiconfigurator"):
        yield from (str(found[each][name]) for name in ("median", "mean", "p90"))


def _build_head(*names: str, texts: int) -> Iterator[str]:
    """Yield the first two lines of a table. `texts`: columns that hold no figures."""
    yield _join(*names)
    yield _join(*["---"] * texts, *["---:"] * (len(names) - texts))


def _join(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
