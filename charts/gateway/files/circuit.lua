-- Stops a request that ends servers. HAProxy calls `count_lost` in the log format, once for each request that was sent completely
-- and whose connection closed without a response; no rule runs where the client gets no response either. It must not log:
-- that would overwrite the line. circuit.map has the stopped requests with the time at which they may pass again. Its
-- key has a hash of the body, not the body.
local CONNECTIONS, MOST_LOST, STOP_SECONDS = ...
local MAP = "circuit.map"
-- A record takes about 300 bytes.
local MOST_RECORDS, MOST_SECONDS, CLEAN_SECONDS = 1000, 3600, 10

local records, count, losses = {}, 0, 0
-- Number of records of each tenant.
local counts = {}

-- A key begins with the name of its tenant.
local function tenant_of(key) return key:match("^[^:]*") end

local function add_count(key, change)
  local tenant = tenant_of(key)
  local sum = (counts[tenant] or 0) + change
  counts[tenant], count = sum > 0 and sum or nil, count + change
end

local function forget(key)
  core.del_map(MAP, key)
  records[key] = nil
  add_count(key, -1)
end

local function forget_expired(now)
  for key, record in pairs(records) do
    if record.expires <= now then forget(key) end
  end
end

-- Of the tenant with most records: losses of one tenant end no stop of another one that has fewer.
local function forget_oldest()
  local largest, oldest
  for tenant, number in pairs(counts) do
    if not largest or number > counts[largest] then largest = tenant end
  end
  for key, record in pairs(records) do
    if tenant_of(key) == largest and (not oldest or record.loss < records[oldest].loss) then oldest = key end
  end
  forget(oldest)
end

local function find_record(key, now)
  if not records[key] then
    if count >= MOST_RECORDS then forget_expired(now) end
    if count >= MOST_RECORDS then forget_oldest() end
    records[key] = { loss = 0, lost = 0, stops = 0, expires = now }
    add_count(key, 1)
  end
  return records[key]
end

-- Returns a word for the log. After a stop each further loss doubles the time.
core.register_converters("count_lost", function(key)
  local now = os.time()
  local record = find_record(key, now)
  losses = losses + 1
  record.loss, record.lost = losses, record.lost + tonumber(CONNECTIONS)
  record.expires = now + MOST_SECONDS
  if record.lost < tonumber(MOST_LOST) then return "lost" end
  local seconds = math.floor(math.min(MOST_SECONDS, tonumber(STOP_SECONDS) * 2 ^ record.stops))
  record.stops = record.stops + 1
  record.expires = now + seconds + MOST_SECONDS
  core.set_map(MAP, key, tostring(now + seconds))
  return "stopped"
end)

core.register_task(function()
  while true do
    core.sleep(CLEAN_SECONDS)
    forget_expired(os.time())
  end
end)
