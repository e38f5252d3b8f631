"""Numbers that scale things, against the real promtool and Prometheus.

rules(...) ──▶ asked(...) ──▶ promtool: what a query answers over series of a test's own
"""

from scaling.kit.promtool import Answer, Series, answers, check_expressions, check_scrapes
from scaling.kit.rules import GATEWAY, SERVICES, adapter_config, asked, numbers

__all__ = [
    "GATEWAY",
    "SERVICES",
    "Answer",
    "Series",
    "adapter_config",
    "answers",
    "asked",
    "check_expressions",
    "check_scrapes",
    "numbers",
]
