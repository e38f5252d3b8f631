"""Who may reach whom.

flows     data/network/flows.yaml, the list of what is allowed, written by hand
passages  the flows of one release, with the pods and addresses that its values name
sites     releases as sites of a network
table     the flows of a chart, for its README
"""

from rayhelm.network.flows import chart_flows
from rayhelm.network.passages import EVERY, Addresses, End, Own, Passage, Pods, Site, passages
from rayhelm.network.sites import site_of

__all__ = ["EVERY", "Addresses", "End", "Own", "Passage", "Pods", "Site", "chart_flows", "passages", "site_of"]
