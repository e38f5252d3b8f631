-- Reads what Secrets hold again while the process runs: the keys that this gateway sends to remote gateways, and the
-- certificates of its TLS listener. A file that cannot be read or is invalid changes nothing. Contents are never logged.
-- Arguments: seconds between two reads, then `remote/NAME` or `tls/NAME` for each of them.
local arguments = { ... }
local interval = math.floor(tonumber(arguments[1]) * 1000)
local KEYS = "remote-keys.map"

local applied, found, logged = {}, {}, {}

-- Logs a message once per change.
local function log(name, text)
  if logged[name] == text then return end
  logged[name] = text
  core.log(core.notice, name .. ": " .. text)
end

local function read(path)
  local file = io.open(path, "r")
  local text = file and file:read("a")
  if file then file:close() end
  return text
end

local function apply_key(name)
  local key = (read(name .. "/key") or ""):match("^%s*([%w._~+/=-]+)%s*$")
  if not key then return log(name, "the Secret has no valid entry `key`, so the last key stays") end
  if applied[name] == key then return end
  core.set_map(KEYS, name:match("/(.*)"), key)
  applied[name] = key
  log(name, "a key was read")
end

-- The field of a certificate with its private key has an empty name in HAProxy 2.8. Other releases may call it `crt`.
local function set_certificate(file, pem)
  local is_set, message = pcall(CertCache.set, { filename = file, [""] = pem })
  if not is_set then is_set, message = pcall(CertCache.set, { filename = file, crt = pem }) end
  return is_set, message
end

-- HAProxy has loaded the files itself when it started. The kubelet replaces both files at once, but they are read one after
-- the other, and HAProxy 2.8 accepts a certificate with another key, with which no handshake succeeds. So a pair is used when
-- two reads in a row find it.
local function apply_certificate(name)
  local file = name .. ".crt"
  local certificate, key = read(file), read(file .. ".key")
  if not certificate or not key then return log(name, "the certificate cannot be read, so the last one stays") end
  local pem = certificate .. "\n" .. key
  if not applied[name] then applied[name] = pem end
  if applied[name] == pem then return end
  if found[name] ~= pem then
    found[name] = pem
    return
  end
  local is_set = set_certificate(file, pem)
  if not is_set then return log(name, "the new certificate and its key are not valid, so the last ones stay") end
  applied[name] = pem
  log(name, "a new certificate is used")
end

core.register_task(function()
  while true do
    for at = 2, #arguments do
      local name = arguments[at]
      local apply = name:match("^tls/") and apply_certificate or apply_key
      local is_done = pcall(apply, name)
      if not is_done then log(name, "the read failed and is repeated") end
    end
    core.msleep(interval)
  end
end)
