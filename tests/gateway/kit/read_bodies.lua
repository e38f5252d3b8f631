-- Reads each body of a file with the gateway's parser, as HAProxy calls it for small, large and chunked bodies, and writes the results. A
-- body has its length before it, in eight digits. A line of results has three words: the model, or `!` and an error.
local bodies, results, operation = ...
local convert, act = parsers["parse_body:converter"], parsers["parse_body:action"]

-- What the action uses of a transaction. Without a length the body came in chunks.
local function parse(body, length)
  local parsed
  act({
    f = { req_body = function() return body end, req_fhdr = function() return length end },
    get_var = function() return operation end,
    set_var = function(_, _, value) parsed = value end,
  })
  return parsed
end

local function format_result(parsed)
  local model = parsed:match("^ok %S+ (%S+) ")
  return model or "!" .. parsed:gsub(" ", ":")
end

local file <close> = assert(io.open(bodies, "rb"))
local output <close> = assert(io.open(results, "w"))
while true do
  local length = file:read(8)
  if not length then break end
  local body = length == "00000000" and "" or file:read(tonumber(length))
  -- HAProxy ends the argument of a converter at a zero byte.
  local small = convert(body:match("^[^\0]*"), operation)
  local large, chunks = parse(body, tostring(#body)), parse(body, nil)
  output:write(format_result(small), " ", format_result(large), " ", format_result(chunks), "\n")
end
