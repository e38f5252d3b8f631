-- Parses JSON (RFC 8259). Two readers must not see different claims in one token, so a key that occurs twice is an error.
-- `parse(TEXT)` returns the value, or nil and what is wrong. Null is the value `null`.
local MAX_DEPTH = 32
local List, null = {}, {}
local SHORT = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local parse_value

local function fail(at, text) error({ message = text .. " at byte " .. at }, 0) end

local function skip(text, at) return text:match("^[ \t\r\n]*()", at) end

-- Character of `\uXXXX` at a position, and the position after it. UTF-16 has two of them for characters past U+FFFF.
local function parse_unicode(text, at)
  local first = tonumber(text:match("^\\u(%x%x%x%x)", at) or fail(at, "invalid escape"), 16)
  if first < 0xD800 or first > 0xDFFF then return utf8.char(first), at + 6 end
  local second = tonumber(text:match("^\\u(%x%x%x%x)", at + 6) or "0", 16)
  if first > 0xDBFF or second < 0xDC00 or second > 0xDFFF then fail(at, "half of a character") end
  return utf8.char(0x10000 + (first - 0xD800) * 0x400 + second - 0xDC00), at + 12
end

local function parse_string(text, at)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('["\\%c]', from) or fail(at, "string without end")
    parts[#parts + 1] = text:sub(from, stop - 1)
    local mark = text:sub(stop, stop)
    if mark == '"' then return table.concat(parts), stop + 1 end
    if mark == "\127" then
      parts[#parts + 1], from = mark, stop + 1
    elseif mark ~= "\\" then
      fail(stop, "control character")
    elseif text:sub(stop + 1, stop + 1) == "u" then
      parts[#parts + 1], from = parse_unicode(text, stop)
    else
      parts[#parts + 1], from = SHORT[text:sub(stop + 1, stop + 1)] or fail(stop, "invalid escape"), stop + 2
    end
  end
end

local function parse_number(text, at)
  local after = text:match("^-?0()", at) or text:match("^-?[1-9]%d*()", at) or fail(at, "no value")
  after = text:match("^%.%d+()", after) or after
  after = text:match("^[eE][+-]?%d+()", after) or after
  local number = tonumber(text:sub(at, after - 1))
  if math.abs(number) == math.huge then fail(at, "number out of range") end
  return number, after
end

local function parse_members(text, at, depth)
  local object = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "}" then return object, at + 1 end
  while true do
    if text:sub(at, at) ~= '"' then fail(at, "no key") end
    local key, value
    key, at = parse_string(text, at)
    if object[key] ~= nil then fail(at, "key that occurs twice") end
    at = text:match("^[ \t\r\n]*:()", at) or fail(at, "no colon")
    value, at = parse_value(text, at, depth)
    object[key] = value
    local mark
    mark, at = text:match("^[ \t\r\n]*([,}])[ \t\r\n]*()", at)
    if not mark then fail(#text, "object without end") end
    if mark == "}" then return object, at end
  end
end

local function parse_list(text, at, depth)
  local list, value = setmetatable({}, List), nil
  at = skip(text, at + 1)
  if text:sub(at, at) == "]" then return list, at + 1 end
  while true do
    value, at = parse_value(text, at, depth)
    list[#list + 1] = value
    local mark
    mark, at = text:match("^[ \t\r\n]*([,%]])[ \t\r\n]*()", at)
    if not mark then fail(#text, "list without end") end
    if mark == "]" then return list, at end
  end
end

local WORDS = { ["true"] = true, ["false"] = false, null = null }

function parse_value(text, at, depth)
  if depth > MAX_DEPTH then fail(at, "more than " .. MAX_DEPTH .. " levels") end
  at = skip(text, at)
  local mark = text:sub(at, at)
  if mark == '"' then return parse_string(text, at) end
  if mark == "{" then return parse_members(text, at, depth + 1) end
  if mark == "[" then return parse_list(text, at, depth + 1) end
  local word = text:match("^%l+", at)
  if not word then return parse_number(text, at) end
  if WORDS[word] == nil then fail(at, "unknown word") end
  return WORDS[word], at + #word
end

local function parse(text)
  if not utf8.len(text) then return nil, "it is not UTF-8" end
  local is_valid, value, at = pcall(parse_value, text, 1, 1)
  if not is_valid then return nil, type(value) == "table" and value.message or tostring(value) end
  at = skip(text, at)
  if at <= #text then return nil, "more text at byte " .. at end
  return value
end

local function is_list(value) return getmetatable(value) == List end

local function is_object(value) return type(value) == "table" and value ~= null and not is_list(value) end

return { parse = parse, is_list = is_list, is_object = is_object, null = null }
