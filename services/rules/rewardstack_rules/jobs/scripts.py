"""Atomic operations on jobs in Redis, as Lua scripts (https://redis.io/docs/latest/develop/programmability/).

The keys of a job are:

- `meta`: a hash with the job's state
- `input`, `results`: hashes from chunk number to bytes
- `partial`: a hash from chunk number to the results so far, for chunks that are retried
- `due`: a sorted set of the chunks without a result, by the time after which the sweeper may send them again
- `tries`: a hash with four values for each started chunk: the number of attempts, the number of postponements, the
  name of the attempt that holds the lease, and the end of the lease

Each tenant has a list `ended` of its last 20 jobs that have ended. If the tenant's bytes are limited, two more keys
measure its samples and results: `bytes`, a hash with the bytes of each job and their sum (`all`), and `held`, a sorted
set of jobs by the time at which their data expires. A job is in both keys or in neither. The scripts use the clock of
Redis, so the clocks of workers need not agree.
"""

from __future__ import annotations

from rewardstack_rules.jobs.state import FIELDS

PRELUDE = """
local meta, input, partial, results, due, tries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local open, started, counts, bytes, held, ended = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local id = ARGV[1]
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local function at(seconds) return string.format('%.3f', now + seconds) end
local function count(name) redis.call('HINCRBY', counts, name, 1) end
local function is_open() return redis.call('HEXISTS', open, id) == 1 end
local function forget(n) redis.call('HDEL', tries, n, n .. ':postponed', n .. ':holder', n .. ':until') end
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
  redis.call('DEL', input, due, tries)
  redis.call('LPUSH', ended, id)
  redis.call('LTRIM', ended, 0, 19)
  redis.call('EXPIRE', ended, ttl)
  redis.call('EXPIRE', meta, ttl)
  redis.call('EXPIRE', results, ttl)
  redis.call('EXPIRE', partial, ttl)
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
"""Prefix of scripts that must run even if the memory of Redis is full, because they end work or free memory. If the
memory is full, Redis refuses a script whose first write may need memory. The first write here is a deletion."""

STORE = (
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
"""Store a chunk's samples. They expire unless another chunk or `PUBLISH` follows in time. Return 0, and store nothing,
if the tenant would exceed its limit."""

DISCARD = FINISHING + "release(id) redis.call('DEL', input)"
"""Delete the samples of a job that is not published yet."""

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
"""Publish a job whose input is stored, so that workers can start it. Return `id:digest` of the job, or of an earlier
job with the same idempotency key. Return an empty string if not all input is stored, and `too many` if the tenant has
too many open jobs."""

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
return {begun, redis.call('HGET', tries, n .. ':postponed') or '0', redis.call('HGET', input, n),
  redis.call('HGET', partial, n) or '', redis.call('HGET', meta, 'starts'), redis.call('HGET', meta, 'items')}
"""
)
"""Claim a chunk. Return its number of attempts, number of postponements, input and partial result, then the start
positions of all chunks of the job and the job's number of samples. Return false if the chunk cannot be claimed."""

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
"""Renew the lease of a chunk. Return 0 if the worker does not hold the lease, or if the job has ended."""

POSTPONE = (
    FINISHING
    + """
local n, holder, delay, kept, is_attempt = unpack(ARGV, 2)
if not is_open() or redis.call('HGET', tries, n .. ':holder') ~= holder then return 0 end
redis.call('HDEL', tries, n .. ':holder', n .. ':until')
if is_attempt == '1' then redis.call('HINCRBY', tries, n .. ':postponed', 1)
else redis.call('HINCRBY', tries, n, -1) end
if kept ~= '' then redis.call('HSET', partial, n, kept) end
redis.call('ZADD', due, at(delay), n)
return 1
"""
)
"""Release a chunk, set the time at which it is due again, and store its partial result, unless that is empty. If
`is_attempt` is not 1, the attempt does not count. Return 0, and do nothing, if the worker does not hold the lease, or
if the job has ended."""

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
"""Commit the result of a chunk. Return `committed`. If nothing is stored, return `duplicate` (the chunk already has a
result) or `dropped` (the job has ended). After the last chunk of a job, end the job, and also return its state.

The argument `field` is the option that is invalid in every sample of the chunk, and `reason` says why. If there is no
such option, both are empty. In `meta`, `field` is the option that is invalid in every sample of all committed chunks,
or empty if there is no such option.

A job has failed if all its samples are `failed`. A job of several samples has also failed if the same option is invalid
in all samples; only such a job has an error, the `reason` of the chunk that was committed first."""

CONFIRM = (
    FINISHING
    + """
if redis.call('EXISTS', meta) == 0 or redis.call('HGET', meta, 'state') == 'canceled' then return 0 end
redis.call('HSET', meta, 'confirmed', 1)
return 1
"""
)
"""Note that a job is on disk, so that `WITHDRAW` no longer cancels it. Return 0 if the job has been canceled or has
expired."""

WITHDRAW = (
    FINISHING
    + """
if is_open() and redis.call('HEXISTS', meta, 'confirmed') == 0 then close('canceled') end
"""
)
"""Cancel a job that could not be confirmed to be on disk, unless another request with its idempotency key has confirmed
it."""

TURN = """
local queue, open, turns, last = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local but, owners, first, best = ARGV[1], {}, nil, nil
for _, entry in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  local job = string.match(entry, '^([^-]*)-') or ''
  local tenant = owners[job]
  if tenant == nil then
    tenant = redis.call('HGET', open, job) or ''
    owners[job] = tenant
    local turn = tonumber(redis.call('HGET', turns, tenant)) or 0
    if (but == 'take' or 'except ' .. tenant ~= but) and (best == nil or turn < best[1]) then
      first, best = entry, {turn, tenant}
    end
  end
end
if first and but == 'take' then
  redis.call('LREM', queue, 1, first)
  redis.call('HSET', turns, best[2], redis.call('INCR', last))
  redis.call('EXPIRE', turns, 86400)
end
return first or ''
"""
"""Take the next entry out of a queue of RQ: the first of the tenant that had its last turn the longest time ago. Return
its id, or an empty string if there is none. With `except TENANT` in place of `take`, only look, for another tenant."""

CANCEL = FINISHING + "if is_open() then close('canceled') return 1 end return 0"
"""Cancel a job, so that no more chunks are started or committed. Return 0 if it has already ended."""
