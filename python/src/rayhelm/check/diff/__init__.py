"""Forecast what replacing one state of a fleet by another does to running services.

side        a state: a fleet file, a rendered folder, a revision of git, a live cluster
compare     what happens to each release
immutable   changes of objects that the API server refuses
gpus        GPUs that are needed meanwhile
requests    models that are loaded again, requests at risk, time
advice      what to do instead
page        text and Markdown
"""
