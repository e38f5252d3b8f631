"""Queries, dashboards, alert rules and costs, all from one catalog of metrics.

queries             functions that return PromQL; the only place where PromQL is written
check               refuses PromQL that cannot work with the metrics of the catalog
dashboards, rules   written with the queries

It imports nothing heavy.
"""
