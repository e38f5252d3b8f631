-- Keeps keys.map (hash of a key -> TENANT/NAME) equal to the files of the mounted Secrets while the process runs.
-- A file has one line per key: SHA-256 in hex, a name, and optionally when it expires (RFC 3339). An invalid line is
-- ignored, so a key with a mistyped expiry is rejected and not valid forever. When a file is deleted, its keys are removed.
-- A file without a valid line, or one that cannot be read, changes nothing. The content of a line is never logged.
-- state.map has the number of valid keys and the time of the last complete refresh, for the readiness and the metrics.
local interval = math.floor(tonumber((...)) * 1000)
local MAP, STATE = "keys.map", "state.map"
local ENOENT = 2
-- HAProxy ends a task that runs for a second without a pause, and other requests wait while it runs. One change of a map
-- takes 0.2 ms with 40,000 keys (HAProxy 2.8).
local CHANGES, LINES = 20, 500

local tenants, texts, keys_of, owners, logged = {}, {}, {}, {}, {}
-- When the next key expires; 0: a file has changed.
local next_change = 0
for line in io.lines("tenants.map") do
  tenants[#tenants + 1] = line:match("^(%S+)")
end

-- Logs a message once per change.
local function log(tenant, text)
  if logged[tenant] == text then return end
  logged[tenant] = text
  core.log(core.notice, "keys of " .. tenant .. ": " .. text)
end

-- Days from 1970-01-01 to a date of the Gregorian calendar, for years from 1970.
local function count_days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
end

-- Unix time of an RFC 3339 timestamp, or nil.
local function parse_time(text)
  local y, m, d, h, min, s, zone = text:match("^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)%.?%d*([Zz+-].*)$")
  if not y then return nil end
  y, m, d, h, min, s = tonumber(y), tonumber(m), tonumber(d), tonumber(h), tonumber(min), tonumber(s)
  if y < 1970 or m < 1 or m > 12 or h > 23 or min > 59 or s > 60 then return nil end
  local midnight, offset = count_days(y, m, d) * 86400, 0
  if os.date("!*t", midnight).day ~= d then return nil end
  if not zone:match("^[Zz]$") then
    local sign, hours, minutes = zone:match("^([+-])(%d%d):(%d%d)$")
    if not sign or tonumber(hours) > 23 or tonumber(minutes) > 59 then return nil end
    offset = (tonumber(hours) * 60 + tonumber(minutes)) * (sign == "-" and -60 or 60)
  end
  return midnight + (h * 60 + min) * 60 + s - offset
end

-- Returns a function that pauses the task at every `count`th call.
local function new_pause(count)
  local calls = 0
  return function()
    calls = calls + 1
    if calls % count == 0 then core.yield() end
  end
end

local function parse(text)
  local keys, bad, count, pause = {}, 0, 0, new_pause(LINES)
  for line in text:gmatch("[^\r\n]+") do
    pause()
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    if #words > 0 and words[1]:sub(1, 1) ~= "#" then
      local hash, name, expiry = words[1]:upper(), words[2] or "", words[3]
      local expires = expiry and parse_time(expiry)
      if #hash == 64 and hash:match("^%x+$") and #name <= 64 and name:match("^[%w._-]+$")
        and #words <= 3 and (expires or not expiry) then
        keys[hash] = { name = name, expires = expires }
        count = count + 1
      else
        bad = bad + 1
      end
    end
  end
  return keys, bad, count
end

-- Returns whether the file was read, or does not exist.
local function read(tenant)
  local file, _, code = io.open("keys/" .. tenant .. "/keys", "r")
  local text = file and file:read("a")
  if file then file:close() end
  if not text and code ~= ENOENT then
    log(tenant, "the file cannot be read")
    return false
  end
  if text == texts[tenant] then return true end
  local keys, bad, count = parse(text or "")
  texts[tenant] = text
  if not text then
    log(tenant, "the file does not exist")
  elseif bad > 0 and count == 0 then
    log(tenant, "no line is valid, so the keys stay as they were")
    return true
  else
    log(tenant, count .. " valid" .. (bad > 0 and ", " .. bad .. " invalid" or ""))
  end
  keys_of[tenant], next_change = keys, 0
  return true
end

-- The owner of each hash that is valid now, and their number. If two tenants have the same hash, the first one keeps it.
local function find_owners(now)
  local found, shared, count, pause = {}, {}, 0, new_pause(LINES)
  next_change = math.huge
  for _, tenant in ipairs(tenants) do
    for hash, key in pairs(keys_of[tenant] or {}) do
      pause()
      if not key.expires or now < key.expires then
        next_change = math.min(next_change, key.expires or math.huge)
        local value = tenant .. "/" .. key.name
        local other = found[hash]
        if not other then
          found[hash], count = value, count + 1
        else
          shared[tenant .. " and " .. other:match("^[^/]+")] = true
          if owners[hash] == value then found[hash] = value end
        end
      end
    end
  end
  for pair in pairs(shared) do log(pair, "both have the same key; it stays with the first one") end
  return found, count
end

-- Revokes keys before it adds others. A key that is added is in `owners` at once, so an error in between loses nothing.
local function apply(now, count)
  local pause = new_pause(CHANGES)
  for hash in pairs(owners) do
    if not now[hash] then
      core.del_map(MAP, hash)
      owners[hash] = nil
      pause()
    end
  end
  for hash, value in pairs(now) do
    if owners[hash] ~= value then
      core.set_map(MAP, hash, value)
      owners[hash] = value
      pause()
    end
  end
  if count > 0 then core.set_map(STATE, "keys", tostring(count)) end
end

local function refresh()
  local is_complete, started = true, os.time()
  for _, tenant in ipairs(tenants) do
    is_complete = read(tenant) and is_complete
    core.yield()
  end
  if started >= next_change then
    local now, count = find_owners(started)
    local expires = next_change
    next_change = 0
    apply(now, count)
    next_change = expires
  end
  if is_complete then core.set_map(STATE, "refreshed", tostring(started)) end
end

core.register_task(function()
  while true do
    local is_done, message = pcall(refresh)
    if not is_done then core.log(core.alert, "keys: the refresh failed and is repeated: " .. tostring(message)) end
    core.msleep(interval)
  end
end)
