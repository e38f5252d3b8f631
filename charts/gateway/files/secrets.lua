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

local VALUES = {}
for at, letter in ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):gmatch("()(.)") do VALUES[letter] = at - 1 end

local function decode_base64(text)
  local bytes, bits, count = {}, 0, 0
  for letter in text:gmatch("[%w+/]") do
    bits, count = (bits << 6 | VALUES[letter]) & 0xffff, count + 6
    if count >= 8 then
      count = count - 8
      bytes[#bytes + 1] = string.char(bits >> count & 0xff)
    end
  end
  return table.concat(bytes)
end

-- Start of the content of a DER element, and of the next element.
local function read_element(der, at)
  local length, content = der:byte(at + 1), at + 2
  if length > 127 then
    local size = length & 127
    length, content = string.unpack(">I" .. size, der, content), content + size
  end
  return content, content + length
end

-- Unix time of a UTCTime or GeneralizedTime, and the start of the next element.
local function read_time(der, at)
  local from, after = read_element(der, at)
  local text = der:sub(from, after - 1)
  if #text == 13 then text = (text < "5" and "20" or "19") .. text end
  local year, month, day, hour, minute, second = text:match("^(%d%d%d%d)(%d%d)(%d%d)(%d%d)(%d%d)(%d%d)Z$")
  -- Months count from March, so that a leap day is the last of its year.
  year, month = year + (month - 3) // 12, (month + 9) % 12
  local days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469
  return math.tointeger(days * 86400 + hour * 3600 + minute * 60 + second), after
end

-- First and last second of the first certificate.
local function read_validity(pem)
  local der = decode_base64(pem:match("%-%-%-%-%-BEGIN CERTIFICATE%-%-%-%-%-(.-)%-%-%-%-%-END"))
  local at = read_element(der, (read_element(der, 1)))
  if der:byte(at) == 0xa0 then at = select(2, read_element(der, at)) end
  -- Serial number, algorithm and issuer.
  for _ = 1, 3 do at = select(2, read_element(der, at)) end
  local first, after = read_time(der, (read_element(der, at)))
  return first, (read_time(der, after))
end

-- For metrics.lua: the Secret, and first and last second of the certificate that is used.
local used = {}
local function use(name, pem)
  applied[name] = pem
  local is_read, first, last = pcall(read_validity, pem)
  used[name] = is_read and string.format("%s:%d:%d", name:match("/(.*)"), first, last) or nil
  local texts = {}
  for _, text in pairs(used) do texts[#texts + 1] = text end
  core.set_map("certificates.map", "used", table.concat(texts, " "))
end

-- HAProxy has loaded the files itself when it started. The kubelet replaces both files at once, but they are read one after
-- the other, and HAProxy 2.8 accepts a certificate with another key, with which no handshake succeeds. So a pair is used when
-- two reads in a row find it.
local function apply_certificate(name)
  local file = name .. ".crt"
  local certificate, key = read(file), read(file .. ".key")
  if not certificate or not key then return log(name, "the certificate cannot be read, so the last one stays") end
  local pem = certificate .. "\n" .. key
  if not applied[name] then use(name, pem) end
  if applied[name] == pem then return end
  if found[name] ~= pem then
    found[name] = pem
    return
  end
  local is_set = set_certificate(file, pem)
  if not is_set then return log(name, "the new certificate and its key are not valid, so the last ones stay") end
  use(name, pem)
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
