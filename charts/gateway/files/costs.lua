-- Reads in a JSON body what its request may cost, for tenants with `tokensPerMinute`: no response counts more tokens. So a model
-- server that reports a wrong number cannot use up the limit of a tenant. usage.lua counts with the results:
--   txn.cost     PROMPT OUTPUT CHOICES PROMPTS: most tokens of the prompts and of the output, and how many answers and prompts
--                there are. OUTPUT is `-` where neither the request nor the model has a bound.
--   txn.options  the field `stream_options` for a stream, and txn.options_at where it is inserted. With it a model server sends the
--                tokens of a stream at its end, hidden ones too.
--   txn.hides    the client did not ask for that, so it does not get it.
--   txn.tokens   the tokens of the prompt, estimated from its bytes.
--   txn.form     the form of `usage`, unless it is that of completions: a stream has it without being asked.
-- costs.map has lines `operation PATH TOKENS COPIES BATCHES PAIRS FORM`, with `-` for no field, and `model MODEL CONTEXT`.
local BYTES_PER_TOKEN = tonumber((...))
local MOST = 9999999999
local MOST_COPIES = 128 -- where `n` is no natural number
-- A chat template adds a system prompt and writes tools with spaces. A token has at least one byte.
local TEMPLATE_TOKENS, TOKENS_PER_BYTE = 4096, 2
local MOST_MEDIA_TOKENS = 1000000 -- of images, sounds and videos, for a model whose context is not known
local CLOSE, LARGE = 125, 262144
local USAGE, CONTINUOUS = ',"stream_options":{"include_usage":true}', ',"stream_options":{"include_usage":true,"continuous_usage_stats":true}'

local byte, find = string.byte, string.find
local max, min = math.max, math.min

local function read_names(text, wanted)
  local names = {}
  for name in text:gmatch("[^,-]+") do
    names[#names + 1], wanted[name] = name, true
  end
  return names
end

local operations, contexts = {}, {}
for line in io.lines("costs.map") do
  local path, tokens, copies, batches, pairs_of, form = line:match("^operation (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$")
  if path then
    local wanted = {}
    local operation = {
      wanted = wanted,
      tokens = read_names(tokens, wanted),
      copies = read_names(copies, wanted),
      batches = read_names(batches, wanted),
      pairs = read_names(pairs_of, wanted),
      form = form,
    }
    if operation.tokens[1] and form == "completions" then wanted.stream = true end
    operations[path] = operation
  end
  local model, context = line:match("^model (%S+) (%d+)$")
  if model then contexts[model] = tonumber(context) end
end

-- Positions of the values of the wanted fields. Most bodies of embeddings have none.
local function find_fields(body, wanted)
  local found, repeated = {}, {}
  local is_needed = find(body, "\\u00", 1, true)
  for name in pairs(wanted) do is_needed = is_needed or find(body, '"' .. name .. '"', 1, true) end
  if is_needed then bodies.find_model(body, wanted, found, repeated) end
  return found, repeated
end

local function count_largest(body, names, found)
  local largest = 1
  for _, name in ipairs(names) do
    if found[name] then largest = max(largest, fields.count_prompts(body, found[name])) end
  end
  return largest
end

local function has_media(body, form)
  if form == "messages" and find(body, '"source"', 1, true) then return true end
  return find(body, '_url"', 1, true) or find(body, '"input_audio"', 1, true)
end

local function compute_cost(body, operation, context, found, repeated)
  local tokens = fields.find_number(body, operation.tokens, found, repeated)
  local copies, is_invalid = fields.find_number(body, operation.copies, found, repeated)
  copies = max(1, copies or is_invalid and MOST_COPIES or 1)
  local prompts = count_largest(body, operation.batches, found)
  local pairs_of = count_largest(body, operation.pairs, found)
  local prompt = TOKENS_PER_BYTE * #body * pairs_of + TEMPLATE_TOKENS
  if has_media(body, operation.form) then prompt = prompt + (context or MOST_MEDIA_TOKENS) end
  if not operation.tokens[1] then
    if context and operation.pairs[1] then prompt = min(prompt, context * pairs_of) end
    return string.format("%d 0 1 1", min(MOST, prompt))
  end
  local choices = min(MOST, copies * prompts)
  if context then prompt, tokens = min(prompt, context * prompts), min(tokens or context, context) end
  local output = tokens and string.format("%d", min(MOST, tokens * choices)) or "-"
  return string.format("%d %s %d %d", min(MOST, prompt), output, choices, prompts)
end

-- Whether Python takes the value for true. vLLM reads `stream_options` of such a body only.
local function is_true(body, at)
  return at and (find(body, "^true", at) or find(body, '^"[^"]', at) or find(body, "^%-?[%d.]*[1-9]", at))
end

-- Whether the body has a key with a value other than false and null. No text can contain the key: it has backslashes there.
local function asks_for(body, key)
  return find(body, key, 1, true) and find(body, key .. "[ \t\r\n]*:[ \t\r\n]*[^fn \t\r\n]")
end

-- The field goes behind all others: of two fields with one name Python's parser takes the last one.
local function add_options(txn, body)
  local at = byte(body, -1) == CLOSE and #body or find(body, "}[ \t\r\n]*$")
  if not at then return end
  local is_wanted = asks_for(body, '"include_usage"')
  local options = is_wanted and asks_for(body, '"continuous_usage_stats"') and CONTINUOUS or USAGE
  txn:set_var("txn.options", options)
  txn:set_var("txn.options_bytes", #options)
  txn:set_var("txn.options_at", at - 1)
  if not is_wanted then txn:set_var("txn.hides", true) end
end

core.register_action("read_cost", { "http-req" }, function(txn)
  local operation, body = operations[txn:get_var("txn.operation")], txn.f:req_body() or ""
  local found, repeated = find_fields(body, operation.wanted)
  local cost = compute_cost(body, operation, contexts[txn:get_var("txn.model")], found, repeated)
  txn:set_var("txn.cost", cost)
  if operation.form ~= "completions" then txn:set_var("txn.form", operation.form) end
  txn:set_var("txn.tokens", min(#body // BYTES_PER_TOKEN, tonumber(string.match(cost, "^%d+"))))
  if is_true(body, found.stream) then add_options(txn, body) end
  if #body > LARGE then
    body = nil
    collectgarbage()
  end
end, 0)
