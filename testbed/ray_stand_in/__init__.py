"""A stand-in for Ray's dashboard and Serve, with which the KubeRay operator makes a RayService ready without
containers.

The operator, started with HTTP_PROXY naming this program, sends it everything that it asks of Ray, as absolute URLs:

    GET, PUT http://<head Service>.<namespace>.svc.<cluster domain>:<dashboard port>/api/serve/applications/
    GET      http://<IP of the head pod>:<Serve's port>/-/healthz

It answers as Ray would, from what the API server shows:

* A host is a head that is there: owned by its RayCluster, phase Running, Ready. Any other is a dead host: 502. So is
  any port that this head's command line (`--dashboard-port`) or Serve configuration (`http_options`) does not open.
* A configuration that was PUT is checked with Ray's `ServeDeploySchema` where Ray is installed, else by its JSON shape;
  a wrong one is refused with 400 and Ray's message.
* What was PUT is kept for the life of the head's container: a new head pod, or a restart of its container, has
  forgotten it, unless the RayCluster has GCS fault tolerance.
* Serve's proxy listens from the first PUT on, and is healthy from the first application that has a route.
* In token mode the head pod's own RAY_AUTH_TOKEN is asked for: 401 without one, 403 for another one.
* An application is DEPLOYING from its PUT on, and RUNNING once each worker group has the pods Ready that the RayCluster
  asks for as its minimum (minReplicas x numOfHosts). When one of them is lost later, it is UNHEALTHY until it is back.

What it does not do: nothing runs, no GPU is used, no code is imported. Which deployment needs which worker is not known
here, so all applications of a cluster wait for all of its minimum. Deployments are those that the configuration names.
The token is read at the first call to a head. With GCS fault tolerance each RayCluster keeps its own memory, also where
two of them name one `externalStorageNamespace`. Everything else that Ray's dashboard can do answers 404.

Tests reach it through `client.RayStandIn`, on loopback and with a plain path in place of a proxied URL:

    GET     /-/stand-in                     is it ready, and what checks a configuration
    GET     /-/stand-in/<namespace>/<name>  what was PUT to a RayCluster, or to all those of a RayService
    PUT     /-/stand-in/<namespace>/<name>  fail as requested: see `failures.Failure`
    DELETE  /-/stand-in/<namespace>/<name>  heal
"""
