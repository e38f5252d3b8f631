-- Health of a KubeRay RayService (ray.io/v1), KubeRay 1.6 and 1.7. Argo CD gives scripts no string library.
--
-- The condition Ready says only that an endpoint exists: it stays True when a model has failed. The statuses of the Serve
-- applications decide, those of a new RayCluster included.
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

local function names(map)
  local sorted = {}
  for name, _ in pairs(map or {}) do
    table.insert(sorted, name)
  end
  table.sort(sorted)
  return sorted
end

local FAILED = { DEPLOY_FAILED = true, UNHEALTHY = true }
local CHANGING = { NOT_STARTED = true, DEPLOYING = true, DELETING = true }

-- Texts of the applications and models of one RayCluster whose status is in `wanted`.
local function list(service, wanted)
  local found = {}
  for _, name in ipairs(names(service.applicationStatuses)) do
    local application = service.applicationStatuses[name]
    local text = ""
    for _, model in ipairs(names(application.serveDeploymentStatuses)) do
      local deployment = application.serveDeploymentStatuses[model]
      if wanted[deployment.status] then
        text = text .. ", " .. model .. " is " .. deployment.status
        if deployment.message ~= nil and deployment.message ~= "" then
          text = text .. " (" .. deployment.message .. ")"
        end
      end
    end
    if wanted[application.status] or (wanted == FAILED and text ~= "") then
      local first = "application " .. name .. " is " .. application.status
      if application.message ~= nil and application.message ~= "" then
        first = first .. " (" .. application.message .. ")"
      end
      table.insert(found, first .. text)
    end
  end
  return found
end

local function sum(key, default)
  local total = 0
  for _, group in ipairs(obj.spec.rayClusterConfig.workerGroupSpecs or {}) do
    total = total + (group[key] or default) * (group.numOfHosts or 1)
  end
  return total
end

-- Edits of the bounds reach the running RayCluster only when another edit replaces it.
local function heldBack(running)
  if running.maxWorkerReplicas == nil then
    return ""
  end
  local low, high = sum("minReplicas", 0), sum("maxReplicas", 2147483647)
  if (running.minWorkerReplicas or 0) == low and running.maxWorkerReplicas == high then
    return ""
  end
  return ". Held back: the RayCluster has " .. (running.minWorkerReplicas or 0) .. " to " .. running.maxWorkerReplicas
    .. " workers and the spec " .. low .. " to " .. high .. "; it applies with the next RayCluster"
end

local active = status.activeServiceStatus or {}
local pending = status.pendingServiceStatus or {}
local ready = condition("Ready")

-- Healthy, as it is what the spec asks for: a sync waits until each object is Healthy, and would never end.
if condition("Suspended").status == "True" then
  hs.status = "Healthy"
  hs.message = "suspended: no RayCluster runs"
  return hs
end
-- Read before observedGeneration, which KubeRay does not raise for an invalid spec, in the condition neither.
if ready.reason == "ValidationFailed" or ready.reason == "InitializingTimeout" then
  hs.status = "Degraded"
  hs.message = ready.reason .. ": " .. (ready.message or "")
  return hs
end
-- Kueue sets it until it admits a service, and when it preempts one. KubeRay 1.6 then deletes all pods, and its status can
-- stay Ready with the old endpoints; 1.7 reads it of a new RayCluster only.
if obj.spec.rayClusterConfig.suspend == true then
  hs.status = "Suspended"
  hs.message = "rayClusterConfig.suspend is true: KubeRay 1.6 keeps no pods, for example until Kueue admits the service"
  return hs
end
local failed = list(active, FAILED)
if #failed > 0 then
  hs.status = "Degraded"
  hs.message = table.concat(failed, "; ")
  return hs
end
failed = list(pending, FAILED)
if #failed > 0 then
  hs.status = "Degraded"
  hs.message = "the new RayCluster " .. (pending.rayClusterName or "") .. " cannot serve: " .. table.concat(failed, "; ")
  if ready.status == "True" then
    hs.message = hs.message .. ". " .. (active.rayClusterName or "The active RayCluster") .. " still serves"
  end
  return hs
end
hs.status = "Progressing"
if condition("Suspending").status == "True" then
  hs.message = "is being suspended"
elseif (status.observedGeneration or 0) < generation then
  hs.message = "waiting for KubeRay to observe generation " .. generation
elseif condition("RollbackInProgress").status == "True" then
  hs.message = "rolls back to RayCluster " .. (active.rayClusterName or "")
elseif condition("UpgradeInProgress").status == "True" then
  hs.message = "RayCluster " .. (pending.rayClusterName or "") .. " replaces " .. (active.rayClusterName or "")
elseif ready.status ~= "True" then
  hs.message = (ready.reason or "no condition Ready yet") .. ": " .. (ready.message or "waiting for KubeRay")
elseif #names(active.applicationStatuses) == 0 then
  hs.message = "Serve has no application yet"
elseif #list(active, CHANGING) > 0 then
  hs.message = table.concat(list(active, CHANGING), "; ")
else
  hs.status = "Healthy"
  hs.message = (status.numServeEndpoints or 0) .. " endpoints of RayCluster " .. (active.rayClusterName or "")
    .. heldBack(active.rayClusterStatus or {})
  if (obj.spec.upgradeStrategy or {}).type == "None" then
    hs.message = hs.message .. ". upgradeStrategy None: edits of pods apply when the RayService is recreated"
  end
end
return hs
