-- Counts the tokens of a response for tenants with `tokensPerMinute`, while the gateway forwards it. The result is
-- txn.tokens. A rule sets that before to the tokens of the prompt, estimated from its bytes, and removes it after an error.
-- With `usage` in the response the result is its `total_tokens`: in a string, JSON has a backslash before each quote, so
-- no generated text can contain that key. In a stream it is that of the event without choices, which costs.lua has asked for;
-- `total_tokens` of another event is that of one choice.
-- txn.form names another form of `usage`, whose counts are added. A client or a model can write such keys into these responses,
-- so the largest number of each key counts, and one that is too large does not set txn.excess. The counts of the input are those of
-- one event: the first has all tokens of the prompt, the last those that the cache had apart.
-- Without it (a stream that the client left) the output is estimated: one token for each event, or for each few bytes of its
-- text. No response counts more than txn.cost, and one that reports more sets txn.excess.
local BYTES_PER_TOKEN = tonumber((...))
local TOTAL, PROMPT = '"total_tokens"', '"prompt_tokens"'
local INPUTS = {
  responses = {},
  messages = { '"input_tokens"', '"cache_creation_input_tokens"', '"cache_read_input_tokens"' },
}
local OUTPUT = { responses = TOTAL, messages = '"output_tokens"' }
local NUMBER = "^%s*:%s*(%d+)%s*[,}]"
local MOST_DIGITS = 15
-- Bytes that may belong to a key and its number that continue in the next part.
local TAIL = #'"cache_creation_input_tokens"' + 40
-- `data: [DONE]` is shorter, and has no text.
local SHORTEST_EVENT = 20
-- An event without its end waits for it, so that the event with the usage can be removed. That one is shorter.
local MOST_WAITING = 4096

local find, match, sub = string.find, string.match, string.sub
local floor, max, min = math.floor, math.max, math.min

local Usage = { id = "tokens of responses", flags = filter.FLT_CFG_FL_HTX }
Usage.__index = Usage

function Usage:new()
  return setmetatable({}, Usage)
end

