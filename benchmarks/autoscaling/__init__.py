"""Compare Ray Serve's own autoscaling rule with rayhelm's policy EngineQueue, on an hour of real arrivals. `make
bench-autoscaling` writes result.json.

Real: both policies, Ray's code that applies delays, factors and limits to them, and the arrivals per minute. Simulated:
everything else. Replicas are as fast as the planner's performance model says and take as long to load; no node has to
be added and no image pulled. Metrics reach the policies as late as Ray and Prometheus would deliver them. Nothing here
ran on a GPU.

trace     arrivals: number of requests and tokens per minute, drawn as single requests
engine    one replica, by the planner's performance model
service   replicas, the router, and the policy that sets the number of replicas
deciders  the policies, called as Serve's controller calls them
hour      the plan, and one simulated hour
report    GPU hours, and first tokens in time
"""
