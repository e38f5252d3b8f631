"""Checks before a deployment.

lint                    rules of charts, of Ray, and of queries, with lines of the fleet file
admission               evaluates the admission policies
diff                    what replacing one state of a fleet by another does to running services
forecast                what KubeRay does after an edit
"""
