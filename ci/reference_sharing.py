"""The page about copies of a model on one GPU, with figures of the planner."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import resolve
from rayhelm.planner.memory.engine_settings import EngineSettings
from rayhelm.planner.memory.fit import Fit, fit
from rayhelm.planner.speed.query import SpeedQuery, answer_query

__all__ = ["sharing_page"]

GPU, GPUS = "A100-SXM-40GB", 8
CONFIG = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "sharing-a-gpu" / "config.json"
INPUT, OUTPUT, CONTEXT = 128, 75, 2048
CASES = ((1, 1), (1, 4), (2, 4), (1, 8), (1, 32), (4, 8))
"""Copies on each GPU, and requests in flight in each copy."""

PAGE = Path(__file__).parent / "pages" / "sharing-a-gpu.md.in"


@dataclass(frozen=True)
class Row:
    """Copies of the model on each GPU of the node."""

    copies: int
    batch: int
    """Requests in flight in each copy."""
    memory: Fit
    latency_s: float
    """From arrival to the last token, without waiting."""

    @property
    def rate(self) -> float:
        """Requests per second of the node."""
        return GPUS * self.copies * self.batch / self.latency_s

    def list_cells(self, price: float) -> Iterator[str]:
        """Yield the cells of the table; `price` is USD per hour of the node."""
        yield f"{self.copies}"
        yield f"{self.batch}"
        yield f"{self.memory.kv_cache_tokens or 0:,}"
        if not self.memory.fits:
            yield from ("does not fit", "-", "-", "-")
            return
        yield f"{self.latency_s * 1000:,.0f} ms"
        yield f"{self.rate:,.0f}"
        yield f"{price:.2f}"
        yield f"{price / 3600 / self.rate / OUTPUT * 1e6:.2f}"


def sharing_page() -> str:
    price = GPUS * (load_catalog().gpu(GPU).price.on_demand or 0)
    rows = {(copies, batch): _estimate(copies, batch) for copies, batch in CASES}
    two, one = rows[2, 4], rows[1, 8]
    head = (
        "copies on each GPU", "requests in flight in each", "KV cache of each, tokens", "latency", "requests/s",
        "USD per hour", "USD per 1M output tokens",
    )  # fmt: skip
    lines = [head, ["---"] * len(head), *(list(row.list_cells(price)) for row in rows.values())]
    return PAGE.read_text().format(
        table="\n".join(f"| {' | '.join(line)} |" for line in lines),
        gain=one.rate / two.rate,
        latency=one.latency_s / two.latency_s,
        reason=rows[4, 8].memory.reason.partition(": ")[2].partition("; with")[0] or rows[4, 8].memory.reason,
        gpu=GPU,
        input=INPUT,
        output=OUTPUT,
        context=CONTEXT,
    )


def _estimate(copies: int, batch: int) -> Row:
    found = answer_query(
        SpeedQuery(config=str(CONFIG), gpu=GPU, input_tokens=INPUT, output_tokens=OUTPUT, concurrency=batch)
    )
    seconds = copies * (found.ttft_s.mid + (OUTPUT - 1) * found.tpot_s.mid)
    model = resolve(str(CONFIG), None)
    memory = fit(model, [load_catalog().gpu(GPU)], settings=EngineSettings(fraction=1 / copies, context=CONTEXT))
    return Row(copies, batch, memory, seconds)
