-- Takes over limits, weights, access and bounds of tenants while the process runs: the kubelet replaces the maps below when the
-- ConfigMap changes. Requests in flight, counters, buckets and the circuit stay as they are.
-- All maps are taken over, or none. Those of a ConfigMap whose other files differ from the ones that this process has loaded are
-- for the pods that replace this one. A map without its last line, with an invalid value or with an unknown version changes
-- nothing. state.map has `maps_refused` and `maps_for_other_pods`, for the metrics.
local interval = math.floor(tonumber((...)) * 1000)
local STATE, LAST_LINE = "state.map", "# end\n"
-- In the order in which they are changed. A request reads its model's count of slots before it draws a slot, so versions are
-- written before counts, and no slot is removed.
local NAMES = {
  "rate-limits", "concurrency-limits", "limits", "lists", "bounds", "slot-versions", "slot-counts", "hidden-versions", "access",
}
local IS_KEPT = { ["slot-versions"] = true, ["slot-counts"] = true }
-- HAProxy ends a task that runs for a second without a pause, and other requests wait while it runs.
local CHANGES, LINES = 20, 500

local function read(name)
  local file = io.open(name, "r")
  local text = file and file:read("a")
  if file then file:close() end
  return text
end

-- Returns a function that pauses the task at every `count`th call.
local function new_pause(count)
  local calls = 0
  return function()
    calls = calls + 1
    if calls % count == 0 then core.yield() end
  end
end

local function parse(text, pause)
  local entries = {}
  for line in text:gmatch("[^\n]+") do
    pause()
    local key, value = line:match("^([^#%s]%S*) (.+)$")
    if key and not entries[key] then entries[key] = value end
  end
  return entries
end

local maps, applied, tenants, models = {}, {}, {}, {}
local function no_pause() end
for _, name in ipairs(NAMES) do
  maps[name] = Map.new(name .. ".map", Map._str)
  applied[name] = parse(read(name .. ".map"), no_pause)
end
for line in io.lines("tenants.map") do tenants[#tenants + 1] = line:match("^%S+") end
for model in pairs(applied["slot-counts"]) do models[#models + 1] = model end
local backends, aliases = parse(read("backends.map"), no_pause), parse(read("aliases.map") or "", no_pause)
local structure = read("structure")

local function check_limits(found, pause)
  for _, tenant in ipairs(tenants) do
    pause()
    local rate, concurrency, rest = (found.limits[tenant] or ""):match("^(%d+) (%d+)(.*)$")
    if not rate or not rest:match("^ ?%d*$") then return "limits.map has no valid limits of tenant " .. tenant end
    if found["rate-limits"][tenant] ~= rate then return "rate-limits.map and limits.map differ for tenant " .. tenant end
    if found["concurrency-limits"][tenant] ~= concurrency then
      return "concurrency-limits.map and limits.map differ for tenant " .. tenant
    end
  end
end

local function check_weights(found, pause)
  for _, model in ipairs(models) do
    local count = (found["slot-counts"][model] or ""):match("^%d+$")
    if not count or tonumber(count) < 1 or tonumber(count) > 100 then return "slot-counts.map has no valid count of model " .. model end
    for slot = 0, tonumber(count) - 1 do
      pause()
      local version = found["slot-versions"][model .. ":" .. slot]
      if not version or not backends[model .. ":" .. version] then
        return "slot-versions.map has no known version in slot " .. slot .. " of model " .. model
      end
    end
  end
end

local function check_access(found, pause)
  for key, version in pairs(found.access) do
    pause()
    local model = key:match(":(.*)$") or ""
    if version ~= "*" and not backends[(aliases[model] or model) .. ":" .. version] then
      return "access.map has an unknown version of model " .. model
    end
  end
  for key, value in pairs(found.bounds) do
    pause()
    local output, body = value:match("^(%w+) (%w+) %a+$")
    if not output or output ~= "none" and not output:match("^%d+$") or body ~= "none" and not body:match("^%d+$") then
      return "bounds.map has no valid bounds for " .. key
    end
  end
end

local function apply(found)
  local pause = new_pause(CHANGES)
  for _, name in ipairs(NAMES) do
    local file = name .. ".map"
    for key, value in pairs(found[name]) do
      local before = maps[name]:lookup(key)
      if before ~= value then
        core.set_map(file, key, value)
        if name == "limits" and before and buckets then buckets.change(key, before, value) end
        pause()
      end
    end
    for key in pairs(IS_KEPT[name] and {} or applied[name]) do
      if not found[name][key] then
        core.del_map(file, key)
        pause()
      end
    end
    applied[name] = found[name]
  end
end

-- Returns the complete text of each map; or nil, what is wrong, and whether the maps are for this process.
local function read_maps()
  if read("structure") ~= structure then
    return nil, "the configuration is for other pods, so the maps stay until this pod is replaced", false
  end
  local texts = {}
  for at, name in ipairs(NAMES) do
    texts[at] = read(name .. ".map") or ""
    if texts[at]:sub(-#LAST_LINE) ~= LAST_LINE then return nil, name .. ".map is not complete", true end
  end
  return texts
end

local logged, last, current
local function log(level, text)
  if logged ~= text then core.log(level, "maps: " .. text) end
  logged = text
end

local function refuse(text)
  core.set_map(STATE, "maps_refused", "1")
  log(core.alert, text .. "; all maps stay as they were")
end

-- The kubelet replaces all files at once, but they are read one after the other. So they are used when two reads find the same.
local function refresh()
  local texts, message, is_ours = read_maps()
  core.set_map(STATE, "maps_for_other_pods", (texts or is_ours) and "0" or "1")
  if not texts then
    last, current = nil, nil
    if is_ours then return refuse(message) end
    return log(core.notice, message)
  end
  local text = table.concat(texts)
  if text == current then return end
  if text ~= last then
    last = text
    return
  end
  local found, pause = {}, new_pause(LINES)
  for at, name in ipairs(NAMES) do found[name] = parse(texts[at], pause) end
  current = text
  local failure = check_limits(found, pause) or check_weights(found, pause) or check_access(found, pause)
  if failure then return refuse(failure) end
  apply(found)
  core.set_map(STATE, "maps_refused", "0")
  log(core.notice, "limits of " .. #tenants .. " tenants and weights of " .. #models .. " models are in effect")
  logged = nil
end

core.register_task(function()
  while true do
    local is_done, message = pcall(refresh)
    if not is_done then
      current = nil
      core.log(core.alert, "maps: the refresh failed and is repeated: " .. tostring(message))
    end
    core.msleep(interval)
  end
end)
