"""Tests that drive the real HAProxy."""
