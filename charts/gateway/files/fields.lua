-- Required and refused fields of JSON bodies, and the output tokens that a body asks for. body.lua calls these functions.
-- fields.map has a line for each operation: OPERATION REQUIRED TOKENS COPIES BATCHES REFUSED STATE, with `-` for what is not
-- checked. STATE has fields that may only be null or false.
-- REQUIRED has sets of fields: `a:KINDS,b:KINDS|c:KINDS`, where a kind is the first letter of string, array or object.
-- The functions find the fields that Python's parser finds: those of the outermost object, the last one of each name.
local byte, find, match = string.byte, string.find, string.match
local floor, format, max, min = math.floor, string.format, math.max, math.min

local QUOTE, BACKSLASH, COMMA, OPEN_LIST, OPEN_OBJECT = 34, 92, 44, 91, 123
local MARK_OF = { s = QUOTE, a = OPEN_LIST, o = OPEN_OBJECT }
local MOST = 9999999999
local MOST_UNDERSCORES = 16
-- Ten characters, like a number of tokens.
local UNCHECKED, MISSING, INVALID = "unchecked_", "missing___", "invalid___"

local function split(text, separator)
  local parts = {}
  for part in text:gmatch("[^" .. separator .. "]+") do parts[#parts + 1] = part end
  return parts
end

local function read_list(text, wanted)
  if text == "-" then return {} end
  local names = split(text, ",")
  for _, name in ipairs(names) do wanted[name] = true end
  return names
end

-- Names with a `_` by the two bytes after the last one, and those without.
local function group_by_bytes(names)
  local groups, others = {}, {}
  for _, name in ipairs(names) do
    local first, second = match(name, "_(%w)(%w)[^_]*$")
    local key = first and byte(first) * 256 + byte(second)
    local group = key and (groups[key] or {}) or others
    group[#group + 1] = key and '"' .. name .. '"' or name
    if key then groups[key] = group end
  end
  return groups, others
end

-- Names by their end and the quote after it: `_params"` has `kv_transfer_params` and `ec_transfer_params`.
local function group_by_end(names)
  local groups, group_of = {}, {}
  for _, name in ipairs(names) do
    local last = (match(name, "_[^_]*$") or name) .. '"'
    if not group_of[last] then
      group_of[last] = { last = last, names = {} }
      groups[#groups + 1] = group_of[last]
    end
    table.insert(group_of[last].names, name)
  end
  return groups
end

local operations = {}
for line in io.lines("fields.map") do
  local name, required, tokens, copies, batches, refused, state =
    line:match("^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$")
  if name then
    local wanted, sets = {}, {}
    for _, set in ipairs(required == "-" and {} or split(required, "|")) do
      local fields = {}
      for field, kinds in set:gmatch("([%w_]+):(%a+)") do
        local marks = {}
        for kind in kinds:gmatch("%a") do marks[MARK_OF[kind]] = true end
        fields[#fields + 1] = { name = field, key = '"' .. field .. '"', marks = marks }
        wanted[field] = true
      end
      sets[#sets + 1] = fields
    end
    local refused_names = read_list(refused, wanted)
    local by_bytes, others = group_by_bytes(refused_names)
    operations[name] = {
      wanted = wanted,
      sets = sets,
      tokens = read_list(tokens, wanted),
      copies = read_list(copies, wanted),
      batches = read_list(batches, wanted),
      state = read_list(state, wanted),
      refused = refused_names,
      refused_ends = group_by_end(refused_names),
      refused_by_bytes = by_bytes,
      refused_others = group_by_end(others),
    }
  end
end

-- Position after the string that starts at `from`, or nil.
local function find_string_end(body, from)
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

-- Whether a value that is not empty and has one of these first bytes begins at a position.
local function has_value(body, at, marks)
  local mark = byte(body, at)
  if not marks[mark] then return false end
  if mark == QUOTE then return byte(body, at + 1) ~= QUOTE end
  return not find(body, "^[ \t\r\n]*[%]}]", at + 1)
end

-- The name of the error, or nil. It is that of the set with the most fields. `found` has the positions of the values by name.
local function find_fault(body, sets, found)
  local nearest, most = nil, -1
  for _, fields in ipairs(sets) do
    local fault, count = nil, 0
    for _, field in ipairs(fields) do
      local at = found[field.name]
      if not at or find(body, "^null", at) then
        fault = fault or "field-missing " .. field.name
      else
        count = count + 1
        if not has_value(body, at, field.marks) then fault = fault or "field-invalid " .. field.name end
      end
    end
    if not fault then return nil end
    if count > most then nearest, most = fault, count end
  end
  return nearest
end

-- Number of elements of the list that begins at a position, and 1 for another value. A list of numbers is one prompt.
local function count_prompts(body, from)
  local first = match(body, '^%[[ \t\r\n]*(["%[])', from)
  if not first then return 1 end
  local depth, at, count = 1, from + 1, 1
  while true do
    local mark_at = find(body, depth == 1 and '["%[%]{},]' or '["%[%]{}]', at)
    if not mark_at then return MOST end
    local mark = byte(body, mark_at)
    at = mark_at + 1
    if mark == QUOTE then
      at = find_string_end(body, mark_at)
      if not at then return MOST end
    elseif mark == COMMA then
      count = count + 1
    elseif mark == OPEN_LIST or mark == OPEN_OBJECT then
      depth = depth + 1
    else
      depth = depth - 1
      if depth == 0 then return count end
    end
  end
end

-- The largest number of these fields, or nil; and whether one of them is no natural number or occurs twice.
local function find_number(body, names, found, repeated)
  local largest
  for _, name in ipairs(names) do
    local at = found[name]
    if at and not (find(body, "^null", at) and not repeated[name]) then
      local digits = match(body, "^(%d+)[ \t\r\n]*[,}]", at)
      if not digits or repeated[name] then return nil, true end
      largest = max(largest or 0, #digits > 10 and MOST or tonumber(digits))
    end
  end
  return largest, false
end

local function find_output(body, operation, found, repeated)
  if #operation.tokens == 0 then return UNCHECKED end
  local tokens, is_invalid = find_number(body, operation.tokens, found, repeated)
  if is_invalid then return INVALID end
  local copies, is_bad = find_number(body, operation.copies, found, repeated)
  if is_bad then return INVALID end
  if not tokens then return MISSING end
  local prompts = 0
  for _, name in ipairs(operation.batches) do
    if repeated[name] then return INVALID end
    if found[name] and not find(body, "^null", found[name]) then prompts = prompts + count_prompts(body, found[name]) end
  end
  return format("%010d", floor(min(MOST, 1.0 * tokens * max(1, copies or 1) * max(1, prompts))))
end

-- Position of the first bracket in the outermost object, or of its end.
local function find_inner(body) return find(body, "[{%[%]}]", 2) or #body end

-- Position of the value of a field that is certainly in the outermost object, because no bracket is before it.
local function find_first_field(body, key)
  local from, after = find(body, key, 1, true)
  if not from or from > 2 and (from > find_inner(body) or byte(body, from - 1) == BACKSLASH) then return nil end
  return match(body, "^[ \t\r\n]*:[ \t\r\n]*()", after + 1)
end

-- The same as find_output, from raw bytes that are unambiguous; nil where they are not. All names begin with `max_`, but
-- the one of the copies.
local function find_output_fast(body, operation)
  if #operation.tokens == 0 then return UNCHECKED end
  for _, name in ipairs(operation.copies) do
    if find(body, '"' .. name .. '"', 1, true) then return nil end
  end
  for _, name in ipairs(operation.batches) do
    local from, after = find(body, '"' .. name, 1, true)
    if from and (find(body, '"' .. name, after, true) or not find(body, '^"[ \t\r\n]*:[ \t\r\n]*"', after + 1)) then return nil end
  end
  if find(body, "\\u00", 1, true) and find(body, "\\u00[567]") then return nil end
  local from = find(body, '"max_', 1, true)
  if not from then return MISSING end
  if find(body, '"max_', from + 1, true) or byte(body, from - 1) == BACKSLASH then return nil end
  local name, digits, after = match(body, '^"([%l_]+)"[ \t\r\n]*:[ \t\r\n]*(%d+)()[ \t\r\n]*[,}]', from)
  if not name or #digits > 9 or not (from < find_inner(body) or match(body, "^[^{}%[%]]*}[ \t\r\n]*$", after)) then return nil end
  for _, each in ipairs(operation.tokens) do
    if each == name then return format("%010d", digits) end
  end
  return nil
end

local function has_end(body, groups)
  for at = 1, #groups do
    if find(body, groups[at].last, 1, true) then
      for _, name in ipairs(groups[at].names) do
        if find(body, '"' .. name .. '"', 1, true) then return true end
      end
    end
  end
  return false
end

-- Whether the raw bytes may have a refused field: its name is somewhere, or an escape that its name could have. A search
-- stops at each copy of its first byte. Most bodies have many quotes and few `_`, so each `_` is looked at first, and in bodies
-- with many of them the ends of the names are searched.
local function may_have_refused(body, operation, is_escaped)
  if not operation.refused[1] then return false end
  if is_escaped and find(body, "\\u00[4567]") then return true end
  if has_end(body, operation.refused_others) then return true end
  local at, names = find(body, "_", 1, true), operation.refused_by_bytes
  for _ = 1, MOST_UNDERSCORES do
    if not at then return false end
    local first, second = byte(body, at + 1, at + 2)
    local found = second and names[first * 256 + second]
    if found then
      for _, name in ipairs(found) do
        if find(body, name, 1, true) then return true end
      end
    end
    at = find(body, "_", at + 1, true)
  end
  return has_end(body, operation.refused_ends)
end

local function may_have_state(body, operation, is_escaped)
  if not operation.state[1] then return false end
  if is_escaped then return true end
  for _, name in ipairs(operation.state) do
    if find(body, '"' .. name .. '"', 1, true) then return true end
  end
  return false
end

-- The output tokens of a body in which body.lua found the model without reading it, or nil if that is not possible here.
-- `is_escaped`: the body has `\u00`.
local function check_fast(body, name, is_escaped)
  local operation = operations[name]
  if not operation then return UNCHECKED end
  if may_have_refused(body, operation, is_escaped) or may_have_state(body, operation, is_escaped) then return nil end
  local set = operation.sets[1]
  if set then
    local at = not set[2] and find_first_field(body, set[1].key)
    if not at or not has_value(body, at, set[1].marks) then return nil end
  end
  return find_output_fast(body, operation)
end

-- Names of the fields whose positions `check` needs.
local function wanted(name)
  return operations[name] and operations[name].wanted or {}
end

-- The output tokens of a body, or nil and the name of an error. `found` has the positions of the values of the outermost
-- fields, `repeated` those names that occur twice.
local function check(body, name, found, repeated)
  local operation = operations[name]
  if not operation then return UNCHECKED end
  for _, refused in ipairs(operation.refused) do
    if found[refused] then return nil, "field-refused " .. refused end
  end
  for _, name in ipairs(operation.state) do
    local at = found[name]
    if at and not find(body, "^null", at) and not find(body, "^false", at) then return nil, "field-state " .. name end
  end
  local fault = find_fault(body, operation.sets, found)
  if fault then return nil, fault end
  return find_output(body, operation, found, repeated)
end

fields = {
  find_string_end = find_string_end,
  find_number = find_number,
  count_prompts = count_prompts,
  wanted = wanted,
  check_fast = check_fast,
  check = check,
}
