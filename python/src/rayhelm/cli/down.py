"""`rayhelm down`: stop what `rayhelm up` started."""

import json

from rayhelm.cli.output import Format, FormatOption
from rayhelm.cli.up import StateOption, open_state
from rayhelm.run.local.serve import down

__all__ = ["down_command"]


def down_command(state_folder: StateOption = None, format: FormatOption = Format.text) -> None:
    """Stop the endpoint on this computer: every process that `up` started, and no other."""
    stopped = down(open_state(state_folder))
    if format is Format.json:
        print(json.dumps({"stopped": stopped}))
        return
    print(f"stopped {stopped} processes" if stopped else "no process of `rayhelm up` is running")
