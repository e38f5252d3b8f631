"""GPUs: work, memory, power, errors, links, and who has them."""

from rayhelm.observe.dashboard_model import (
    BarGauge,
    Column,
    Dashboard,
    Gauge,
    Row,
    Stat,
    Table,
    TimeSeries,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import gpu, ray_cluster

__all__ = ["DASHBOARD"]

GPU = "{{node}} {{gpu_id}}"
NO_GPU = "no GPU exporter"

NOW = Row(
    title="Now",
    panels=(
        Stat(
            title="GPUs of the nodes",
            description="GPU resources of all nodes. A MIG partition and a time slice count as one.",
            thresholds=informational(),
            no_value="no GPU",
            lines=(line(gpu.allocatable, by=()),),
        ),
        Stat(
            title="Allocated",
            description="GPU resources that pods request.",
            thresholds=informational(),
            no_value="none",
            lines=(line(gpu.allocated, by=()),),
        ),
        Stat(
            title="Idle while allocated",
            description="GPUs of services that worked less than 5 % of the last 30 minutes. They cost as much as "
            "busy ones.",
            thresholds=rising(1, 4),
            no_value="none",
            lines=(line(gpu.idle_while_allocated, by=(), window="30m"),),
            runbook="GpuIdle",
        ),
        Stat(
            title="Power",
            description="Power of all GPUs together, as their exporters report it.",
            thresholds=informational(),
            no_value=NO_GPU,
            lines=(line(gpu.power, by=()),),
        ),
        Stat(
            title="New XID errors, 15 min",
            description="Changes of the last XID code of NVIDIA GPUs in the last 15 minutes. A repeated code is not "
            "seen.",
            thresholds=rising(1, 2),
            no_value=NO_GPU,
            lines=(line(gpu.xid_changes, by=(), window="15m"),),
            runbook="GpuXidError",
        ),
        Gauge(
            title="Busiest GPU",
            description="Utilization of the GPU that works most. It is the share of time in which any kernel ran.",
            thresholds=rising(0.9, 0.99),
            height=4,
            no_value=NO_GPU,
            lines=(line(gpu.utilization, by=()),),
        ),
    ),
)

WORK = Row(
    title="Work and memory",
    panels=(
        TimeSeries(
            title="Utilization",
            description="Share of time in which the GPU worked; of NVIDIA, in which any kernel ran. It says nothing "
            "about how many cores a kernel uses.",
            maximum=1,
            lines=(line(gpu.utilization, GPU),),
        ),
        TimeSeries(
            title="Tensor cores",
            description="Share of cycles in which the tensor cores worked. Low values during decoding are normal: "
            "it is limited by the bandwidth of the memory. Only NVIDIA's data center GPUs.",
            maximum=1,
            lines=(line(gpu.tensor_activity, GPU),),
        ),
        TimeSeries(
            title="Clock",
            description="Clock of the cores. It falls when the power limit or the temperature reduces it.",
            lines=(line(gpu.clock, GPU),),
        ),
        TimeSeries(
            title="Memory used",
            description="Used memory. vLLM reserves its share at the start, so this line is flat in normal operation.",
            lines=(line(gpu.memory_used, GPU),),
        ),
        TimeSeries(
            title="Memory used, share",
            description="Used share of the memory. Above 98 % the next allocation outside of vLLM's reservation can "
            "fail.",
            thresholds=rising(0.95, 0.98),
            shows_thresholds=True,
            maximum=1,
            lines=(line(gpu.memory_ratio, GPU),),
        ),
        BarGauge(
            title="Allocated by namespace",
            description="GPU resources that the pods of each namespace request.",
            thresholds=informational(),
            no_value="none",
            lines=(line(gpu.allocated, "{{namespace}}"),),
        ),
    ),
)

POWER = Row(
    title="Power and temperature",
    panels=(
        TimeSeries(
            title="Power by GPU",
            description="Power of each GPU. At its limit the clock is reduced.",
            lines=(line(gpu.power, GPU),),
        ),
        TimeSeries(
            title="Temperature",
            description="Temperature of each GPU and of its memory. Data center GPUs reduce their clock from about "
            "85 °C on.",
            thresholds=rising(80, 87),
            shows_thresholds=True,
            lines=(line(gpu.temperature, GPU), line(gpu.memory_temperature, f"memory {GPU}")),
        ),
        TimeSeries(
            title="Throttling",
            description="Share of time in which the power limit or the temperature reduced the clock.",
            thresholds=rising(0.1, 0.5),
            maximum=1,
            lines=(
                line(gpu.throttled_ratio, f"power {GPU}", cause="power"),
                line(gpu.throttled_ratio, f"temperature {GPU}", cause="thermal"),
            ),
        ),
        TimeSeries(
            title="Energy, 1 h",
            description="Energy of each GPU in the last hour. 3.6 MJ are one kilowatt hour.",
            lines=(line(gpu.energy, GPU, window="1h"),),
        ),
        TimeSeries(
            title="NVLink",
            description="Growth per second of NVIDIA's counter of NVLink traffic over all lanes. Zero in a replica "
            "with tensor parallelism means that its GPUs talk over PCIe.",
            lines=(line(gpu.nvlink_rate, GPU),),
        ),
        TimeSeries(
            title="PCIe retries, 5 min",
            description="Retries on PCIe in the last 5 minutes. A constant rate points to a bad riser or slot.",
            thresholds=rising(1, 100),
            lines=(line(gpu.pcie_retries, GPU, window="5m"),),
        ),
    ),
)

ERRORS = Row(
    title="Errors",
    panels=(
        TimeSeries(
            title="XID codes",
            description="Code of the last XID error of each GPU; 0 if there was none. It is a code, not a count: 79 "
            "means that the GPU has fallen off the bus, 48, 63 and 94 are memory errors.",
            thresholds=rising(1, 2),
            is_stepped=True,
            lines=(line(gpu.xid_code, GPU),),
            runbook="GpuXidError",
        ),
        TimeSeries(
            title="Remapped memory rows, 1 d",
            description="Memory rows that were remapped in the last day after errors. Uncorrectable ones end the "
            "process that used the memory.",
            thresholds=rising(1, 8),
            lines=(
                line(gpu.uncorrectable_remapped_rows, f"uncorrectable {GPU}", window="1d"),
                line(gpu.correctable_remapped_rows, f"correctable {GPU}", window="1d"),
            ),
            runbook="GpuXidError",
        ),
        TimeSeries(
            title="GPUs in Ray",
            description="GPUs of the Ray clusters that replicas use, and that are free. Free GPUs of a running "
            "worker are paid for and used by no replica.",
            is_stacked=True,
            is_stepped=True,
            lines=(line(ray_cluster.logical_gpus, "{{State}} {{rayhelm_dev_service}}"),),
            runbook="GpuWithoutReplica",
        ),
        Table(
            title="GPUs",
            description="The latest values of each GPU.",
            thresholds=informational(),
            columns=(
                Column(header="Node", label="node"),
                Column(header="GPU", label="gpu_id"),
                Column(header="Model", label="gpu_model"),
                Column(header="Utilization", line=line(gpu.utilization)),
                Column(header="Memory", line=line(gpu.memory_ratio), thresholds=rising(0.95, 0.98)),
                Column(header="Power", line=line(gpu.power)),
                Column(header="Temperature", line=line(gpu.temperature), thresholds=rising(80, 87)),
                Column(header="Last XID", line=line(gpu.xid_code), thresholds=rising(1, 2)),
            ),
        ),
    ),
)

DASHBOARD = Dashboard(
    name="gpu",
    title="rayhelm: GPU",
    description="Utilization, memory, power, throttling, errors and links of the GPUs, and which of them are idle.",
    rows=(NOW, WORK, POWER, ERRORS),
)
