-- Health of a KubeRay RayCluster (ray.io/v1), KubeRay 1.6 and 1.7. Argo CD gives scripts no string library.
local hs = {}
local status = obj.status or {}
local generation = obj.metadata.generation or 0

local function condition(kind)
  for _, found in ipairs(status.conditions or {}) do
    if found.type == kind then
      return found
    end
  end
  return {}
end

local function explain(found)
  return (found.reason or "no status yet") .. ": " .. (found.message or "waiting for KubeRay")
end

if condition("RayClusterSuspended").status == "True" then
  hs.status = "Suspended"
  hs.message = "suspended: it has no pods"
  return hs
end
if condition("ReplicaFailure").status == "True" then
  hs.status = "Degraded"
  hs.message = explain(condition("ReplicaFailure"))
  return hs
end
if status.state == "failed" then
  hs.status = "Degraded"
  hs.message = "failed: " .. (status.reason or "")
  return hs
end
hs.status = "Progressing"
local available, minimum = status.availableWorkerReplicas or 0, status.minWorkerReplicas or 0
if condition("RayClusterSuspending").status == "True" then
  hs.message = "is being suspended"
elseif (status.observedGeneration or 0) < generation then
  hs.message = "waiting for KubeRay to observe generation " .. generation
elseif condition("HeadPodReady").status ~= "True" then
  hs.message = "head: " .. explain(condition("HeadPodReady"))
elseif condition("RayClusterProvisioned").status ~= "True" then
  hs.message = explain(condition("RayClusterProvisioned"))
elseif available < minimum then
  hs.message = available .. " of " .. minimum .. " workers run"
else
  hs.status = "Healthy"
  hs.message = "head and " .. available .. " workers run"
end
return hs
