-- Keeps keys.map (hash of a key -> tenant/name) as the files of the Secrets say, while the process runs.
-- A file has a line for each key: SHA-256 in hex, a name, and perhaps when it ends (RFC 3339). A line that is none of
-- that is left out: whoever mistypes an end loses the key and does not keep it for ever. A file that is gone takes its
-- keys along. One that holds bad lines only, or cannot be read, changes nothing. What stands in a line is never logged.
local interval = math.floor(tonumber((...)) * 1000)
local MAP, STATE = "keys.map", "state.map"
local GONE = 2 -- ENOENT

local tenants, held, owners, said = {}, {}, {}, {}
for line in io.lines("tenants.map") do
  tenants[#tenants + 1] = line:match("^(%S+)")
end

local function say(tenant, text)
  if said[tenant] == text then return end
  said[tenant] = text
  core.log(core.notice, "keys of " .. tenant .. ": " .. text)
end

-- Days since 1970 of a date in the Gregorian calendar, for years from 1970.
local function days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
end

local function seconds(text)
  local y, m, d, h, min, s, zone = text:match("^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)%.?%d*([Zz+-].*)$")
  if not y then return nil end
  y, m, d, h, min, s = tonumber(y), tonumber(m), tonumber(d), tonumber(h), tonumber(min), tonumber(s)
  if y < 1970 or m < 1 or m > 12 or h > 23 or min > 59 or s > 60 then return nil end
  local midnight, offset = days(y, m, d) * 86400, 0
  if os.date("!*t", midnight).day ~= d then return nil end
  if not zone:match("^[Zz]$") then
    local sign, hours, minutes = zone:match("^([+-])(%d%d):(%d%d)$")
    if not sign or tonumber(hours) > 23 or tonumber(minutes) > 59 then return nil end
    offset = (tonumber(hours) * 60 + tonumber(minutes)) * (sign == "-" and -60 or 60)
  end
  return midnight + (h * 60 + min) * 60 + s - offset
end

local function parse(text)
  local keys, bad, count = {}, 0, 0
  for line in text:gmatch("[^\r\n]+") do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    if #words > 0 and words[1]:sub(1, 1) ~= "#" then
      local hash, name, ends = words[1]:lower(), words[2] or "", words[3]
      local until_ = ends and seconds(ends)
      if #hash == 64 and hash:match("^%x+$") and #name <= 64 and name:match("^[%w._-]+$")
        and #words <= 3 and (until_ or not ends) then
        keys[hash] = { name = name, ends = until_ }
        count = count + 1
      else
        bad = bad + 1
      end
    end
  end
  return keys, bad, count
end

local function read(tenant)
  local file, _, code = io.open("keys/" .. tenant .. "/keys", "r")
  if not file then
    if code == GONE then held[tenant] = {} end
    return say(tenant, code == GONE and "there is no such file" or "the file cannot be read")
  end
  local text = file:read("a")
  file:close()
  if not text then return say(tenant, "the file cannot be read") end
  local keys, bad, count = parse(text)
  if bad > 0 and count == 0 then return say(tenant, "no line is valid, so nothing was changed") end
  held[tenant] = keys
  say(tenant, count .. " valid" .. (bad > 0 and ", " .. bad .. " not valid" or ""))
end

-- Whoever holds a key keeps it: another tenant with the same hash gets nothing.
local function wanted(now)
  local found, shared = {}, {}
  for _, tenant in ipairs(tenants) do
    for hash, key in pairs(held[tenant] or {}) do
      if not key.ends or now < key.ends then
        local value = tenant .. "/" .. key.name
        local other = found[hash]
        if not other then
          found[hash] = value
        else
          shared[tenant .. " and " .. other:match("^[^/]+")] = true
          if owners[hash] == value then found[hash] = value end
        end
      end
    end
  end
  for pair in pairs(shared) do say(pair, "one is the same, and stays with whoever had it first") end
  return found
end

local function refresh()
  for _, tenant in ipairs(tenants) do
    read(tenant)
    core.yield()
  end
  local now = wanted(os.time())
  for hash, value in pairs(now) do
    if owners[hash] ~= value then core.set_map(MAP, hash, value) end
  end
  for hash in pairs(owners) do
    if not now[hash] then core.del_map(MAP, hash) end
  end
  owners = now
  if next(now) then core.set_map(STATE, "keys", "read") end
end

core.register_task(function()
  while true do
    refresh()
    core.msleep(interval)
  end
end)
