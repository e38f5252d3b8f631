"""Numbers as text, in Grafana's units."""

from datetime import UTC, datetime

__all__ = ["format_value"]

_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BEHIND = {
    "reqps": " req/s",
    "ops": " ops/s",
    "watt": " W",
    "celsius": " °C",
    "joule": " J",
    "hertz": " Hz",
    "percent": " %",
}


def format_value(value: float, unit: str) -> str:
    """Return a number with its unit: `1.25 s`, `83 %`, `12.4 GiB`."""
    if value != value:
        return "NaN"
    if unit == "percentunit":
        return f"{_short(value * 100)} %"
    if unit in ("bytes", "binBps"):
        return _scaled(value, _BYTES, " B") + ("/s" if unit == "binBps" else "")
    if unit == "s":
        return _scaled(value, _TIMES, " s")
    if unit == "currencyUSD":
        return f"${value:,.2f}"
    if unit == "dateTimeAsIso":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    behind = unit.removeprefix("suffix:") if unit.startswith("suffix:") else _BEHIND.get(unit, "")
    number = _short(value) if unit == "none" or abs(value) < 1e4 else _scaled(value, _SIZES, "").replace(" ", "")
    return number + (f" {behind.strip()}" if behind else "")


def _scaled(value: float, scales: tuple[tuple[float, str], ...], smallest: str) -> str:
    for size, name in scales:
        if abs(value) >= size:
            return f"{_short(value / size)} {name}"
    return _short(value) + smallest


def _short(value: float) -> str:
    """Return three significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"
