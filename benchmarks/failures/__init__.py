"""Measure what happens to requests during failures and changes: a fleet of tiny models under steady load on a real node
(`make node`).

rows     the events and their settings
scene    installs a fleet, and waits until it is ready
pods, gateways, changes    the events
redis    a Redis for state that has to survive the head
page     the table of docs/explanation/failures.md
"""
