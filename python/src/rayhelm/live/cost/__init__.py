"""What GPUs, requests and tokens cost, from the series of a Prometheus: `rayhelm cost`.

client     the HTTP API of Prometheus, and what can go wrong with it
periods    months and other periods, in UTC
usage      GPU-hours, requests and tokens of a period
planned    prices and load of the plan of a fleet
report     rows with costs; its JSON is a contract (`rayhelm cost --format json`)
tenants    the cost of a model, divided among its tenants
build      a report from usage and plan
csv_file   the rows for finance
"""
