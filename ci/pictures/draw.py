"""Draw the panels of a dashboard in their grid."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, Wedge
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from .source import Json, Panel, Result, Series
from .units import format_value

__all__ = ["draw"]

COLUMNS = 24
COLUMN, ROW = 0.62, 0.33
"""Size of a cell of the grid in inches: Grafana's is 30 pixels high."""
DPI = 100
GAP = 0.06
SMALL, NORMAL = 6.5, 8
MOST_NAMES = 8
"""Names in a legend; the rest are counted."""
COLORS = {
    "green": "#2f8f46", "yellow": "#c9a400", "orange": "#e07b00", "red": "#cf2f3c", "blue": "#2f6fd0",
    "purple": "#8a4fc7", "text": "#6b7280",
}  # fmt: skip
LINES = ["#2f6fd0", "#2f8f46", "#e07b00", "#8a4fc7", "#cf2f3c", "#0e9aa7", "#b0587a", "#8c6d31", "#5b6bbf", "#6b8e23"]


def draw(dashboard: Json, panels: Sequence[Panel], file: Path, reasons: Mapping[str, str] | None = None) -> None:
    """Write the picture of a dashboard as PNG. `reasons` say why panels are empty, by title."""
    height = max(panel.json["gridPos"]["y"] + panel.json["gridPos"]["h"] for panel in panels) * ROW + 0.5
    width = COLUMNS * COLUMN
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="#f3f4f6")
    figure.text(GAP / width, 1 - 0.25 / height, dashboard["title"], fontsize=13, fontweight="bold", va="center")
    for panel in panels:
        place = panel.json["gridPos"]
        left, bottom = place["x"] * COLUMN, height - 0.5 - (place["y"] + place["h"]) * ROW
        axes = figure.add_axes((
            (left + GAP) / width, (bottom + GAP) / height,
            (place["w"] * COLUMN - 2 * GAP) / width, (place["h"] * ROW - 2 * GAP) / height,
        ))  # fmt: skip
        _draw_panel(figure, axes, panel, (reasons or {}).get(panel.json["title"], ""))
    file.parent.mkdir(parents=True, exist_ok=True)
    # 128 colors are enough for lines and text, and make the file a third.
    figure.savefig(file, pil_kwargs={"optimize": True})
    _reduce(file)


def _reduce(file: Path) -> None:
    from PIL import Image

    with Image.open(file) as picture:
        reduced = picture.convert("RGB").quantize(128)
    reduced.save(file, optimize=True)


def _draw_panel(figure: Figure, frame: Axes, panel: Panel, reason: str) -> None:
    frame.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    if panel.json["type"] == "row":
        frame.axis("off")
        frame.text(0.0, 0.4, panel.json["title"], fontsize=9.5, fontweight="bold", va="center")
        return
    frame.set_facecolor("white")
    for spine in frame.spines.values():
        spine.set_color("#d1d5db")
    height = frame.get_position().height * figure.get_figheight()
    width = frame.get_position().width * figure.get_figwidth()
    frame.text(0.05 / width, 1 - 0.11 / height, panel.json["title"], fontsize=NORMAL, fontweight="bold", va="center")
    if panel.error or panel.is_empty:
        none = f"no data here: {reason}" if reason else panel.json["fieldConfig"]["defaults"].get("noValue", "No data")
        text = panel.error[:80] if panel.error else none
        # Matplotlib wraps at the edge of the figure, not of the panel.
        text = fill(text, max(12, int(width / 0.075)))
        frame.text(0.5, 0.45, text, fontsize=NORMAL, color=COLORS["red" if panel.error else "text"], ha="center")
        return
    KINDS[panel.json["type"]](figure, frame, panel)


def _inner(figure: Figure, frame: Axes, left: float, bottom: float, right: float = 0.12, top: float = 0.26) -> Axes:
    """Return axes inside of a panel; margins in inches."""
    box, (width, height) = frame.get_position(), figure.get_size_inches()
    axes = figure.add_axes((
        box.x0 + left / width, box.y0 + bottom / height,
        box.width - (left + right) / width, box.height - (bottom + top) / height,
    ))  # fmt: skip
    axes.tick_params(labelsize=SMALL, length=2, color="#9ca3af")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#9ca3af")
    return axes


