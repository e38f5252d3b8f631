-- Decides whether the model that HAProxy's json_query found in the body is the one that the server behind will read.
-- json_query takes the first of two `model` keys, Python the last; a key may be written with escapes; a body may be cut
-- off. Where one look at the raw bytes shows that none of that can be, the fast answer stands. Otherwise the body is
-- read token by token: of any body that a JSON parser takes, this finds the same keys of the outermost object.
-- txn.verdict says what came of it, and only "ok" lets a request through: if this fails, nothing is let through.
local DEEPEST = 500
local STRANGE = "[^%w._/-]" -- no model's name has such a letter; a zero byte would end it early in C

-- Position after the string that begins at `from`, its raw text, and whether it holds escapes.
local function string_at(body, from)
  local escaped, at = false, from + 1
  while true do
    local found = body:find('["\\]', at)
    if not found then return nil end
    if body:byte(found) == 34 then return found + 1, body:sub(from + 1, found - 1), escaped end
    escaped, at = true, found + 2
  end
end

local SHORT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function plain(text)
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(letter, hex)
    if letter == "u" and #hex == 4 then return utf8.char(tonumber(hex, 16)) end
    return (SHORT[letter] or letter) .. hex
  end))
end

-- The model of the outermost object, or nil and what is wrong with the body.
local function model_of(body)
  local at = body:match("^[ \t\r\n]*{()")
  if not at then return nil, "body-not-json" end
  local depth, is_key, model, twice = 1, true, nil, false
  while depth > 0 do
    local found = body:find(depth == 1 and '["{}%[%],]' or '["{}%[%]]', at)
    if not found then return nil, "body-not-json" end
    local byte = body:byte(found)
    at = found + 1
    if byte == 34 then
      local after, text, escaped = string_at(body, found)
      if not after then return nil, "body-not-json" end
      at = after
      if depth == 1 and is_key and (text == "model" or escaped and plain(text) == "model") then
        twice, model = model ~= nil, ""
        local quote = body:match('^[ \t\r\n]*:[ \t\r\n]*()"', at)
        if quote then
          at, text, escaped = string_at(body, quote)
          if not at then return nil, "body-not-json" end
          model = escaped and plain(text) or text
        end
        if twice then return nil, "model-twice" end
      end
      is_key = false
    elseif byte == 44 then
      is_key = true
    elseif byte == 123 or byte == 91 then
      depth = depth + 1
      if depth > DEEPEST then return nil, "body-not-json" end
    else
      depth = depth - 1
    end
  end
  if body:find("[^ \t\r\n]", at) then return nil, "body-not-json" end
  if not model then return nil, "model-missing" end
  if model == "" then return nil, "model-not-text" end
  if model:find(STRANGE) then return nil, "model-unknown" end
  return model
end

core.register_action("read_model", { "http-req" }, function(txn)
  local body = txn.f:req_body() or ""
  local quick = txn:get_var("txn.asked")
  local at = body:find('"model"', 1, true)
  if type(quick) == "string" and quick ~= "" and not quick:find(STRANGE) and at and tonumber(txn.f:req_fhdr("content-length")) == #body
    and not body:find('"model"', at + 7, true)
    and not body:find("\\u006", 1, true)
    and body:match('^[ \t\r\n]*:[ \t\r\n]*"([^"\\]*)"', at + 7) == quick then
    return txn:set_var("txn.verdict", "ok")
  end
  local model, wrong = model_of(body)
  if model then txn:set_var("txn.asked", model) end
  txn:set_var("txn.verdict", wrong or "ok")
end, 0)
