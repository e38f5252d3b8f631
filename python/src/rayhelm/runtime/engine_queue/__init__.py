"""A Serve autoscaling policy that uses metrics of the engines: waiting requests, and the share of first tokens in time.

Ray Serve imports it as `rayhelm.runtime.engine_queue.policy:EngineQueuePolicy`.

decision   the number of replicas, from measurements; pure
signals    the measurements, from answers of Prometheus; pure
policy     the class that Serve's controller calls; the only module that imports Ray
"""
