-- Metrics of the tenants, which HAProxy's exporter does not have. HAProxy counts in stick tables, and this service only reads
-- them. Its arguments are the reasons of refused requests in the order of their counters.
local REASONS = { ... }
local CLASSES = { [0] = "2xx", "4xx", "5xx" }

local MINUTE = 60000

local limits, buckets, excess = {}, nil, nil
for line in io.lines("limits.map") do
  local tenant, rate, concurrency, tokens = line:match("^(%S+) (%d+) (%d+) ?(%d*)$")
  if tenant then
    limits[#limits + 1] = { tenant = tenant, rate = rate, concurrency = concurrency, tokens = tonumber(tokens) }
    -- buckets.lua writes them.
    if limits[#limits].tokens then
      buckets = buckets or Map.new("buckets.map", Map._str)
      excess = excess or Map.new("excess.map", Map._str)
    end
  end
end

-- Where each version is served.
local owners = {}
if buckets then
  for line in io.lines("costs.map") do
    local version, owner = line:match("^owner (%S+) (%S+)$")
    if version then owners[version] = owner end
  end
end

local function new_page()
  local lines = {}
  local page = {}
  function page.metric(name, kind, help)
    lines[#lines + 1] = "# HELP " .. name .. " " .. help
    lines[#lines + 1] = "# TYPE " .. name .. " " .. kind
  end
  -- Labels are pairs of name and value. Values are names of the values file, which need no escapes.
  function page.sample(name, labels, value)
    local pairs_of = {}
    for at = 1, #labels, 2 do pairs_of[#pairs_of + 1] = labels[at] .. '="' .. labels[at + 1] .. '"' end
    local text = #pairs_of > 0 and "{" .. table.concat(pairs_of, ",") .. "}" or ""
    lines[#lines + 1] = name .. text .. " " .. value
  end
  function page.text() return table.concat(lines, "\n") .. "\n" end
  return page
end

local function sorted_keys(entries)
  local keys = {}
  for key in pairs(entries) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- keys.lua and tokens.lua write this map.
local state = Map.new("state.map", Map._str)

-- secrets.lua writes it: SECRET:FIRST:LAST of each certificate. There is no file without TLS and remote gateways.
local file = io.open("certificates.map")
local certificates = file and Map.new("certificates.map", Map._str)
if file then file:close() end

local function build_page(converters, fetches)
  local page = new_page()
  local tenants = core.proxies["tenants"].stktable:dump()
  local requests = core.proxies["requests"].stktable:dump()

  page.metric("rayhelm_gateway_requests_total", "counter", "Requests that were forwarded and answered.")
  for _, key in ipairs(sorted_keys(requests)) do
    local tenant, model, version = key:match("^([^:]*):(.*):([^:]*)$")
    for index = 0, #CLASSES do
      local count = converters:table_gpc(key, index, "requests")
      local labels = { "tenant", tenant, "model", model, "version", version, "code", CLASSES[index] }
      if count > 0 then page.sample("rayhelm_gateway_requests_total", labels, count) end
    end
  end

  page.metric("rayhelm_gateway_rejections_total", "counter", "Requests that the gateway refused.")
  for _, key in ipairs(sorted_keys(tenants)) do
    local tenant = key == "-" and "" or key
    for index, reason in ipairs(REASONS) do
      local count = converters:table_gpc(key, index - 1, "tenants")
      if count > 0 then page.sample("rayhelm_gateway_rejections_total", { "tenant", tenant, "reason", reason }, count) end
    end
  end

  page.metric("rayhelm_gateway_requests_in_flight", "gauge", "Requests in flight.")
  for _, limit in ipairs(limits) do
    local entry = tenants[limit.tenant]
    page.sample("rayhelm_gateway_requests_in_flight", { "tenant", limit.tenant }, entry and entry.conn_cur or 0)
  end

  page.metric("rayhelm_gateway_keys", "gauge", "API keys that are valid.")
  page.sample("rayhelm_gateway_keys", {}, state:lookup("keys") or 0)
  page.metric("rayhelm_gateway_keys_read_timestamp_seconds", "gauge", "When all key files were last read.")
  page.sample("rayhelm_gateway_keys_read_timestamp_seconds", {}, state:lookup("refreshed") or 0)

  local token_keys = state:lookup("token_keys")
  if token_keys then
    page.metric("rayhelm_gateway_token_keys", "gauge", "Keys of tokens that are valid.")
    page.sample("rayhelm_gateway_token_keys", {}, token_keys)
    page.metric("rayhelm_gateway_token_keys_read_timestamp_seconds", "gauge", "When a valid JWKS was last read.")
    page.sample("rayhelm_gateway_token_keys_read_timestamp_seconds", {}, state:lookup("token_keys_read") or 0)
  end

  local used = certificates and certificates:lookup("used")
  if used then
    for at, name in ipairs({ "not_before", "not_after" }) do
      name = "rayhelm_gateway_certificate_" .. name .. "_timestamp_seconds"
      page.metric(name, "gauge", "Validity of the certificate that this pod uses.")
      for secret, first, last in used:gmatch("(%S+):(%d+):(%d+)") do
        page.sample(name, { "secret", secret }, at == 1 and first or last)
      end
    end
  end

  if buckets then
    -- The date with which buckets.lua counts; core.now() is no date.
    local now = fetches:date(0, "ms")
    page.metric("rayhelm_gateway_tokens_used", "gauge", "Tokens that a tenant used and that are not refilled yet.")
    for _, limit in ipairs(limits) do
      if limit.tokens then
        -- The time at which the bucket has tokens again is a minute before it is full.
        local left = (tonumber(buckets:lookup(limit.tenant)) or 0) + MINUTE - now
        page.sample("rayhelm_gateway_tokens_used", { "tenant", limit.tenant }, math.max(left, 0) * limit.tokens // MINUTE)
      end
    end
  end

  if excess then
    page.metric("rayhelm_gateway_excess_reports_total", "counter", "Responses that reported more tokens than their request may cost.")
    for _, key in ipairs(sorted_keys(requests)) do
      local tenant, model, version = key:match("^([^:]*):(.*):([^:]*)$")
      local labels = { "tenant", tenant, "model", model, "version", version, "owner", owners[model .. ":" .. version] or "" }
      local count = excess:lookup(key)
      if count then page.sample("rayhelm_gateway_excess_reports_total", labels, count) end
    end
  end

  page.metric("rayhelm_gateway_limit", "gauge", "Limit of a tenant in this pod.")
  for _, limit in ipairs(limits) do
    page.sample("rayhelm_gateway_limit", { "tenant", limit.tenant, "limit", "requests_per_minute" }, limit.rate)
    page.sample("rayhelm_gateway_limit", { "tenant", limit.tenant, "limit", "concurrency" }, limit.concurrency)
    if limit.tokens then
      page.sample("rayhelm_gateway_limit", { "tenant", limit.tenant, "limit", "tokens_per_minute" }, limit.tokens)
    end
  end
  return page.text()
end

core.register_service("tenant_metrics", "http", function(applet)
  local text = build_page(applet.c, applet.f)
  applet:set_status(200)
  applet:add_header("content-type", "text/plain; version=0.0.4; charset=utf-8")
  applet:add_header("content-length", #text)
  applet:start_response()
  applet:send(text)
end)
