-- Counts the tokens of a response for tenants with `tokensPerMinute`, while the gateway forwards it. The result is
-- txn.tokens. A rule sets that before to the tokens of the prompt, estimated from its bytes, and removes it after an error.
-- With `usage` in the response the result is its `total_tokens`: in a string, JSON has a backslash before each quote, so
-- no generated text can contain that key. Without it (a stream without `stream_options.include_usage`, or one that the
-- client left) the output is estimated as well: one token for each event of the stream, or for each few bytes of its text.
local BYTES_PER_TOKEN = tonumber((...))
local TOTAL = '"total_tokens"'
-- Bytes that may belong to a `total_tokens` that continues in the next part.
local TAIL = #TOTAL + 20
-- `data: [DONE]` is shorter, and has no text.
local SHORTEST_EVENT = 20

local find, match, sub = string.find, string.match, string.sub
local floor, max, min = math.floor, math.max, math.min

local Usage = { id = "tokens of responses", flags = filter.FLT_CFG_FL_HTX }
Usage.__index = Usage

function Usage:new()
  return setmetatable({}, Usage)
end

function Usage:http_headers(txn, message)
  if not message.channel:is_resp() then return end
  self.prompt = txn:get_var("txn.tokens")
  if not self.prompt then return end
  -- `last` is where the last event began, `frame` the size of the shortest one, `size` that of all.
  self.tail, self.bytes, self.events, self.size, self.last, self.frame, self.total = "\n", 0, 0, 0, nil, nil, nil
  filter.register_data_filter(self, message.channel)
end

-- The text of an event is what it has more than the shortest one.
function Usage:end_event(at)
  local size = self.last and at - self.last or 0
  if size >= SHORTEST_EVENT then
    self.events, self.size = self.events + 1, self.size + size
    self.frame = min(self.frame or size, size)
  end
  self.last = at
end

function Usage:http_payload(_, message)
  local text = self.tail .. (message:body() or "")
  local base = self.bytes - #self.tail
  self.bytes = base + #text
  local at = find(text, TOTAL, 1, true)
  while at do
    local digits = match(text, "^%s*:%s*(%d+)", at + #TOTAL)
    if digits then self.total = max(self.total or 0, tonumber(digits)) end
    at = find(text, TOTAL, at + 1, true)
  end
  if not self.total then
    at = find(text, "\ndata:", 1, true)
    while at do
      if not self.last or base + at > self.last then self:end_event(base + at) end
      at = find(text, "\ndata:", at + 1, true)
    end
  end
  self.tail = sub(text, -TAIL)
end

-- HAProxy also calls this after an abort.
function Usage:end_analyze(txn, channel)
  if not self.prompt or not channel:is_resp() then return end
  local output = 0
  if self.last then
    self:end_event(self.bytes + 1)
    output = max(self.events, (self.size - self.events * (self.frame or 0)) / BYTES_PER_TOKEN)
  else
    output = self.bytes / BYTES_PER_TOKEN
  end
  txn:set_var("txn.tokens", self.total or floor(self.prompt + output))
end

core.register_filter("usage", Usage, function(class) return class end)
