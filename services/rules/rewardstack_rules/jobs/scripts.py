"""What happens to a job in Redis, each step whole or not at all (https://redis.io/docs/latest/develop/programmability/).

A job consists of `meta` (hash), `input` and `results` (hashes: chunk number to bytes), `partial` (of chunks that are
tried again: what they have), `due` (sorted set: chunks without a result, by when somebody should look after them) and
`tries` (hash: for each begun chunk how often it was begun, how often put off, who has it, and until when).
Where a tenant's bytes are limited, `held` (sorted set: its jobs, by when what they hold is gone) and `bytes` (hash: how
much each of them holds, and `all`) keep account of samples and results; a job is in neither or in both.
Time is Redis' own, so the workers' clocks need not agree.
"""

from __future__ import annotations

from rewardstack_rules.jobs.state import FIELDS

PRELUDE = """
local meta, input, partial, results, due, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local open, started, counts, bytes, held = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local id = ARGV[1]
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local function at(seconds) return string.format('%.3f', now + seconds) end
local function count(name) redis.call('HINCRBY', counts, name, 1) end
local function is_open() return redis.call('HEXISTS', open, id) == 1 end
local function forget(n) redis.call('HDEL', tries, n, n .. ':put_off', n .. ':holder', n .. ':until') end
local function charge(grown)
  if not redis.call('ZSCORE', held, id) then return end
  redis.call('HINCRBY', bytes, id, grown)
  redis.call('HINCRBY', bytes, 'all', grown)
end
local function release(job)
  if redis.call('ZREM', held, job) == 0 then return end
  redis.call('HINCRBY', bytes, 'all', 0 - (redis.call('HGET', bytes, job) or 0))
  redis.call('HDEL', bytes, job)
  if redis.call('EXISTS', held) == 0 then redis.call('DEL', bytes) end
end
local function close(state)
  local ttl, key = redis.call('HGET', meta, 'ttl'), redis.call('HGET', meta, 'key')
  redis.call('HSET', meta, 'state', state, 'ended', at(0))
  redis.call('HDEL', open, id)
  redis.call('SREM', started, id)
  for _, n in ipairs(redis.call('HKEYS', input)) do charge(0 - redis.call('HSTRLEN', input, n)) end
  redis.call('ZADD', held, 'XX', at(ttl), id)
  redis.call('DEL', input, partial, due, tries)
  redis.call('EXPIRE', meta, ttl)
  redis.call('EXPIRE', results, ttl)
  if key ~= '' and state == 'canceled' then redis.call('DEL', key)
  elseif key ~= '' then redis.call('EXPIRE', key, ttl) end
  count('jobs_' .. state)
end
"""

FINISHING = (
    PRELUDE
    + """
redis.call('HDEL', counts, '')
"""
)
"""Before what ends work or frees memory: Redis that is full refuses a script's first write, and this one needs none."""

TAKE = (
    PRELUDE
    + """
local n, data, idle, most = unpack(ARGV, 2)
if most ~= '' then
  for _, job in ipairs(redis.call('ZRANGEBYSCORE', held, '-inf', now)) do release(job) end
  local grown = #data - redis.call('HSTRLEN', input, n)
  if (redis.call('HGET', bytes, 'all') or 0) + grown > tonumber(most) then return 0 end
  redis.call('ZADD', held, at(idle), id)
  charge(grown)
end
redis.call('HSET', input, n, data)
redis.call('EXPIRE', input, idle)
return 1
"""
)
"""A chunk's samples are there, for as long as it takes the next to come; 0 where the tenant would hold more than it
may."""

DISCARD = FINISHING + "release(id) redis.call('DEL', input)"
"""What came of a job that does not exist yet is gone."""

PUBLISH = (
    PRELUDE
    + """
local tenant, key, digest, items, chunks, starts, ttl, grace, most = unpack(ARGV, 2)
if key ~= '' then
  local known = redis.call('GET', key)
  if known then return known end
end
if is_open() then return id .. ':' .. digest end
if most ~= '' then
  local has = 0
  for _, owner in ipairs(redis.call('HVALS', open)) do if owner == tenant then has = has + 1 end end
  if has >= tonumber(most) then return 'too many' end
end
if redis.call('HLEN', input) ~= tonumber(chunks) then return '' end
if key ~= '' then redis.call('SET', key, id .. ':' .. digest) end
redis.call('HSET', meta, 'items', items, 'chunks', chunks, 'starts', starts, 'ttl', ttl, 'key', key,
  'submitted', at(0), 'state', '')
redis.call('HSET', open, id, tenant)
redis.call('PERSIST', input)
redis.call('ZADD', held, 'XX', 'inf', id)
for n = 0, chunks - 1 do redis.call('ZADD', due, at(grace), n) end
count('jobs_submitted')
if tonumber(chunks) == 0 then close('finished') end
return id .. ':' .. digest
"""
)
"""The job is there, with all its input; or what was submitted before under the same idempotency key; as `id:digest`;
nothing where some of the input has expired; `too many` where the tenant has as many open jobs as it may."""

