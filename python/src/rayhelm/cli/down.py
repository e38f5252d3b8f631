"""`rayhelm down`: ends what `rayhelm up` started."""

from rayhelm.cli.output import Format, FormatOption
from rayhelm.cli.up import StateOption, home_of

__all__ = ["down_command"]


def down_command(state: StateOption = None, format: FormatOption = Format.text) -> None:
    """End the endpoint on this computer: every process that `up` started, and no other."""
    import json

    from rayhelm.local.serve import down

    home = home_of(state)
    ended = down(home)
    if format is Format.json:
        print(json.dumps({"ended": ended}))
        return
    print(f"ended {ended} processes" if ended else "nothing of ours is running")
