-- Health of a KubeRay RayJob (ray.io/v1), KubeRay 1.6 and 1.7: as Argo CD's own check of a Job, it is Healthy only when
-- the job has succeeded. Argo CD gives scripts no string library.
local hs = {}
local status = obj.status or {}
local deployment = status.jobDeploymentStatus or ""

local function explain(text)
  if status.reason ~= nil and status.reason ~= "" then
    text = text .. " (" .. status.reason .. ")"
  end
  if status.message ~= nil and status.message ~= "" then
    text = text .. ": " .. status.message
  end
  return text
end

if deployment == "Failed" or deployment == "ValidationFailed" then
  hs.status = "Degraded"
  hs.message = explain(deployment)
elseif deployment == "Complete" and status.jobStatus == "SUCCEEDED" then
  hs.status = "Healthy"
  hs.message = "succeeded"
elseif deployment == "Complete" then
  hs.status = "Degraded"
  hs.message = explain("the job is " .. (status.jobStatus or "unknown"))
elseif deployment == "Suspended" then
  hs.status = "Suspended"
  hs.message = "suspended: it has no RayCluster"
elseif deployment == "Waiting" then
  hs.status = "Suspended"
  hs.message = "waits until a person submits the job"
elseif deployment == "" then
  hs.status = "Progressing"
  hs.message = "waiting for KubeRay"
else
  hs.status = "Progressing"
  hs.message = deployment
end
return hs
