-- Health of an Argo CD Application: with it the waves of Applications wait. Argo CD removed its own check in 1.8.
local hs = { status = "Progressing", message = "" }
local status = obj.status or {}
local operation = status.operationState or {}

for _, found in ipairs(status.conditions or {}) do
  if found.type == "ComparisonError" or found.type == "InvalidSpecError" then
    hs.status = "Degraded"
    hs.message = found.type .. ": " .. (found.message or "")
    return hs
  end
end
if operation.phase == "Failed" or operation.phase == "Error" then
  hs.status = "Degraded"
  hs.message = "the last sync failed: " .. (operation.message or "")
elseif operation.phase == "Running" then
  hs.message = operation.message or "is being synchronized"
elseif (status.sync or {}).status ~= "Synced" and operation.phase == nil then
  -- A new Application is Healthy as long as it has no object.
  hs.message = "not synchronized yet"
elseif operation.phase == "Succeeded" and (status.sync or {}).status ~= "Synced"
    and (status.reconciledAt or "") < (operation.finishedAt or "") then
  -- Argo CD compares once more after a sync. Until then the health is that of before.
  hs.message = "synchronized; not compared yet"
elseif (status.health or {}).status == "Suspended" then
  -- Waves wait for Healthy: a service that Kueue has preempted would stop every later commit of a fleet.
  hs.status = "Healthy"
  hs.message = "synchronized; an object is suspended"
elseif status.health ~= nil and status.health.status ~= nil then
  hs.status = status.health.status
  hs.message = status.health.message or ""
end
return hs
