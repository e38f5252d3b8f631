-- Reads which model a JSON body names, as the server behind will read it, and how its first message begins.
-- Parsers differ in which of two `model` keys they take, and a key may be written with escapes, so the body is read token
-- by token: of any body that a JSON parser takes, this finds the keys of the outermost object. Where a look at the raw
-- bytes shows as much, there is no need to.
-- The answer is `ok MODEL BEGINNING`, or what is wrong. Nothing but a choice between equal servers hangs on the beginning.
local BEGINNING = tonumber((...))
local DEEPEST = 500
local STRANGE = "[^%w._/-]" -- no model's name has such a letter; a zero byte would end it early in C
local QUOTE, BACKSLASH, COMMA, OPEN_LIST, OPEN_OBJECT = 34, 92, 44, 91, 123

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

-- Position after the string that begins at `from`.
local function after_string(body, from)
  local at = from + 1
  while true do
    local quote = find(body, '"', at, true)
    if not quote then return nil end
    local before = quote - 1
    while byte(body, before) == BACKSLASH do before = before - 1 end
    if (quote - before) % 2 == 1 then return quote + 1 end
    at = quote + 1
  end
end

local SHORT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

-- What stands in the string between two positions, without its quotes and escapes.
local function plain(body, from, after)
  local text = sub(body, from + 1, after - 2)
  if not find(text, "\\", 1, true) then return text end
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(letter, hex)
    if letter == "u" and #hex == 4 then return utf8.char(tonumber(hex, 16)) end
    return (SHORT[letter] or letter) .. hex
  end))
end

local NAME = '%s*:%s*"([%w._/-]+)"'
local FIRST = '^{[^{}%[%]]-"model"' .. NAME
local LAST = "^" .. NAME .. "[^{}%[%]]*}%s*$"

-- The model, where the raw bytes leave no doubt, provided that the body is JSON at all. It is here to its end, and in
-- UTF-8: in another width a brace comes with a zero byte. `"model"` stands in it once, is not the end of a longer key, and
-- no other key is that with escapes. No bracket parts it from the beginning or from the end, so it is in no inner object.
local function model_at_a_glance(body)
  local from, after = find(body, '"model"', 1, true)
  if not from or byte(body) ~= OPEN_OBJECT or byte(body, from - 1) == BACKSLASH
    or find(body, "\0", 1, true) or find(body, '"model"', after, true) or find(body, "\\u006", 1, true) then
    return nil
  end
  if from + after < #body then return match(body, FIRST) end
  return match(body, LAST, after + 1)
end

-- The model of the outermost object, or nil and what is wrong with the body.
local function model_of(body)
  local at = match(body, "^[ \t\r\n]*{()")
  if not at then return nil, "body-not-json" end
  local depth, is_key, model = 1, true, nil
  while depth > 0 do
    local found = find(body, depth == 1 and '["{}%[%],]' or '["{}%[%]]', at)
    if not found then return nil, "body-not-json" end
    local mark = byte(body, found)
    at = found + 1
    if mark == QUOTE then
      at = after_string(body, found)
      if not at then return nil, "body-not-json" end
      if depth == 1 and is_key and plain(body, found, at) == "model" then
        if model then return nil, "model-twice" end
        model = ""
        local value = match(body, '^[ \t\r\n]*:[ \t\r\n]*()"', at)
        if value then
          at = after_string(body, value)
          if not at then return nil, "body-not-json" end
          model = plain(body, value, at)
        end
      end
      is_key = false
    elseif mark == COMMA then
      is_key = true
    elseif mark == OPEN_OBJECT or mark == OPEN_LIST then
      depth = depth + 1
      if depth > DEEPEST then return nil, "body-not-json" end
    else
      depth = depth - 1
    end
  end
  if find(body, "[^ \t\r\n]", at) then return nil, "body-not-json" end
  if not model then return nil, "model-missing" end
  if model == "" then return nil, "model-not-text" end
  if find(model, STRANGE) then return nil, "model-unknown" end
  return model
end

-- The first bytes of the first message, or of a prompt, as they stand there.
local function beginning_of(body)
  local _, at = find(body, '"messages"', 1, true)
  if at then
    _, at = find(body, '"content"', at, true)
  else
    _, at = find(body, '"prompt"', 1, true)
  end
  if not at then return "" end
  local _, quote = find(body, '^%s*:%s*"', at + 1)
  if not quote then return sub(body, at + 1, at + BEGINNING) end
  local text = sub(body, quote + 1, quote + BEGINNING)
  if not find(text, '"', 1, true) then return text end
  return sub(text, 1, (after_string(body, quote) or 0) - quote - 2)
end

local function read(body, is_whole)
  local model, wrong = is_whole and model_at_a_glance(body), nil
  if not model then model, wrong = model_of(body) end
  if not model then return wrong end
  return "ok " .. model .. " " .. (BEGINNING > 0 and beginning_of(body) or "")
end

core.register_action("read", { "http-req" }, function(txn)
  local body = txn.f:req_body() or ""
  txn:set_var("txn.read", read(body, tonumber(txn.f:req_fhdr("content-length")) == #body))
end, 0)

-- For small bodies that are whole: it is called in half the time, but HAProxy looks through all bytes for a zero first, and
-- would end the body there. Of no JSON that has one does Python read a beginning as it is read here.
core.register_converters("read", function(body) return read(body, true) end)
