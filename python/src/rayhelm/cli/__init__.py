"""The command `rayhelm`. One file per command, imported when it is asked for."""

from rayhelm.cli.app import main

__all__ = ["main"]