def _defaults(panel: Panel) -> Json:
    found: Json = panel.json["fieldConfig"]["defaults"]
    return found


def _times(series: Series) -> list[float]:
    return [date2num(datetime.fromtimestamp(time, UTC)) for time, _ in series.points]


def _values(series: Series) -> list[float]:
    return [value for _, value in series.points]


def _color(value: float, defaults: Json) -> str:
    """Return the color of a value: that of its text, or of the last threshold that it reached."""
    if state := _state(value, defaults["mappings"]):
        return COLORS[state["color"]]
    steps = [step for step in defaults["thresholds"]["steps"] if step["value"] is None or value >= step["value"]]
    return COLORS[steps[-1]["color"]] if steps else "black"


def _state(value: float, mappings: Sequence[Json]) -> Json | None:
    for mapping in mappings:
        if found := mapping["options"].get(f"{value:g}"):
            return dict(found)
    return None


def _text(value: float, unit: str, mappings: Sequence[Json]) -> str:
    state = _state(value, mappings)
    return state["text"] if state else format_value(value, unit)


def _named(panel: Panel) -> list[tuple[str, Result, Series]]:
    return [(result.name_of(series), result, series) for result in panel.results for series in result.series]


def _time_axis(axes: Axes) -> None:
    axes.xaxis.set_major_locator(AutoDateLocator(tz=UTC, minticks=3, maxticks=10))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M", tz=UTC))
    axes.grid(axis="both", color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def _columns(frame: Axes, names: Sequence[tuple[str, str]]) -> int:
    """Return how many names of a legend fit beside each other."""
    longest = max((len(name) for name, _ in names), default=1)
    return max(1, min(len(names), int(frame.get_window_extent().width / DPI / (longest * 0.052 + 0.2))))


def _shown(names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    shown = [(name[:60], color) for name, color in names[:MOST_NAMES]]
    return shown if len(names) <= MOST_NAMES else [*shown, (f"and {len(names) - MOST_NAMES} more", COLORS["text"])]


def _legend_height(frame: Axes, names: Sequence[tuple[str, str]]) -> float:
    shown = _shown(names)
    return 0.08 + 0.12 * -(-len(shown) // _columns(frame, shown))


def _legend(frame: Axes, names: Sequence[tuple[str, str]], height: float) -> None:
    """Write names in their colors below the graph."""
    shown = _shown(names)
    columns = _columns(frame, shown)
    top = _legend_height(frame, names) - 0.08
    for index, (name, color) in enumerate(shown):
        row, column = divmod(index, columns)
        y = (top - row * 0.12) / height
        frame.text(0.012 + column / columns, y, f"— {name}", fontsize=6, color=color, va="center")


def _timeseries(figure: Figure, frame: Axes, panel: Panel) -> None:
    defaults = _defaults(panel)
    custom = defaults["custom"]
    overrides = {each["matcher"]["options"] for each in panel.json["fieldConfig"]["overrides"]}
    series = _named(panel)
    names: list[tuple[str, str]] = []
    for index, (name, result, _) in enumerate(series):
        names.append((name, COLORS["text"] if result.target["refId"] in overrides else LINES[index % len(LINES)]))
    left = 1.0 if defaults["unit"].startswith("suffix:") else 0.72
    axes = _inner(figure, frame, left=left, bottom=_legend_height(frame, names) + 0.2)
    style = "steps-post" if custom["lineInterpolation"] == "stepAfter" else "default"
    base: dict[float, float] = {}
    for (_, color), (_, result, each) in zip(names, series, strict=True):
        times, values = _times(each), _values(each)
        is_planned = result.target["refId"] in overrides
        if custom["stacking"]["mode"] == "normal" and not is_planned:
            under = [base.get(time, 0.0) for time in times]
            values = [value + below for value, below in zip(values, under, strict=True)]
            base |= dict(zip(times, values, strict=True))
            axes.fill_between(times, under, values, color=color, alpha=0.3, linewidth=0)
        marker = "." if len(times) == 1 else None
        axes.plot(
            times,
            values,
            color=color,
            linewidth=1.1,
            linestyle="--" if is_planned else "-",
            drawstyle=style,
            marker=marker,
        )
    if custom["thresholdsStyle"]["mode"] != "off":
        for step in defaults["thresholds"]["steps"][1:]:
            axes.axhline(step["value"], color=COLORS[step["color"]], linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.8)
    low, high = axes.get_ylim()
    if custom["thresholdsStyle"]["mode"] == "off" and not any(any(_values(each)) for _, _, each in series):
        # Matplotlib's range of a constant 0 has ticks such as 0.045 requests.
        low, high = 0, 1
    is_logarithmic = "scaleDistribution" in custom
    if is_logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(defaults.get("min", low), defaults.get("max", high if high > 0 else 1))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: format_value(float(f"{value:.6g}"), defaults["unit"]))
    )
    axes.yaxis.set_major_locator(LogLocator(numticks=5) if is_logarithmic else MaxNLocator(5))
    _time_axis(axes)
    _legend(frame, names, frame.get_position().height * figure.get_figheight())


def _stat(figure: Figure, frame: Axes, panel: Panel) -> None:
    defaults, series = _defaults(panel), _named(panel)
    shown = series[:5]
    for index, (name, _, each) in enumerate(shown):
        y = 0.82 - (index + 0.5) * 0.78 / len(shown)
        value = _text(each.latest, defaults["unit"], defaults["mappings"])
        color, size = _color(each.latest, defaults), 15 if len(shown) == 1 else max(7, 13 - 2 * len(shown))
        if len(shown) == 1:
            frame.text(0.5, y, value, fontsize=size, fontweight="bold", color=color, ha="center", va="center")
            continue
        frame.text(0.03, y, name[:28], fontsize=SMALL, va="center")
        frame.text(0.97, y, value, fontsize=size, fontweight="bold", color=color, ha="right", va="center")
    if len(series) > len(shown):
        frame.text(0.5, 0.04, f"and {len(series) - len(shown)} more", fontsize=6, color=COLORS["text"], ha="center")


def _gauge(figure: Figure, frame: Axes, panel: Panel) -> None:
    defaults, series = _defaults(panel), _named(panel)[:4]
    low, high = defaults["min"], defaults["max"]
    for index, (name, _, each) in enumerate(series):
        axes = _inner(figure, frame, left=0.05, bottom=0.2, right=0.05)
        box = axes.get_position()
        axes.set_position((box.x0 + index * box.width / len(series), box.y0, box.width / len(series), box.height))
        axes.set(xlim=(-1.15, 1.15), ylim=(-0.2, 1.15), aspect="equal")
        axes.axis("off")
        part = min(max((each.latest - low) / (high - low), 0), 1)
        axes.add_patch(Wedge((0, 0), 1, 0, 180, width=0.28, color="#e5e7eb"))
        axes.add_patch(Wedge((0, 0), 1, 180 - 180 * part, 180, width=0.28, color=_color(each.latest, defaults)))
        value = format_value(each.latest, defaults["unit"])
        axes.text(0, 0.05, value, fontsize=10, fontweight="bold", ha="center")
        if len(series) > 1:
            axes.text(0, -0.2, name[:18], fontsize=6, ha="center")


def _bargauge(figure: Figure, frame: Axes, panel: Panel) -> None:
    defaults, series = _defaults(panel), _named(panel)[:12]
    high = defaults.get("max") or max([abs(each.latest) for _, _, each in series] + [1e-9])
    height = 0.86 / max(len(series), 3)
    for index, (name, _, each) in enumerate(series):
        y = 0.86 - (index + 1) * height
        frame.text(0.02, y + height / 2, name[:30], fontsize=SMALL, va="center")
        frame.add_patch(Rectangle((0.36, y + height * 0.2), 0.46, height * 0.6, color="#e5e7eb"))
        part = min(max(each.latest / high, 0), 1)
        frame.add_patch(
            Rectangle((0.36, y + height * 0.2), 0.46 * part, height * 0.6, color=_color(each.latest, defaults))
        )
        value = _text(each.latest, defaults["unit"], defaults["mappings"])
        frame.text(0.84, y + height / 2, value, fontsize=SMALL, va="center", fontweight="bold")


def _heatmap(figure: Figure, frame: Axes, panel: Panel) -> None:
    bounds = sorted(
        ((float(each.labels["le"].replace("+Inf", "inf")), each) for result in panel.results for each in result.series),
        key=lambda item: item[0],
    )
    times = sorted({time for _, each in bounds for time, _ in each.points})
    below = [0.0] * len(times)
    cells: list[tuple[str, list[float]]] = []
    unit = _defaults(panel)["unit"]
    for le, each in bounds:
        points = dict(each.points)
        total = [points.get(time, under) for time, under in zip(times, below, strict=True)]
        cells.append(
            (
                format_value(le, unit) if le != float("inf") else "+Inf",
                [max(b - a, 0) for a, b in zip(below, total, strict=True)],
            )
        )
        below = total
    used = [index for index, (_, row) in enumerate(cells) if any(value > 1e-9 for value in row)]
    cells = cells[max(min(used, default=0) - 1, 0) : max(used, default=0) + 2]
    axes = _inner(figure, frame, left=0.72, bottom=0.24)
    grid = [[value if value > 1e-9 else float("nan") for value in row] for _, row in cells]
    width = (times[1] - times[0]) if len(times) > 1 else 15
    edges = [date2num(datetime.fromtimestamp(time, UTC)) for time in [*times, times[-1] + width]]
    if used:
        axes.pcolormesh(edges, range(len(cells) + 1), grid, cmap="Oranges", norm=LogNorm())
    axes.set(yticks=range(1, len(cells) + 1), yticklabels=[name for name, _ in cells], ylim=(0, len(cells)))
    _time_axis(axes)


def _state_timeline(figure: Figure, frame: Axes, panel: Panel) -> None:
    defaults, series = _defaults(panel), _named(panel)[:12]
    names = [name[:34] for name, _, _ in reversed(series)]
    axes = _inner(figure, frame, left=max(1.5, 0.064 * max(map(len, names))), bottom=0.24)
    for index, (_, _, each) in enumerate(series):
        times = _times(each)
        width = min((b - a for a, b in pairwise(times)), default=15 / 86400)
        start = 0
        for value, run in groupby(_values(each)):
            length = len(list(run))
            end = times[start + length] if start + length < len(times) else times[-1] + width
            y = len(series) - 1 - index
            axes.add_patch(
                Rectangle((times[start], y + 0.1), end - times[start], 0.8, color=_color(value, defaults), alpha=0.8)
            )
            if end - times[start] > (times[-1] - times[0] + width) / 12:
                text = _text(value, defaults["unit"], defaults["mappings"])
                axes.text(times[start], y + 0.5, f" {text}", fontsize=SMALL, color="white", va="center", clip_on=True)
            start += length
    ends = [time for _, _, each in series for time in _times(each)]
    axes.set(yticks=[index + 0.5 for index in range(len(series))], yticklabels=names, ylim=(0, len(series)))
    axes.set_xlim(min(ends), max(ends) + 15 / 86400)
    _time_axis(axes)


def _table(figure: Figure, frame: Axes, panel: Panel) -> None:
    overrides = panel.json["fieldConfig"]["overrides"]
    columns = [
        (each["matcher"]["options"], {item["id"]: item["value"] for item in each["properties"]}) for each in overrides
    ]
    height = frame.get_position().height * figure.get_figheight()
    space = int((height - 0.45) / 0.2)
    for index, (header, properties) in enumerate(columns):
        x = 0.012 + index * 0.98 / len(columns)
        frame.text(x, 1 - 0.33 / height, header, fontsize=SMALL, fontweight="bold", color=COLORS["text"], va="center")
        for number, row in enumerate(panel.rows[:space]):
            value = row.get(header, "")
            color = "black"
            if not isinstance(value, str):
                about = {
                    "mappings": properties.get("mappings", []),
                    "thresholds": properties.get("thresholds") or {"steps": []},
                }
                if about["mappings"] or about["thresholds"]["steps"]:
                    color = _color(value, about)
                value = _text(value, properties.get("unit", "none"), about["mappings"])
            frame.text(x, 1 - (0.53 + number * 0.2) / height, str(value)[:32], fontsize=SMALL, color=color, va="center")
    if len(panel.rows) > space:
        frame.text(0.5, 0.05, f"and {len(panel.rows) - space} more", fontsize=6, color=COLORS["text"], ha="center")


KINDS: dict[str, Callable[[Figure, Axes, Panel], Any]] = {
    "timeseries": _timeseries,
    "stat": _stat,
    "gauge": _gauge,
    "bargauge": _bargauge,
    "heatmap": _heatmap,
    "state-timeline": _state_timeline,
    "table": _table,
}
