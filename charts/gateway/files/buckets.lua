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
local LIMIT = "^%d+ %d+ (%d+)$"

local limits = Map.new("limits.map", Map._str)
local full_at, excess = {}, {}

local function set_full(tenant, time)
  full_at[tenant] = time
  core.set_map(MAP, tenant, string.format("%d", math.ceil(time - MINUTE)))
end

-- live.lua calls it for each changed entry of limits.map. What a tenant has used stays, in tokens; without a limit it is forgotten.
buckets = {}

function buckets.change(tenant, before, after)
  local old, new = before:match(LIMIT), after:match(LIMIT)
  if not full_at[tenant] or not old or old == new then return end
  if not new then
    full_at[tenant] = nil
    return core.del_map(MAP, tenant)
  end
  -- In whole seconds, so at most a second of tokens too many.
  local now = os.time() * 1000
  if full_at[tenant] <= now then return end
  set_full(tenant, math.min(now + (full_at[tenant] - now) * tonumber(old) / tonumber(new), now + FULLEST))
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
  local limit = (limits:lookup(tenant) or ""):match(LIMIT)
  -- The tenant had the limit when the request came.
  if not limit then return tokens end
  set_full(tenant, math.min(math.max(full_at[tenant] or 0, now) + tokens * MINUTE / tonumber(limit), now + FULLEST))
  if version ~= "" then count_excess(tenant, version) end
  return tokens
end)
