"""Rehearse a fleet on a cluster without GPUs: its releases with tiny models, under load, while it changes.

without_gpus      the fleet's releases as such a cluster can run them
external          removes what the fleet uses outside of itself
change            what an edit does, and the same edit of the stand-ins
scenario          the releases and the steps of a rehearsal
checks, capacity  what prevents a rehearsal on this cluster
record            what a rehearsal creates, stored on the cluster
cluster_session   installs the releases and waits for them
load, load_client a constant load from a pod of the cluster
usage             GPUs that the real fleet would use, and resources of the stand-ins
rehearse          the sequence of all this
report, report_builder, report_page  the result
"""