-- The number behind a key that ends at a position. One that is too large for Lua is one that no response has.
local function read_number(text, last)
  local digits = last and match(text, NUMBER, last + 1)
  return digits and (#digits > MOST_DIGITS and math.huge or tonumber(digits))
end

function Usage:http_headers(txn, message)
  if not message.channel:is_resp() then
    self.options = txn:get_var("txn.options")
    if self.options then filter.register_data_filter(self, message.channel) end
    return
  end
  self.prompt = txn:get_var("txn.tokens")
  if not self.prompt then return end
  local prompt, output, choices, prompts = match(txn:get_var("txn.cost"), "^(%d+) (%S+) (%d+) (%d+)$")
  self.most_prompt, self.most_output, self.choices = tonumber(prompt), tonumber(output), tonumber(choices)
  self.has_one_prompt = prompts == "1"
  self.bytes, self.total, self.form = 0, nil, txn:get_var("txn.form")
  -- `counts` are those of the present event.
  self.counts, self.input, self.output = {}, 0, nil
  -- Of an error only the prompt counts.
  if txn.f:status() >= 400 then return end
  self.is_stream = find(txn.f:res_fhdr("content-type") or "", "^text/event%-stream")
  -- A length that is announced cannot change.
  self.hides = txn:get_var("txn.hides") and not txn.f:res_fhdr("content-length")
  -- `frame` is the size of the shortest event, `size` that of all, `begun` what was forwarded of the present one, and
  -- `generated` the tokens of each choice.
  self.tail, self.events, self.size, self.frame, self.begun, self.generated = "", 0, 0, nil, 0, nil
  filter.register_data_filter(self, message.channel)
end

-- The last byte of the event at a position.
local function find_end(text, from)
  local _, last = find(text, "\n\n", from, true)
  if not last then _, last = find(text, "\r\n\r\n", from, true) end
  return last
end

-- The text of an event is what it has more than the shortest one.
function Usage:end_event(size)
  if size < SHORTEST_EVENT then return end
  self.events, self.size = self.events + 1, self.size + size
  self.frame = min(self.frame or size, size)
end

-- `usage` of one choice: `continuous_usage_stats`.
function Usage:read_choice(event, total)
  local index, prompt = tonumber(match(event, '"index"%s*:%s*(%d+)') or 0), read_number(event, select(2, find(event, PROMPT, 1, true)))
  if index >= self.choices or not prompt or prompt > total then return end
  self.generated = self.generated or {}
  self.generated[index] = max(self.generated[index] or 0, total - prompt)
  if self.has_one_prompt then self.prompt = prompt end
end

-- Whether the event is the one with the tokens of the whole stream.
function Usage:read_event(event)
  local at = find(event, TOTAL, 1, true)
  local total = at and read_number(event, at + #TOTAL - 1)
  if not total then return false end
  if not find(event, '"choices"%s*:%s*%[%s*%]') then
    self:read_choice(event, total)
    return false
  end
  self.total = max(self.total or 0, total)
  return true
end

-- Reads the complete events of a part, and returns how many of its bytes are forwarded.
function Usage:read_stream(message, text)
  local from, removed = 1, 0
  local has_usage = find(text, TOTAL, 1, true)
  while true do
    local after = find_end(text, from)
    if not after then break end
    self:end_event(self.begun + after - from + 1)
    if has_usage and self.begun == 0 and self:read_event(sub(text, from, after)) and self.hides then
      message:remove(from - 1 - removed, after - from + 1)
      removed = removed + after - from + 1
    end
    self.begun, from = 0, after + 1
  end
  local waiting = #text - from + 1
  if waiting == 0 or waiting <= MOST_WAITING and self.begun == 0 and not message:eom() then return from - 1 - removed end
  self.begun = self.begun + waiting
  return #text - removed
end

function Usage:read_document(text)
  text = self.tail .. text
  local at = find(text, TOTAL, 1, true)
  while at do
    local total = read_number(text, at + #TOTAL - 1)
    if total then self.total = max(self.total or 0, total) end
    at = find(text, TOTAL, at + 1, true)
  end
  self.tail = sub(text, -TAIL)
end

-- The largest number behind a key, at least `largest`.
local function find_largest(text, key, largest)
  local at = find(text, key, 1, true)
  while at do
    local number = read_number(text, at + #key - 1)
    if number then largest = max(largest or 0, number) end
    at = find(text, key, at + 1, true)
  end
  return largest
end

-- The numbers of another form in a part of an event.
function Usage:read_counts(text)
  local input = 0
  for _, key in ipairs(INPUTS[self.form]) do
    self.counts[key] = find_largest(text, key, self.counts[key])
    input = input + (self.counts[key] or 0)
  end
  self.input = max(self.input, input)
  self.output = find_largest(text, OUTPUT[self.form], self.output)
end

-- A stream of messages begins with `output_tokens` of 0.
function Usage:read_form(text)
  text = self.tail .. text
  local from = 1
  while true do
    local last = self.is_stream and find_end(text, from)
    self:read_counts(sub(text, from, last or -1))
    if not last then break end
    self.counts, from = {}, last + 1
  end
  self.tail = sub(text, max(from, #text - TAIL + 1))
  if not self.output or self.output == 0 and self.is_stream then return end
  self.total = self.input + self.output
end

function Usage:http_payload(txn, message)
  if not message.channel:is_resp() then
    -- The gateway holds the complete body before it gets here.
    if self.options then message:insert(self.options, txn:get_var("txn.options_at")) end
    self.options = nil
    return
  end
  local text = message:body() or ""
  if self.is_stream then
    local forwarded = self:read_stream(message, text)
    if self.form then self:read_form(sub(text, 1, forwarded)) end
    self.bytes = self.bytes + forwarded
    -- HAProxy calls again after a number, until nothing is left: another number would then make it wait for more.
    if forwarded < #text then return forwarded end
    return
  end
  self.bytes = self.bytes + #text
  if self.form then return self:read_form(text) end
  self:read_document(text)
end

function Usage:estimate()
  if self.generated then
    local output = 0
    for _, tokens in pairs(self.generated) do output = output + tokens end
    return self.prompt + output
  end
  if not self.is_stream then return self.prompt + self.bytes / BYTES_PER_TOKEN end
  self:end_event(self.begun)
  return self.prompt + max(self.events, (self.size - self.events * (self.frame or 0)) / BYTES_PER_TOKEN)
end

-- HAProxy also calls this after an abort.
function Usage:end_analyze(txn, channel)
  if not self.prompt or not channel:is_resp() then return end
  if not self.tail then return end
  local most = self.most_prompt + (self.most_output or self.bytes)
  txn:set_var("txn.tokens", floor(min(self.total or self:estimate(), most)))
  if (self.total or 0) > most and not self.form then txn:set_var("txn.excess", "#" .. txn:get_var("txn.model") .. ":" .. txn:get_var("txn.version")) end
end

core.register_filter("usage", Usage, function(class) return class end)
