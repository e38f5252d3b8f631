"""The next weight of a version of a model, from its objectives, its requests and its golden prompts: `rayhelm promote`.

subject      the version in the fleet file, and the key with its weight
measure      its requests and those of the present version, from Prometheus
quality      the result of a Job with golden prompts
exact_tests  tests of shares, and the requests that they need
judge        each objective, met or missed
decide       the next weight
report       the decision; its JSON is a contract (`rayhelm promote --format json`)
commit       the message of a commit or a pull request
"""
