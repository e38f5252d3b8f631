-- Verifies JSON Web Tokens (RFC 7519) of an identity provider, with the keys of jwks.json, and keeps these keys equal to
-- the mounted file while the process runs. The settings are in oidc.json. Neither tokens nor claims are logged.
-- HAProxy itself verifies the signature, with the algorithm of the key and not that of the token. It documents that it loads
-- keys at its start only, but its converter also loads them when Lua calls it (2.8 to 3.4); if not, the token is refused.
-- This file must be loaded once for all threads: they load keys into one tree without a lock, and Lua's lock protects it.
local interval, folder = math.floor(tonumber((...)) * 1000), select(2, ...)
local json, jwks = dofile("json.lua"), dofile("jwks.lua")
local STATE, ENOENT = "state.map", 2
local MAX_BYTES = 1048576
-- About 2 KB each.
local MAX_RESULTS = 4096

local settings
do
  local file <close> = assert(io.open("oidc.json"))
  settings = assert(json.parse(file:read("a")))
end

local function new_set(list)
  local set = {}
  for _, name in ipairs(list) do set[name] = true end
  return set
end

local audiences, algorithms = new_set(settings.audiences), new_set(settings.algorithms)

-- Keys that are valid now by `kid`; paths of all keys that HAProxy has loaded, because it keeps a key under its path.
local keys, paths, path_count, last_text, summary = {}, {}, 0, nil, nil

-- Logs the state of the file once per change.
local logged
local function log(level, text)
  if text == logged then return end
  logged = text
  core.log(level, "jwks.json: " .. text)
end

local function store(found)
  for _, key in pairs(found) do
    local path = paths[key.pem]
    if not path then
      path_count = path_count + 1
      path = folder .. "/token-key-" .. path_count .. ".pem"
    end
    local file <close> = assert(io.open(path, "w"))
    assert(file:write(key.pem))
    paths[key.pem], key.path = path, path
  end
end

-- Returns the text, or nil and whether the file is missing.
local function read_file()
  local file, _, missing = io.open("jwks.json")
  if not file then return nil, missing == ENOENT end
  local text, _, failure = file:read(MAX_BYTES + 1)
  file:close()
  return text or not failure and "" or nil, false
end

local function refresh()
  local text, is_missing = read_file()
  if not text and not is_missing then return log(core.alert, "it cannot be read, so the keys stay as they were") end
  if is_missing then
    if last_text then core.set_map(STATE, "token_keys", "0") end
    keys, last_text = {}, nil
    return log(core.alert, "it does not exist, so every token gets 401. " .. settings.fix)
  end
  if text ~= last_text then
    local found, count, unused = nil, "it is larger than 1 MiB", 0
    if #text <= MAX_BYTES then found, count, unused = jwks.read(text) end
    if not found then return log(core.alert, count .. "; the keys stay as they were. " .. settings.fix) end
    store(found)
    keys, last_text = found, text
    core.set_map(STATE, "token_keys", tostring(count))
    summary = count .. " keys" .. (unused > 0 and ", " .. unused .. " without use here" or "")
  end
  log(core.notice, summary)
  core.set_map(STATE, "token_keys_read", tostring(os.time()))
end

core.register_task(function()
  while true do
    local is_done, message = pcall(refresh)
    if not is_done then log(core.alert, "the refresh failed and is repeated: " .. tostring(message)) end
    core.msleep(interval)
  end
end)

-- Tenant of a claim: a text, or a list of texts that belong to one tenant together. Else nil.
local function find_tenant(claim)
  local found
  for _, value in ipairs(type(claim) == "table" and claim or { claim }) do
    local tenant = type(value) == "string" and settings.tenants[value]
    if tenant and found and tenant ~= found then return nil end
    found = tenant or found
  end
  return found
end

local function has_audience(claim)
  for _, value in ipairs(type(claim) == "table" and claim or { claim }) do
    if audiences[value] then return true end
  end
  return false
end

-- Name of the client in the log.
local function find_name(claims)
  local name = settings.nameClaim ~= "" and claims[settings.nameClaim]
  return type(name) == "string" and #name <= 64 and name:match("^[%w._@:-]+$") or "token"
end

local function decode_object(converters, text)
  local decoded = converters:ub64dec(text)
  local object = decoded and json.parse(decoded)
  return json.is_object(object) and object or nil
end

-- Returns the error of the times in the claims, or nil.
local function check_times(claims, now)
  if now >= claims.exp + settings.clockSkewSeconds then return "token-expired" end
  if claims.nbf and now < claims.nbf - settings.clockSkewSeconds then return "token-not-yet-valid" end
  return nil
end

-- Returns the error of the other claims, or nil.
local function check_claims(claims)
  if claims.iss ~= settings.issuer then return "token-issuer" end
  if not has_audience(claims.aud) then return "token-audience" end
  if math.type(claims.exp) == nil then return "token-malformed" end
  if claims.nbf ~= nil and math.type(claims.nbf) == nil then return "token-malformed" end
  return nil
end

local failed = {}

-- Whether HAProxy accepts the signature, or nil if it does not load the key.
local function verify(converters, token, key)
  local is_done, result = pcall(converters.jwt_verify, converters, token, key.algorithm, key.path)
  if is_done and result >= -4 then return result == 1 end
  if not failed[key.path] then core.log(core.alert, "jwks.json: HAProxy does not load a key: " .. tostring(result)) end
  failed[key.path] = true
  return nil
end

-- Results by token, for tokens that were accepted. The signature takes more than all else that the gateway does for a
-- small request. A result holds while its key is valid; times are compared for each request.
local results, result_count = {}, 0

local function remember(token, result)
  if result_count == MAX_RESULTS then results, result_count = {}, 0 end
  results[token], result_count = result, result_count + 1
end

local function authenticate(txn, token)
  local known = results[token]
  if known and keys[known.kid] == known.key then return check_times(known, os.time()) or known.owner end
  local head, payload, signature = token:match("^([%w_-]+)%.([%w_-]+)%.([%w_-]*)$")
  local header = head and decode_object(txn.c, head)
  if not header or header.crit ~= nil then return "token-malformed" end
  if not algorithms[header.alg] then return "token-algorithm" end
  local key = keys[header.kid]
  if not key then return "token-key-unknown" end
  if key.algorithm ~= header.alg then return "token-algorithm" end
  if #signature ~= (key.bytes * 4 + 2) // 3 then return "token-signature" end
  local is_valid = verify(txn.c, token, key)
  if is_valid == nil then return "token-key-unknown" end
  if not is_valid then return "token-signature" end
  local claims = decode_object(txn.c, payload)
  if not claims then return "token-malformed" end
  local failure = check_claims(claims) or check_times(claims, os.time())
  if failure then return failure end
  local tenant = find_tenant(claims[settings.tenantClaim])
  if not tenant then return "token-tenant" end
  local owner = tenant .. "/@" .. find_name(claims)
  remember(token, { kid = header.kid, key = key, exp = claims.exp, nbf = claims.nbf, owner = owner })
  return owner
end

-- TENANT/@NAME, or the name of an error in files/errors.yaml; nothing for what is no token.
core.register_fetches("authenticate_token", function(txn)
  local token = txn.f:req_fhdr("authorization"):match("^......%s(.*)$")
  if not token or not token:find("^eyJ[^.]*%.[^.]*%.[^.]*$") then return "" end
  return authenticate(txn, token)
end)
