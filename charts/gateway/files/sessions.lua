-- Finds the session of a request in its body, for models with `loadBalancing.session.fields`. body.lua calls it.
-- sessions.map has a line for each such model: MODEL PREFIX_BYTES FIELD,FIELD. The session only selects an endpoint.
local MAX_KEY_BYTES = 512
local QUOTE, BACKSLASH = 34, 92

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

local of = {}
for line in io.lines("sessions.map") do
  local model, bytes, names = line:match("^(%S+) (%d+) (%S+)$")
  if model then
    local keys = {}
    for name in names:gmatch("[^,]+") do keys[#keys + 1] = { name = name, quoted = '"' .. name .. '"' } end
    of[model] = { prefix_bytes = tonumber(bytes), fields = keys }
  end
end

-- Whether a member between two positions is certainly in the outermost object: no bracket is before it, or none but the last
-- one after it.
local function is_outermost(body, from, after)
  local inner = find(body, "[{%[]", 2)
  return not inner or from < inner or find(body, "^[^{}%[%]]*}[ \t\r\n]*$", after)
end

-- Position of the only text with this name. The second result is true if the body has to be read token by token.
local function find_only(body, quoted)
  local key, value, at = nil, nil, 1
  while true do
    local from, to = find(body, quoted, at, true)
    if not from then break end
    local found = match(body, '^[ \t\r\n]*:[ \t\r\n]*()', to + 1)
    if found and byte(body, from - 1) ~= BACKSLASH then
      if key then return nil, true end
      key, value = from, found
    end
    at = to + 1
  end
  if not key then return nil, false end
  local after = byte(body, value) == QUOTE and fields.find_string_end(body, value) or value
  if is_outermost(body, key, after) then return value, false end
  return nil, true
end

local function find_value(body, field, find_model)
  local value, is_ambiguous = find_only(body, field.quoted)
  if not is_ambiguous then return value end
  local found = {}
  return find_model(body, { [field.name] = true }, found, {}) and found[field.name]
end

-- The first field that is a text, as its raw bytes, or nil.
local function find_key(body, session, find_model)
  for _, field in ipairs(session.fields) do
    local at = find_value(body, field, find_model)
    local after = at and byte(body, at) == QUOTE and fields.find_string_end(body, at)
    if after and after > at + 2 then return sub(body, at + 1, math.min(after - 2, at + MAX_KEY_BYTES)) end
  end
  return nil
end

sessions = { of = of, find_key = find_key }
