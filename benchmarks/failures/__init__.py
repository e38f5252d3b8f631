"""Measure what happens to requests during failures and changes: tiny models under constant load on a real node
(`make node`).

rows     the events and their settings
installation    installs a fleet, and waits until it is ready
pods, gateways, changes    the events
redis    a Redis for state that has to survive the head
page     the table of docs/explanation/failures.md
"""
