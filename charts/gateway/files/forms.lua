-- Refuses fields in forms (multipart/form-data) of the task `transcribe`, with the names in the arguments. A form that the gateway
-- holds completely gets an error before a server is selected. A longer one is read while it is forwarded: all that follows the
-- name of such a field is overwritten, at the latest from the end of the headers of its part on, and a rule replaces the response by
-- the error.
-- Parsers differ in odd headers, so a part needs exactly one Content-Disposition with a plain name, and a delimiter counts
-- wherever it occurs. Content of files and other fields is not read.
local refused = {}
for _, name in ipairs({ ... }) do refused[name] = true end

local MAX_HEADERS, LARGE = 4096, 262144
local INVALID, REFUSED = "form-invalid", "field-refused "
local BOUNDARY = "[%w'()+_,./:=?-]"
local CONTROL = "[\0-\8\10-\31\127]"

local find, gmatch, gsub, lower, match = string.find, string.gmatch, string.gsub, string.lower, string.match
local rep, sub = string.rep, string.sub
local max = math.max

-- The delimiter of a form; nil for what is no form, and false for a form whose boundary parsers could read in two ways.
local function find_delimiter(content_type)
  local text = lower(content_type)
  if not find(text, "multipart", 1, true) then return nil end
  local at = match(text, "^multipart/form%-data[ \t]*();")
  if not at then return false end
  local found = {}
  for parameter in gmatch(gsub(sub(content_type, at + 1), "[ \t]*;[ \t]*$", "") .. ";", "(.-);") do
    local key, value = match(parameter, "^[ \t]*(%a+)=(.-)[ \t]*$")
    key = key and lower(key)
    if key ~= "boundary" and key ~= "charset" or found[key] then return false end
    found[key] = value
  end
  if found.charset and not match(lower(found.charset), '^"?utf%-8"?$') then return false end
  local value = found.boundary or ""
  local boundary = match(value, '^"(' .. BOUNDARY .. '+)"$') or match(value, "^(" .. BOUNDARY .. "+)$")
  return boundary and #boundary <= 70 and "--" .. boundary or false
end

-- The parameter `name` of a Content-Disposition, or nil. Parsers read a backslash in two ways.
local function find_name(value)
  local rest = match(value, "^[Ff]orm%-[Dd]ata(.*)$")
  if not rest or find(value, "\\", 1, true) then return nil end
  local found = {}
  while rest ~= "" do
    local key, text, after = match(rest, '^[ \t]*;[ \t]*([%w*]+)="([^"]*)"(.*)$')
    if not key then key, text, after = match(rest, '^[ \t]*;[ \t]*([%w*]+)=([^ \t;",]+)(.*)$') end
    key = key and lower(key)
    if key ~= "name" and key ~= "filename" and key ~= "filename*" or found[key] then return nil end
    found[key], rest = text, after
  end
  return found.name
end

-- Error of the headers of a part, or nil.
local function check_headers(headers)
  local name
  for line in gmatch(headers, "(.-)\r\n") do
    local header, value = match(line, "^([%w-]+):[ \t]*(.-)[ \t]*$")
    if not header or find(value, CONTROL) then return INVALID end
    if lower(header) == "content-disposition" then
      if name then return INVALID end
      name = find_name(value)
    end
  end
  if not name then return INVALID end
  return refused[name] and REFUSED .. name
end

-- Returns an error and the bytes before it, or nil and the bytes that need not be read again with what follows them.
local function read(text, delimiter)
  local from = 1
  while true do
    local at, last = find(text, delimiter, from, true)
    if not at then return nil, max(from - 1, #text - #delimiter + 1) end
    local mark = sub(text, last + 1, last + 2)
    if #mark < 2 then return nil, at - 1 end
    from = last + 3
    if mark == "\r\n" then
      local _, stop = find(text, "\r\n\r\n", from, true)
      if (stop or #text) - from > MAX_HEADERS then return INVALID, at - 1 end
      if not stop then
        -- A parser could accept another end of a line, and find the value before the gateway has the end of the headers.
        if find(gsub(sub(text, from), "\r\n", ""), CONTROL .. ".") then return INVALID, at - 1 end
        return nil, at - 1
      end
      local headers = sub(text, from, stop - 2)
      local failure = find(headers, delimiter, 1, true) and INVALID or check_headers(headers)
      if failure then return failure, at - 1 end
      from = stop + 1
    elseif mark ~= "--" then
      return INVALID, at - 1
    end
  end
end

-- Sets txn.form to an error, or to `read` for a form that is complete and has none.
core.register_action("check_form", { "http-req" }, function(txn)
  if txn.f:req_fhdr_cnt("content-type") > 1 then return txn:set_var("txn.form", INVALID) end
  local delimiter = find_delimiter(txn.f:req_fhdr("content-type") or "")
  if delimiter == nil then return txn:set_var("txn.form", "read") end
  if not delimiter then return txn:set_var("txn.form", INVALID) end
  local body = txn.f:req_body() or ""
  local failure = read(body, delimiter)
  local is_complete = tonumber(txn.f:req_fhdr("content-length")) == #body
  if failure or is_complete then txn:set_var("txn.form", failure or "read") end
  if #body > LARGE then
    body = nil
    collectgarbage()
  end
end, 0)

local Form = { id = "fields of forms", flags = filter.FLT_CFG_FL_HTX }
Form.__index = Form

function Form:new()
  return setmetatable({}, Form)
end

function Form:http_headers(txn, message)
  if message.channel:is_resp() or txn:get_var("txn.form") then return end
  self.delimiter, self.tail, self.is_refused = find_delimiter(txn.f:req_fhdr("content-type")), "", false
  filter.register_data_filter(self, message.channel)
end

-- Forwards all bytes, and keeps those that it has to read again. It must not hold any back: HAProxy can wait for an empty buffer
-- before it receives more, and the request would hang.
function Form:http_payload(txn, message)
  local text = self.tail .. (message:body() or "")
  local from, size = 0, #text - #self.tail
  if size == 0 then return end
  if not self.is_refused then
    local failure, count = read(text, self.delimiter)
    if failure then
      self.is_refused, from = true, max(count - #self.tail, 0)
      txn:set_var("txn.form", failure)
    end
    self.tail = failure and "" or sub(text, count + 1)
  end
  if self.is_refused then message:set(rep("?", size - from), from, size - from) end
  if #text > LARGE then
    text = nil
    collectgarbage()
  end
end

core.register_filter("form", Form, function(class) return class end)
