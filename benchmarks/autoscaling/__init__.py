"""Ray Serve's own autoscaling rule against rayhelm's policy EngineQueue, on an hour of real arrivals. `make
bench-autoscaling` writes result.json.

Real: both policies, and Ray's code that lays delays, factors and bounds over them; the arrivals, minute by minute.
Simulated: everything else. Replicas are as fast as the planner's performance model says, load for as long as it says,
and are there when their load ends: no node has to come, no image to be pulled. Metrics reach the policies as late as
Ray and Prometheus would bring them. Nothing here ran on a GPU.

trace     arrivals: a minute's number of requests and tokens, drawn as single requests
engine    one replica, by the planner's performance model
service   replicas, the router before them, and whoever decides how many there are
deciders  the policies, called as Serve's controller calls them
hour      the plan, and one hour by it
report    cards and first tokens in time, and what follows
"""