BEGIN = (
    FINISHING
    + """
local n, holder, lease = unpack(ARGV, 2)
if not is_open() or not redis.call('ZSCORE', due, n) then return false end
local held = redis.call('HGET', tries, n .. ':until')
if held and tonumber(held) > now then return false end
local begun = redis.call('HINCRBY', tries, n, 1)
redis.call('HSET', tries, n .. ':holder', holder, n .. ':until', at(lease))
redis.call('ZADD', due, at(lease), n)
redis.call('HSETNX', meta, 'started', at(0))
redis.call('SADD', started, id)
if begun > 1 then count('chunks_retried') end
return {begun, redis.call('HGET', tries, n .. ':put_off') or '0', redis.call('HGET', input, n),
  redis.call('HGET', partial, n) or '', redis.call('HGET', meta, 'starts'), redis.call('HGET', meta, 'items')}
"""
)
"""The chunk is this worker's: how often it was begun and put off, its input, what it has already, and where each chunk
starts in how many samples; else nothing."""

RENEW = (
    FINISHING
    + """
local n, holder, lease = unpack(ARGV, 2)
if not is_open() or redis.call('HGET', tries, n .. ':holder') ~= holder then return 0 end
redis.call('HSET', tries, n .. ':until', at(lease))
redis.call('ZADD', due, 'XX', at(lease), n)
return 1
"""
)
"""The chunk stays this worker's; 0 where it is not, or where the job has ended."""

PUT_OFF = (
    FINISHING
    + """
local n, holder, delay, kept = unpack(ARGV, 2)
if not is_open() or redis.call('HGET', tries, n .. ':holder') ~= holder then return 0 end
redis.call('HDEL', tries, n .. ':holder', n .. ':until')
if kept == '' then redis.call('HINCRBY', tries, n, -1)
else
  redis.call('HINCRBY', tries, n .. ':put_off', 1)
  redis.call('HSET', partial, n, kept)
end
redis.call('ZADD', due, at(delay), n)
return 1
"""
)
"""The chunk is nobody's until it is due again; what it has is kept. Without that it is as if it had not been begun."""

COMMIT = (
    FINISHING
    + """
local n, result, field, reason = unpack(ARGV, 2, 5)
if not is_open() then count('chunks_dropped') return {'dropped'} end
if redis.call('HSETNX', results, n, result) == 0 then count('chunks_duplicate') return {'duplicate'} end
charge(#result - redis.call('HSTRLEN', input, n))
redis.call('HDEL', input, n)
redis.call('HDEL', partial, n)
redis.call('ZREM', due, n)
forget(n)
redis.call('HSETNX', meta, 'reason', reason)
if redis.call('HSETNX', meta, 'field', field) == 0 and redis.call('HGET', meta, 'field') ~= field then
  redis.call('HSET', meta, 'field', '')
end
for i = 6, #ARGV, 2 do
  redis.call('HINCRBY', meta, ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', counts, 'items_' .. ARGV[i], ARGV[i + 1])
end
count('chunks_committed')
if redis.call('HINCRBY', meta, 'committed', 1) == tonumber(redis.call('HGET', meta, 'chunks')) then
  local items = redis.call('HGET', meta, 'items')
  local all_failed = redis.call('HGET', meta, 'failed') == items
  local all_wrong = tonumber(items) > 1 and redis.call('HGET', meta, 'field') ~= ''
    and redis.call('HGET', meta, 'unscored') == items
  if all_wrong then redis.call('HSET', meta, 'error', redis.call('HGET', meta, 'reason')) end
  close((all_failed or all_wrong) and 'failed' or 'finished')
  return {'committed', redis.call('HMGET', meta, '"""
    + "', '".join(FIELDS)
    + """')}
end
return {'committed'}
"""
)
"""The first result of a chunk is its result; the last chunk's ends the job, and tells how it stands then.

`field` is wrong in every sample of the chunk, in `meta` in every sample so far; a job of several samples that ends so
has failed for its `reason`."""

CANCEL = FINISHING + "if is_open() then close('canceled') return 1 end return 0"
"""No chunk of the job is begun or committed any more; 0 where it has ended already."""
