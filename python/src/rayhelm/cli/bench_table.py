"""The table of `rayhelm bench`."""

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rayhelm.live.bench.compare import LoadComparison, place
from rayhelm.planner.speed.estimate import Interval

__all__ = ["build_bench_table"]


def build_bench_table(found: Iterable[LoadComparison], name: str) -> Table:
    """Return a row for each figure of each load."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"model {name}", title_justify="left")
    for column in ("in flight", "requests", "figure", "measured", "90th percentile", "estimate", "90 % interval", ""):
        table.add_column(column, overflow="fold", justify="right" if column in ("in flight", "requests") else "left")
    for each in found:
        load = (str(each.result.load.concurrency), str(each.result.requests))
        for index, row in enumerate(_list_figures(each)):
            table.add_row(*(load if index == 0 else ("", "")), *row)
    return table


def _list_figures(each: LoadComparison) -> Iterator[tuple[str, ...]]:
    result, expected = each.result, each.expected
    if not result.tpot_s:
        yield "no answers", *[""] * 5
        return
    times = (
        ("time to first token", result.ttft_s, result.ttft_p90_s, expected.ttft_s if expected else None),
        ("time per output token", result.tpot_s, result.tpot_p90_s, expected.tpot_s if expected else None),
    )
    for label, middle, late, interval in times:
        yield label, _time(middle), _time(late), *_compare(middle, interval, is_time=True)
    rate = result.output_tokens_per_second
    planned = expected.output_tokens_per_second if expected else None
    yield "output tokens per second", f"{rate:,.0f}", "", *_compare(rate, planned, is_time=False)


def _compare(value: float, interval: Interval | None, *, is_time: bool) -> tuple[str, str, str]:
    if interval is None:
        return "-", "-", ""
    text = _time if is_time else "{:,.0f}".format
    where = place(value, interval, is_time=is_time)
    return text(interval.mid), f"{text(interval.low)} to {text(interval.high)}", where


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
