"""A Serve autoscaling policy that listens to the engines: how many requests wait in them, and whether first tokens come
in time. Ray Serve imports it by the path `rayhelm.runtime.engine_queue.policy:EngineQueuePolicy`.

decision   how many replicas, from what is seen: pure
signals    what is seen, out of Prometheus' answers: pure
policy     the class that Serve's controller calls; the only one that imports Ray

Ray and the standard library are all it imports, so a serving image needs rayhelm itself, and none of its requirements.
"""
