"""What the doctor reports."""

import enum
from collections.abc import Mapping
from typing import Any

from rayhelm.facts.closed import Closed

__all__ = ["CheckResult", "CheckState", "DoctorReport", "Finding", "Severity", "name_object"]


class Severity(enum.StrEnum):
    """How soon an operator has to act. The same words as in the alerts."""

    critical = "critical"
    """Requests fail, or a part of the platform does not run."""
    warning = "warning"
    """Requests are served; an upgrade, a drain or a rise of the load would fail, or a state cannot be known."""


class Finding(Closed):
    """One thing that is wrong, with its cause and its fix."""

    check: str = ""
    """Id of the check. The runner sets it."""
    severity: Severity | None = None
    """The one of the check, unless the check sets another one."""
    object: str
    """`KIND NAMESPACE/NAME`, or the name of what is missing."""
    evidence: str
    """What was read: a field, a condition, a figure and its limit."""
    cause: str
    """Why it is so, and what follows from it."""
    fix: str
    """A command or YAML that can be pasted."""


class CheckState(enum.StrEnum):
    """How a check ended."""

    ok = "ok"
    findings = "findings"
    skipped = "skipped"
    """It needs a fleet file, Prometheus or helm that was not given."""
    not_checked = "not checked"
    """It could not read what it needs; there is a finding that says so."""


class CheckResult(Closed):
    """How one check ended."""

    id: str
    title: str
    state: CheckState
    why: str = ""
    """Why it was skipped or could not run."""


class DoctorReport(Closed):
    """The result of all checks."""

    cluster: str
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    """Critical ones first."""


def name_object(item: Mapping[str, Any]) -> str:
    """Return `KIND NAMESPACE/NAME` of an object."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{item['kind']} {namespace}/{metadata['name']}" if namespace else f"{item['kind']} {metadata['name']}"
