"""Health checks in Lua, run with the libraries that Argo CD gives them: base and table, and no string library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lupa.lua51
import yaml

__all__ = ["CUSTOMIZATIONS", "KINDS", "HealthCase", "assess", "list_cases"]

CUSTOMIZATIONS = Path(__file__).parents[2] / "resource_customizations"
KINDS = sorted(path.parent.relative_to(CUSTOMIZATIONS).as_posix() for path in CUSTOMIZATIONS.rglob("health.lua"))
"""`<group>/<kind>` of each check."""
REMOVED = ("io", "string", "math", "debug", "coroutine", "dofile", "loadfile", "os", "python")
"""What a plain Lua 5.1 has and Argo CD's `newLuaState` (util/lua/lua.go) does not open."""


@dataclass(frozen=True)
class HealthCase:
    """An entry of a health_test.yaml."""

    kind: str
    """`<group>/<kind>`."""
    input_path: str
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}/{Path(self.input_path).stem}"

    def load(self) -> dict[str, Any]:
        """Return the object."""
        found: dict[str, Any] = yaml.safe_load((CUSTOMIZATIONS / self.kind / self.input_path).read_text())
        return found


def list_cases() -> list[HealthCase]:
    """Return the entries of every health_test.yaml."""
    return [
        HealthCase(kind, test["inputPath"], test["healthStatus"]["status"], test["healthStatus"].get("message", ""))
        for kind in KINDS
        for test in yaml.safe_load((CUSTOMIZATIONS / kind / "health_test.yaml").read_text())["tests"]
    ]


def assess(kind: str, item: dict[str, Any]) -> tuple[str, str]:
    """Return status and message of an object. `kind` is `<group>/<kind>`."""
    runtime = lupa.lua51.LuaRuntime(register_eval=False, register_builtins=False)
    runtime.execute('getmetatable("").__index = nil')
    for name in REMOVED:
        runtime.globals()[name] = None
    runtime.globals().obj = _as_table(runtime, item)
    found = runtime.execute((CUSTOMIZATIONS / kind / "health.lua").read_text())
    return str(found.status), str(found.message or "")


def _as_table(runtime: Any, value: Any) -> Any:
    """Return a Lua table; null is an absent key, as in Argo CD."""
    if isinstance(value, dict):
        return runtime.table_from({key: _as_table(runtime, each) for key, each in value.items() if each is not None})
    if isinstance(value, list):
        return runtime.table_from([_as_table(runtime, each) for each in value])
    return value
