-- Token buckets of the tenants with `tokensPerMinute`. A bucket holds the tokens of a minute and is filled continuously. The
-- tokens of a response are known at its end, so a bucket can be overdrawn, and requests wait until that is repaid, but never
-- longer than OVERDRAFT: no model server can lock a tenant out for long. HAProxy calls `count_tokens` in the log format, once for each request, also
-- where the client has left. buckets.map has the time, in ms, at which requests of a tenant may pass again; rules read it.
-- They compare it with the date. core.now() is no date: it falls behind when the process gets no CPU, or the clock is set.
-- excess.map has how many responses of a model reported more tokens than their request may cost, by tenant.
local MINUTE, OVERDRAFT_MINUTES = ...
MINUTE = tonumber(MINUTE)
local FULLEST = MINUTE * (tonumber(OVERDRAFT_MINUTES) + 1)
local MAP, EXCESS = "buckets.map", "excess.map"

local limits, full_at, excess = {}, {}, {}
for line in io.lines("limits.map") do
  local tenant, tokens = line:match("^(%S+) %d+ %d+ (%d+)$")
  if tenant then limits[tenant] = tonumber(tokens) end
end

local function count_excess(tenant, version)
  local key = tenant .. ":" .. version
  excess[key] = (excess[key] or 0) + 1
  core.set_map(EXCESS, key, tostring(excess[key]))
end

-- Takes TOKENS:DATE:TENANT, with the date in ms, and #MODEL:VERSION if it reported too many. Returns the tokens, for the log.
core.register_converters("count_tokens", function(text)
  local tokens, now, tenant, version = text:match("^(%d+):(%d+):([^#]+)#?(.*)$")
  now = tonumber(now)
  full_at[tenant] = math.min(math.max(full_at[tenant] or 0, now) + tokens * MINUTE / limits[tenant], now + FULLEST)
  core.set_map(MAP, tenant, string.format("%d", math.ceil(full_at[tenant] - MINUTE)))
  if version ~= "" then count_excess(tenant, version) end
  return tokens
end)
