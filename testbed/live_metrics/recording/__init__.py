"""The recorded run: series of a live endpoint, which rules and dashboards are replayed against."""

from testbed.live_metrics.recording.recorded import FLEET, RECORDED, Phase, Recorded, load_recorded

__all__ = ["FLEET", "RECORDED", "Phase", "Recorded", "load_recorded"]
