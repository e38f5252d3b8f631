-- Token buckets of the tenants with `tokensPerMinute`. A bucket holds the tokens of a minute and is filled continuously. The
-- tokens of a response are known at its end, so a bucket can be overdrawn, and requests wait until that is repaid: over
-- time, a tenant gets no more than its limit. HAProxy calls `count_tokens` in the log format, once for each request, also
-- where the client has left. buckets.map has the time, in ms, at which requests of a tenant may pass again; rules read it.
-- They compare it with the date. core.now() is no date: it falls behind when the process gets no CPU, or the clock is set.
local MINUTE = tonumber((...))
local MAP = "buckets.map"

local limits, full_at = {}, {}
for line in io.lines("limits.map") do
  local tenant, tokens = line:match("^(%S+) %d+ %d+ (%d+)$")
  if tenant then limits[tenant] = tonumber(tokens) end
end

-- Takes TOKENS:DATE:TENANT, with the date in ms. Returns the tokens, for the log.
core.register_converters("count_tokens", function(text)
  local tokens, now, tenant = text:match("^(%d+):(%d+):(.+)$")
  full_at[tenant] = math.max(full_at[tenant] or 0, tonumber(now)) + tokens * MINUTE / limits[tenant]
  core.set_map(MAP, tenant, string.format("%d", math.ceil(full_at[tenant] - MINUTE)))
  return tokens
end)
