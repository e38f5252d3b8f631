-- Reads a JSON Web Key Set (RFC 7517) into keys by their `kid`: {algorithm, pem, bytes}. HAProxy takes keys in the form PEM.
-- `read(TEXT)` returns the keys, their number and that of the keys without use here, or nil and what is wrong. Keys of
-- other algorithms and for encryption are no error: identity providers publish them in the same set.
local json = dofile("json.lua")
local MIN_RSA_BYTES, MAX_RSA_BYTES = 256, 1024
local PRIVATE = { "d", "p", "q", "dp", "dq", "qi", "oth", "k" }
-- SubjectPublicKeyInfo (RFC 5480) of a point on P-256, up to its coordinates.
local P256 = "\x30\x59\x30\x13\x06\x07\x2A\x86\x48\xCE\x3D\x02\x01\x06\x08\x2A\x86\x48\xCE\x3D\x03\x01\x07\x03\x42\x00\x04"
local RSA = "\x30\x0D\x06\x09\x2A\x86\x48\x86\xF7\x0D\x01\x01\x01\x05\x00"

local SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
local values = { ["-"] = 62, ["_"] = 63 }
for at = 1, #SYMBOLS do values[SYMBOLS:sub(at, at)] = at - 1 end

-- Bytes of a text in base64url without padding, or nil.
local function decode(text)
  if type(text) ~= "string" or text:find("[^%w_-]") or #text % 4 == 1 then return nil end
  local bytes, bits, count = {}, 0, 0
  for symbol in text:gmatch(".") do
    bits, count = (bits << 6 | values[symbol]) & 0xFFFF, count + 6
    if count >= 8 then
      count = count - 8
      bytes[#bytes + 1] = string.char(bits >> count & 0xFF)
    end
  end
  return table.concat(bytes)
end

local function encode(bytes)
  local symbols = SYMBOLS .. "+/"
  return (bytes:gsub("..?.?", function(group)
    local a, b, c = group:byte(1, 3)
    local bits = a << 16 | (b or 0) << 8 | (c or 0)
    local text = ""
    for shift = 18, 0, -6 do
      local at = (bits >> shift & 63) + 1
      text = text .. symbols:sub(at, at)
    end
    return text:sub(1, #group + 1) .. ("="):rep(3 - #group)
  end))
end

-- DER: a value with its type and length.
local function wrap(kind, bytes)
  local length = #bytes
  if length < 128 then return string.char(kind, length) .. bytes end
  if length < 256 then return string.char(kind, 0x81, length) .. bytes end
  return string.char(kind, 0x82, length >> 8, length & 0xFF) .. bytes
end

local function wrap_number(bytes) return wrap(2, bytes:byte() > 127 and "\0" .. bytes or bytes) end

local function write_pem(der)
  local lines = encode(der):gsub(("."):rep(64), "%0\n"):gsub("\n$", "")
  return "-----BEGIN PUBLIC KEY-----\n" .. lines .. "\n-----END PUBLIC KEY-----\n"
end

local function read_rsa(key)
  local modulus, exponent = decode(key.n), decode(key.e)
  if not modulus or not exponent then return nil end
  modulus, exponent = modulus:gsub("^\0+", ""), exponent:gsub("^\0+", "")
  if #modulus < MIN_RSA_BYTES or #modulus > MAX_RSA_BYTES or #exponent < 1 or #exponent > 4 then return nil end
  if exponent:byte(-1) % 2 == 0 or exponent == "\1" then return nil end
  local numbers = wrap(0x30, wrap_number(modulus) .. wrap_number(exponent))
  return { algorithm = "RS256", bytes = #modulus, pem = write_pem(wrap(0x30, RSA .. wrap(3, "\0" .. numbers))) }
end

local function read_p256(key)
  local x, y = decode(key.x), decode(key.y)
  if key.crv ~= "P-256" or not x or not y or #x ~= 32 or #y ~= 32 then return nil end
  return { algorithm = "ES256", bytes = 64, pem = write_pem(P256 .. x .. y) }
end

local READERS = { RSA = read_rsa, EC = read_p256 }

local function has_use(key)
  if key.use ~= nil and key.use ~= "sig" then return false end
  if key.key_ops == nil then return true end
  for _, operation in ipairs(type(key.key_ops) == "table" and key.key_ops or {}) do
    if operation == "verify" then return true end
  end
  return false
end

local function read_key(key)
  local reader = READERS[key.kty]
  local found = reader and has_use(key) and reader(key)
  if not found or key.alg ~= nil and key.alg ~= found.algorithm then return nil end
  return found
end

local function read(text)
  local set, problem = json.parse(text)
  if not set then return nil, "it is not JSON: " .. problem end
  local listed = json.is_object(set) and set.keys
  if not json.is_list(listed) then return nil, "it has no list `keys`" end
  local keys, count, seen = {}, 0, {}
  for number, key in ipairs(listed) do
    if not json.is_object(key) then return nil, "key " .. number .. " is not an object" end
    for _, name in ipairs(PRIVATE) do
      if key[name] ~= nil then return nil, "key " .. number .. " is not public: it has `" .. name .. "`" end
    end
    local kid = key.kid
    if type(kid) == "string" and kid ~= "" then
      if seen[kid] then return nil, "keys " .. seen[kid] .. " and " .. number .. " have the same `kid`" end
      seen[kid] = number
      keys[kid] = read_key(key)
      count = count + (keys[kid] and 1 or 0)
    end
  end
  if count == 0 then return nil, "none of its " .. #listed .. " keys has a `kid` and verifies RS256 or ES256" end
  return keys, count, #listed - count
end

return { read = read }
