-- Sets the field `cache_salt` of JSON bodies for models that several tenants may call. vLLM then finds a prefix in its cache
-- only if a request of the same tenant left it there, so the time of a response depends on no other tenant.
-- The field goes behind all others: of two fields with one name Python's parser takes the last one, so it replaces that of the
-- client. What the client sent is part of the salt, so a tenant can still separate its own users.
-- `salt/key` is an optional secret: the salts are the same in all pods, and after a restart. An empty one is refused, because
-- every client could compute the salts: the pod is not ready, answers 503, and reads it again until it has a text.
local salts, secret = {}, nil

local function has_secret()
  if secret then return true end
  local file <close> = io.open("salt/key", "rb")
  local text = file and file:read("a") or not file and "rayhelm" or ""
  if text:find("%S") then secret = text end
  return secret ~= nil
end

-- Each thread reads it when it loads this file, so all threads of a pod have the same one.
has_secret()
core.register_fetches("has_salt", has_secret)

local START, STOP = ',"cache_salt":"', '"'
local OWN = '"cache_salt"%s*:%s*"([^"]*)"'
local CLOSE, LARGE = 125, 262144

local byte, find, match = string.byte, string.find, string.match

-- HMAC-SHA-256 in hex.
local function compute_salt(converters, text)
  return converters:hex(converters:hmac(text, "sha256", converters:base64(secret)))
end

local function find_salt(converters, tenant, body)
  local salt = salts[tenant]
  if not salt then
    salt = compute_salt(converters, tenant)
    salts[tenant] = salt
  end
  if not find(body, '"cache_salt"', 1, true) then return salt end
  local own = match(body, OWN)
  -- A remote gateway with the same secret has set it before.
  if not own or own == salt then return salt end
  return compute_salt(converters, tenant .. "\n" .. own)
end

local Salt = { id = "salt of the prefix cache", flags = filter.FLT_CFG_FL_HTX }
Salt.__index = Salt

function Salt:new()
  return setmetatable({}, Salt)
end

function Salt:http_headers(_, message)
  if not message.channel:is_resp() then filter.register_data_filter(self, message.channel) end
end

-- The gateway holds the complete body before it gets here. A rule has set its new length. body.lua does not read to the end of
-- each body: one without an end stays invalid.
function Salt:http_payload(txn, message)
  if not message:eom() then return 0 end
  local body = message:body()
  local at = byte(body, -1) == CLOSE and #body or find(body, "}[ \t\r\n]*$") or #body + 1
  message:insert(START .. find_salt(txn.c, txn:get_var("txn.tenant"), body) .. STOP, at - 1)
  if #body > LARGE then
    body = nil
    collectgarbage()
  end
end

core.register_filter("salt", Salt, function(class) return class end)
