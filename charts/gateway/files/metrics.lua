-- Metrics of the tenants, which HAProxy's exporter does not have. HAProxy counts in stick tables, and this service only reads
-- them. Its arguments are the reasons of refused requests in the order of their counters.
local REASONS = { ... }
local CLASSES = { [0] = "2xx", "4xx", "5xx" }

local MINUTE = 60000

local tenant_names = {}
for line in io.lines("tenants.map") do tenant_names[#tenant_names + 1] = line:match("^%S+") end
-- live.lua changes it.
local limits_of = Map.new("limits.map", Map._str)

local function read_limits()
  local limits = {}
  for _, tenant in ipairs(tenant_names) do
    local rate, concurrency, tokens = (limits_of:lookup(tenant) or ""):match("^(%d+) (%d+) ?(%d*)$")
    if rate then limits[#limits + 1] = { tenant = tenant, rate = rate, concurrency = concurrency, tokens = tonumber(tokens) } end
  end
  return limits
end

-- buckets.lua writes them. There are no files if no tenant has `tokensPerMinute`.
local function find_map(name)
  local file = io.open(name)
  if file then file:close() end
  return file and Map.new(name, Map._str)
end
local buckets, excess = find_map("buckets.map"), find_map("excess.map")

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
local certificates = find_map("certificates.map")

local function build_page(converters, fetches)
  local page, limits = new_page(), read_limits()
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

  page.metric("rayhelm_gateway_maps_refused", "gauge", "1 while the maps of limits and weights are invalid, so that the last ones stay.")
  page.sample("rayhelm_gateway_maps_refused", {}, state:lookup("maps_refused") or 0)
  page.metric("rayhelm_gateway_maps_for_other_pods", "gauge", "1 while the maps belong to a configuration of other pods, so that the last ones stay.")
  page.sample("rayhelm_gateway_maps_for_other_pods", {}, state:lookup("maps_for_other_pods") or 0)

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
