"""The flows of a chart as a table for its README, with the values that name each end."""

from collections.abc import Iterable, Mapping

from rayhelm.deploy.network.flows import PODS, ChartFlows, Flow, Value, load_chart_flows

__all__ = ["format_conditions", "format_flows_table"]


def format_flows_table(chart: str) -> str:
    """Return a Markdown table with a row for each flow."""
    flows = load_chart_flows()[chart]
    rows = ["| flow | from | to | ports | purpose | condition |", "|---|---|---|---|---|---|"]
    return "\n".join([*rows, *(_build_row(name, flow, flows) for name, flow in flows.flows.items())]) + "\n"


def format_conditions(conditions: Mapping[str, Value]) -> str:
    """Return the required values as YAML."""
    return ", ".join(f"`{path}: {_format_yaml(value)}`" for path, value in conditions.items())


def _build_row(name: str, flow: Flow, flows: ChartFlows) -> str:
    ends = (_format_ends(flow.from_, flow, flows), _format_ends(flow.to, flow, flows))
    ports = ", ".join(_format_port(port, flow) for port in flow.ports)
    return f"| {name} | {ends[0]} | {ends[1]} | {ports} | {flow.why} | {format_conditions(flow.while_)} |"


def _format_ends(ends: Iterable[str], flow: Flow, flows: ChartFlows) -> str:
    return ", ".join(
        flows.pods[end] if end in flows.pods else f"{flows.others[end]} (`{_format_path(end, flow)}`)" for end in ends
    )


def _format_path(end: str, flow: Flow) -> str:
    pods = PODS.fullmatch(end)
    return (pods[1] if pods else end).replace("each.", f"{flow.each}.", 1)


def _format_port(port: int | str, flow: Flow) -> str:
    if isinstance(port, int) or "/" in port:
        return str(port)
    if port == "every":
        return "all"
    entry = flow.to[0].removesuffix(".*")
    return f"`{_format_path(port.replace('to.', f'{entry}.*.', 1), flow)}`"


def _format_yaml(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
