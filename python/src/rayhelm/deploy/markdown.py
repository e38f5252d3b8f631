"""Texts of users in Markdown pages, which people review and GitHub renders."""

from typing import Any

from rayhelm.deploy.control_characters import escape_controls

__all__ = ["escape_markdown", "escape_texts"]


def escape_markdown(text: str) -> str:
    """Return a text as one line that can be in a cell of a table: without HTML, links, images and control characters.
    Code in backticks stays code."""
    line = escape_controls(" ".join(text.splitlines()))
    return line.replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")


def escape_texts(value: Any) -> Any:
    """Escape what an expression of a Jinja2 template gives: its `finalize`."""
    return escape_markdown(value) if isinstance(value, str) else value
