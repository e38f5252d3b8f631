-- Finds the model in a JSON body exactly as the model server will find it, and the prefix of the first message.
-- Parsers differ in which of two `model` keys they use, and a key can be written with escapes. So the body is read token
-- by token: for every body that a JSON parser accepts, this finds the keys of the outermost object. A fast path skips that
-- where the raw bytes are unambiguous.
-- The result is `ok OUTPUT MODEL PREFIX` or the name of an error in files/errors.yaml. OUTPUT has ten characters: the output
-- tokens that the body asks for, or a word of fields.lua. The prefix only selects an endpoint.
local PREFIX_BYTES = tonumber((...))
local MAX_DEPTH = 500
local LARGE = 262144
-- Strings, brackets and commas that are read: 30 ms of one core. The reading cannot stop at the model, because a second key
-- could follow; the fast path has no such limit.
local MAX_TOKENS = 100000
local INVALID_IN_MODEL = "[^%w._/-]" -- a zero byte would end the name early in C
local QUOTE, BACKSLASH, COMMA, OPEN_LIST, OPEN_OBJECT = 34, 92, 44, 91, 123

-- Most garbage is strings of requests, and little else is in memory, so collections may be rare.
collectgarbage("setpause", 1000)

local byte, find, match, sub = string.byte, string.find, string.match, string.sub
local without_hook = debug.sethook
local find_string_end, check_fast = fields.find_string_end, fields.check_fast

local SHORT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

-- Content of the string between two positions, without quotes and escapes.
local function unescape(body, from, after)
  local text = sub(body, from + 1, after - 2)
  if not find(text, "\\", 1, true) then return text end
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(letter, hex)
    if letter == "u" and #hex == 4 then return utf8.char(tonumber(hex, 16)) end
    return (SHORT[letter] or letter) .. hex
  end))
end

local NAME = '%s*:%s*"([%w._/-]+)"()'
local FIRST = '^{[^{}%[%]]-"model"' .. NAME
local LAST = "^" .. NAME
local SHORT_LAST = LAST .. "[^{}%[%]]*}%s*$"
-- Bytes after the model up to which one pattern is faster than plain searches.
local SHORT_REST = 100

-- Whether no bracket is between a position and the last one of the body. Four plain searches are faster than one pattern.
local function is_last(body, from)
  local last = find(body, "}", from, true)
  return last and find(body, "^%s*$", last + 1) and not find(body, "{", from, true)
    and not find(body, "[", from, true) and not find(body, "]", from, true)
end

-- The model if the raw bytes are unambiguous, else nil. Requires a complete body without a zero byte, so it is UTF-8.
-- Conditions: `"model"` occurs once, is not the end of a longer key, and no key spells it with escapes. No bracket is
-- between it and the start or the end of the body, so it is in no inner object.
local function find_model_fast(body, is_escaped)
  -- A search stops at each copy of its first byte: `m` is rarer in bodies than quotes.
  local at, after = find(body, 'model"', 2, true)
  if not at or byte(body) ~= OPEN_OBJECT or find(body, 'model"', after, true) then return nil end
  local before, quote = byte(body, at - 2, at - 1)
  if quote ~= QUOTE or before == BACKSLASH then return nil end
  if is_escaped and find(body, "\\u006", 1, true) then return nil end
  if at + after < #body then return (match(body, FIRST)) end
  if #body - after < SHORT_REST then return (match(body, SHORT_LAST, after + 1)) end
  local model, rest = match(body, LAST, after + 1)
  return model and is_last(body, rest) and model
end

