{{- /* Generated from the values model. Do not edit. */ -}}
{{- define "ray-service.defaults" -}}
{
 "Alias": {},
 "Application": {
  "ingress": {
   "minReplicas": 1,
   "maxReplicas": 2,
   "targetOngoingRequests": 200
  }
 },
 "CustomApplication": {
  "args": {},
  "env": {},
  "deployments": {}
 },
 "CustomDeployment": {
  "minReplicas": 1,
  "maxReplicas": 1,
  "targetOngoingRequests": 2,
  "maxOngoingRequests": 5,
  "cpus": 1,
  "gpus": 0,
  "workerGroup": "",
  "gracefulShutdownSeconds": 20,
  "userConfig": {}
 },
 "Egress": {
  "ports": [
   443
  ]
 },
 "Model": {
  "revision": "",
  "task": "chat",
  "engine": {
   "tensorParallelSize": 1,
   "pipelineParallelSize": 1,
   "gpuMemoryUtilization": 0.9,
   "dtype": "auto",
   "kvCacheDtype": "auto",
   "enforceEager": false,
   "disableCustomAllReduce": false,
   "trustRemoteCode": false,
   "extra": {}
  },
  "accelerator": {
   "kind": "gpu"
  },
  "workerGroups": [],
  "resources": {},
  "gpuFraction": 1.0,
  "placementStrategy": "PACK",
  "replicaCpus": 1,
  "autoscaling": {
   "minReplicas": 1,
   "maxReplicas": 1,
   "upscaleDelaySeconds": 30,
   "downscaleDelaySeconds": 600,
   "lookBackSeconds": 30
  },
  "maxQueuedRequests": -1,
  "router": {
   "kind": "PowerOfTwo",
   "imbalanceThreshold": 10,
   "matchRateThreshold": 0.1
  },
  "healthCheck": {
   "periodSeconds": 10,
   "timeoutSeconds": 30
  },
  "gracefulShutdownSeconds": 120,
  "trustReason": "",
  "env": {}
 },
 "Peer": {
  "namespace": "",
  "podLabels": {}
 },
 "WorkerGroup": {
  "gpu": {
   "count": 1,
   "vendor": "nvidia",
   "resource": "",
   "product": ""
  },
  "minReplicas": 1,
  "maxReplicas": 1,
  "numOfHosts": 1,
  "shmSize": "8Gi",
  "cacheSize": "20Gi",
  "image": {
   "repository": "",
   "tag": "",
   "digest": ""
  },
  "rayResources": {},
  "supplementalGroups": [],
  "networkInterface": "eth0",
  "rdma": {
   "resource": "",
   "count": 1,
   "hca": ""
  },
  "spot": "",
  "nodeSelector": {},
  "tolerations": [],
  "priorityClassName": "",
  "runtimeClassName": "",
  "terminationGracePeriodSeconds": 150,
  "minAvailable": 1,
  "env": {}
 }
}
{{- end }}
