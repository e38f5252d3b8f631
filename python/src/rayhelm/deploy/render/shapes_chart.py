"""Draw the shapes of each model: price against latency, with the Pareto front, as SVG.

The text needs no font file and no network. Colors follow the reader's light or dark scheme, over a background of their
own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from rayhelm.planner.alternative import Alternative
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["draw_shapes"]

_WIDTH, _LEFT, _RIGHT = 960, 90, 470
"""Pixels: width of the chart, and the edges of the plot area. The legend is on its right."""
_PLOT, _ABOVE, _BELOW, _ROW = 200, 54, 62, 20
"""Pixels: least height of a plot, space above it and below it, and height of a row of the legend."""
_TICKS, _NEAR = 5, 14
"""Ticks of an axis, and the distance below which the numbers of two points would overlap, pixels."""
_MOST_TEXT = 62
"""Characters of a row of the legend."""
_STYLE = """\
.bg{fill:#ffffff}.text{fill:#1f2328}.soft{fill:#59636e}.line{stroke:#d1d9e0}.front{stroke:#0969da}
.point{fill:#0969da}.now{fill:#bc4c00}.other{fill:#818b98}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.text{fill:#f0f6fc}.soft{fill:#9198a1}.line{stroke:#3d444d}
.front{stroke:#4493f8}.point{fill:#4493f8}.now{fill:#f0883e}.other{fill:#9198a1}}
text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',Arial,sans-serif;font-size:13px}
.title{font-size:15px;font-weight:600}.small{font-size:12px}"""


@dataclass(frozen=True)
class _Point:
    label: str
    price: float
    """USD per hour."""
    latency: float
    """TPOT in ms, or TTFT in ms for a model without output tokens."""
    is_planned: bool = False


@dataclass(frozen=True)
class _Axis:
    """A linear axis from 0."""

    most: float
    step: float
    start: float
    end: float
    """Pixels of 0 and of `most`."""

    def locate(self, value: float) -> float:
        return self.start + (self.end - self.start) * value / self.most

    def list_ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the place and the text of each tick."""
        for index in range(round(self.most / self.step) + 1):
            yield self.locate(index * self.step), f"{index * self.step:.10g}"


def draw_shapes(plan: Plan, found: Mapping[str, Sequence[Alternative]]) -> str:
    """Return the chart as text; a plot for each model with another shape of known price and latency."""
    plots, top = list(_draw_key()), 66.0
    for name, model in plan.models.items():
        points = _list_points(model, found.get(name, ()))
        if len(points) < 2:
            continue
        height = max(_PLOT, len(points) * _ROW - 24)
        plots += _draw_plot(model, points, top + _ABOVE, height)
        top += _ABOVE + height + _BELOW
    title = f"Shapes of the models of {plan.fleet}: price against latency"
    if top == 66.0:
        plots.append(_text(24, top + 24, "No model has another shape with a known price and latency.", "text"))
        top += 48
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top:.0f}" viewBox="0 0 {_WIDTH} {top:.0f}"'
        ' role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="bg" width="{_WIDTH}" height="{top:.0f}"/>',
        _text(24, 32, title, "text title"),
        *plots,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def _draw_key() -> Iterator[str]:
    """Yield what the colors mean."""
    texts = ("as planned", "no other shape is both cheaper and faster (dashed line)", "another shape is")
    for left, style, text in zip((30, 140, 510), ("now", "point", "other"), texts, strict=True):
        yield f'<circle class="{style}" cx="{left}" cy="54" r="5"/>'
        yield _text(left + 12, 58, text, "soft small")


def _list_points(model: ModelPlan, shapes: Sequence[Alternative]) -> list[_Point]:
    has_tpot = model.estimate.tpot_s is not None
    rows = [("as planned", model.price_per_hour, model.estimate.ttft_s, model.estimate.tpot_s)]
    rows += [(each.what, each.price_per_hour, each.ttft_s, each.tpot_s) for each in shapes]
    found = []
    for index, (label, price, ttft, tpot) in enumerate(rows):
        latency = tpot if has_tpot else ttft
        if price is not None and latency is not None:
            found.append(_Point(label, price, latency * 1000, is_planned=index == 0))
    return found if found and found[0].is_planned else []


def _draw_plot(model: ModelPlan, points: Sequence[_Point], top: float, height: float) -> Iterator[str]:
    kind = "TPOT" if model.estimate.tpot_s is not None else "TTFT"
    x = _build_axis(max(point.price for point in points), _LEFT, _RIGHT)
    y = _build_axis(max(point.latency for point in points), top + height, top)
    yield _text(24, top - 22, model.model, "text title")
    for place, text in x.list_ticks():
        yield _line(place, top, place, top + height)
        yield _text(place, top + height + 18, text, "soft small", "middle")
    for place, text in y.list_ticks():
        yield _line(_LEFT, place, _RIGHT, place)
        yield _text(_LEFT - 8, place + 4, text, "soft small", "end")
    yield _text((_LEFT + _RIGHT) / 2, top + height + 40, "price, USD/h", "text", "middle")
    middle = top + height / 2
    yield (
        f'<text class="text" text-anchor="middle" transform="translate(36 {middle:.1f}) rotate(-90)">{kind}, ms</text>'
    )
    front = _find_front(points)
    steps = _list_steps([(x.locate(point.price), y.locate(point.latency)) for point in front])
    yield f'<polyline class="front" fill="none" stroke-width="1.5" stroke-dasharray="4 3" points="{steps}"/>'
    yield from _draw_points(points, front, x, y)
    yield from _draw_legend(points, front, top)


def _draw_points(points: Sequence[_Point], front: Sequence[_Point], x: _Axis, y: _Axis) -> Iterator[str]:
    """Yield the points with their numbers. Points that are close have their numbers beside each other."""
    numbers: list[tuple[float, float, list[str]]] = []
    for number, point in enumerate(points):
        across, down = x.locate(point.price), y.locate(point.latency)
        yield f'<circle class="{_choose_class(point, front)}" cx="{across:.1f}" cy="{down:.1f}" r="5"/>'
        near = [here for left, top, here in numbers if abs(left - across) < _NEAR and abs(top - down) < _NEAR]
        if near:
            near[0].append(str(number))
        else:
            numbers.append((across, down, [str(number)]))
    for across, down, here in numbers:
        yield _text(across + 8, down - 7, ", ".join(here), "text small")


def _draw_legend(points: Sequence[_Point], front: Sequence[_Point], top: float) -> Iterator[str]:
    for number, point in enumerate(points):
        row = top + 8 + number * _ROW
        yield f'<circle class="{_choose_class(point, front)}" cx="{_RIGHT + 30}" cy="{row - 4:.1f}" r="5"/>'
        yield _text(_RIGHT + 44, row, f"{number}  {_shorten(point.label)}", "text small")


def _choose_class(point: _Point, front: Sequence[_Point]) -> str:
    if point.is_planned:
        return "now"
    return "point" if point in front else "other"


def _find_front(points: Sequence[_Point]) -> list[_Point]:
    """Return the points that no other one beats in both price and latency, the cheapest first."""
    front: list[_Point] = []
    for point in sorted(points, key=lambda each: (each.price, each.latency)):
        if not front or point.latency < front[-1].latency:
            front.append(point)
    return front


def _list_steps(places: Sequence[tuple[float, float]]) -> str:
    """Return the corners of a line that goes across before it goes up."""
    corners: list[tuple[float, float]] = []
    for across, down in places:
        if corners:
            corners.append((across, corners[-1][1]))
        corners.append((across, down))
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in corners)


def _build_axis(most: float, start: float, end: float) -> _Axis:
    """Return an axis with about five ticks at 1, 2 or 5 times a power of ten."""
    rough = max(most, 1e-6) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return _Axis(ceil(most / step - 1e-9) * step or step, step, start, end)


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}"{where}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="line" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
