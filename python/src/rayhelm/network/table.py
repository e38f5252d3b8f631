"""The flows of a chart as a table for its README, with the values that name each end."""

from collections.abc import Iterable, Mapping

from rayhelm.network.flows import PODS, ChartFlows, Flow, Value, load_chart_flows

__all__ = ["format_conditions", "format_flows_table"]


def format_flows_table(chart: str) -> str:
    """Return a Markdown table with a row for each flow."""
    flows = load_chart_flows()[chart]
    rows = ["| flow | from | to | ports | purpose | condition |", "|---|---|---|---|---|---|"]
    return "\n".join([*rows, *(_row(name, flow, flows) for name, flow in flows.flows.items())]) + "\n"


def format_conditions(conditions: Mapping[str, Value]) -> str:
    """Return the required values as YAML."""
    return ", ".join(f"`{path}: {_yaml(value)}`" for path, value in conditions.items())


def _row(name: str, flow: Flow, flows: ChartFlows) -> str:
    ends = (_ends(flow.from_, flow, flows), _ends(flow.to, flow, flows))
    ports = ", ".join(_port(port, flow) for port in flow.ports)
    return f"| {name} | {ends[0]} | {ends[1]} | {ports} | {flow.why} | {format_conditions(flow.while_)} |"


def _ends(ends: Iterable[str], flow: Flow, flows: ChartFlows) -> str:
    return ", ".join(
        flows.pods[end] if end in flows.pods else f"{flows.others[end]} (`{_path(end, flow)}`)" for end in ends
    )


def _path(end: str, flow: Flow) -> str:
    pods = PODS.fullmatch(end)
    return (pods[1] if pods else end).replace("each.", f"{flow.each}.", 1)


def _port(port: int | str, flow: Flow) -> str:
    if isinstance(port, int) or "/" in port:
        return str(port)
    if port == "every":
        return "all"
    return f"`{_path(port.replace('to.', f'{flow.to[0]}.*.', 1), flow)}`"


def _yaml(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