-- The model of the outermost object, or nil and the name of an error. `found` gets the positions of the values of the `wanted`
-- fields, `repeated` the names of those that occur twice.
local function find_model(body, wanted, found, repeated)
  local at = match(body, "^[ \t\r\n]*{()")
  if not at then return nil, "body-not-json" end
  local depth, is_key, model, tokens = 1, true, nil, 0
  while depth > 0 do
    tokens = tokens + 1
    if tokens > MAX_TOKENS then return nil, "body-too-complex" end
    local mark_at = find(body, depth == 1 and '["{}%[%],]' or '["{}%[%]]', at)
    if not mark_at then return nil, "body-not-json" end
    local mark = byte(body, mark_at)
    at = mark_at + 1
    if mark == QUOTE then
      at = find_string_end(body, mark_at)
      if not at then return nil, "body-not-json" end
      local key = depth == 1 and is_key and unescape(body, mark_at, at)
      if key == "model" then
        if model then return nil, "model-duplicate" end
        model = ""
        local value = match(body, '^[ \t\r\n]*:[ \t\r\n]*()"', at)
        if value then
          at = find_string_end(body, value)
          if not at then return nil, "body-not-json" end
          model = unescape(body, value, at)
        end
      elseif key and wanted[key] then
        if found[key] then repeated[key] = true end
        found[key] = match(body, "^[ \t\r\n]*:[ \t\r\n]*()", at)
      end
      is_key = false
    elseif mark == COMMA then
      is_key = true
    elseif mark == OPEN_OBJECT or mark == OPEN_LIST then
      depth = depth + 1
      if depth > MAX_DEPTH then return nil, "body-not-json" end
    else
      depth = depth - 1
    end
  end
  if find(body, "[^ \t\r\n]", at) then return nil, "body-not-json" end
  if not model then return nil, "model-missing" end
  if model == "" then return nil, "model-not-string" end
  if find(model, INVALID_IN_MODEL) then return nil, "model-unknown" end
  return model
end

-- The first raw bytes of the first message, or of the prompt.
local function find_prefix(body)
  local _, at = find(body, '"messages"', 1, true)
  if at then
    _, at = find(body, '"content"', at, true)
  else
    _, at = find(body, '"prompt"', 1, true)
  end
  if not at then return "" end
  local _, quote = find(body, '^%s*:%s*"', at + 1)
  if not quote then return sub(body, at + 1, at + PREFIX_BYTES) end
  local text = sub(body, quote + 1, quote + PREFIX_BYTES)
  if not find(text, '"', 1, true) then return text end
  return sub(text, 1, (find_string_end(body, quote) or 0) - quote - 2)
end

-- The text that selects an endpoint. sessions.lua is loaded only if a model has `loadBalancing.session.fields`.
local function find_affinity(body, model)
  if PREFIX_BYTES == 0 then return "" end
  local session = sessions and sessions.of[model]
  if not session then return find_prefix(body) end
  return sessions.find_key(body, session, find_model) or sub(find_prefix(body), 1, session.prefix_bytes)
end

local function parse(body, is_complete, operation)
  local is_escaped = find(body, "\\u00", 1, true)
  local model = is_complete and find_model_fast(body, is_escaped)
  local output = model and check_fast(body, operation, is_escaped)
  if not output then
    local found, repeated, failure = {}, {}, nil
    model, failure = find_model(body, fields.wanted(operation), found, repeated)
    if not model then return failure end
    output, failure = fields.check(body, operation, found, repeated)
    if not output then return failure end
  end
  return "ok " .. output .. " " .. model .. " " .. find_affinity(body, model)
end

core.register_action("parse_body", { "http-req" }, function(txn)
  local body = txn.f:req_body() or ""
  local is_complete = tonumber(txn.f:req_fhdr("content-length")) == #body and not find(body, "\0", 1, true)
  txn:set_var("txn.parsed", parse(body, is_complete, txn:get_var("txn.operation")))
  -- Up to ten times what is alive now would stay until the next collection.
  if #body > LARGE then
    body = nil
    collectgarbage()
  end
end, 0)

-- costs.lua reads further fields.
bodies = { find_model = find_model }

-- Twice as fast, for small complete bodies. HAProxy ends the argument at a zero byte. A JSON parser accepts a zero byte only in
-- UTF-16 and UTF-32, where the bytes before it are no JSON object.
-- Without HAProxy's hook, which counts instructions to interrupt long functions, each instruction takes half as long. These
-- bodies are so small that no function runs long, and the next call sets the hook again.
core.register_converters("parse_body", function(body, operation)
  without_hook()
  return parse(body, true, operation)
end)
