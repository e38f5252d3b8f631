"""A generated file of a chart."""

from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["write_chart_file"]


def write_chart_file(name: str, text: str, *, check: bool) -> int:
    """Write a file of the charts folder, or with `check` only compare it. Returns the exit code."""
    path = charts_dir() / name
    if path.is_file() and path.read_text() == text:
        return 0
    if check:
        print(f"stale: charts/{name}: run `make generate`")
        return 1
    path.write_text(text)
    print(f"wrote charts/{name}")
    return 0
