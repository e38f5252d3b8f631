"""Scrapes of a live endpoint before, during and after load."""

import asyncio
import time
from collections.abc import Callable

from testbed.live_metrics.catalog.scrapes import Phases, parse_scrapes
from testbed.live_metrics.endpoint import Endpoint
from testbed.live_metrics.load import send_load

__all__ = ["record_phases"]

SETTLE = (15, 30)
"""Seconds before each scrape of the start. Metrics that exist for 20 s only are in the first. The second has what Serve
sets 10 s after a replica starts: Ray collects every 10 s in the process, and every 10 s on the node."""
SCRAPES = 4
"""Scrapes during the load: gauges of rare states are in some of them only."""


def record_phases(endpoint: Endpoint, load: float, idle: float, say: Callable[[str], None]) -> Phases:
    """Scrape all targets in the three phases. Times in seconds."""
    start: list[str] = []
    for seconds in SETTLE:
        time.sleep(seconds)
        start += endpoint.scrape().values()
    say(f"load for {load:.0f} s")
    during = asyncio.run(_scrape_under_load(endpoint, load))
    say(f"idle for {idle:.0f} s")
    time.sleep(idle)
    after = list(endpoint.scrape().values())
    return Phases(parse_scrapes(start), parse_scrapes(during), parse_scrapes(after))


async def _scrape_under_load(endpoint: Endpoint, seconds: float) -> list[str]:
    sending = asyncio.create_task(send_load(endpoint, seconds))
    texts: list[str] = []
    for _ in range(SCRAPES):
        await asyncio.sleep(seconds / SCRAPES * 0.9)
        texts += (await asyncio.to_thread(endpoint.scrape)).values()
    await sending
    return texts
