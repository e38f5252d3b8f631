"""The command `rayhelm`. One file per command; heavy imports stay inside the functions that need them."""

from rayhelm.cli.app import main

__all__ = ["main"]
