-- Version 1. "Is it visible" is a table, not a predicate: a message is in exactly one of ready, scheduled,
-- blocked and reserved. All times are microseconds since the epoch; npri is the negated priority, so that
-- every key sorts upwards. Payload pages are never rewritten by a reserve, a yield or a release.

CREATE TABLE catalog(version INTEGER NOT NULL);  -- one row; raised when queues, lanes or pauses change
INSERT INTO catalog(version) VALUES (1);

CREATE TABLE queue(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  paused INTEGER NOT NULL DEFAULT 0);

-- One row: the counters of smooth weighted round robin by queue, as JSON. A pick changes every one of
-- them, and ten updates cost more than the whole claim (measured).
CREATE TABLE rotation(counters TEXT NOT NULL);
INSERT INTO rotation(counters) VALUES ('{}');

-- What has one head: a queue (rate_key NULL), or one rate limit in a queue, those that booked a token apart
-- from those that did not. Never deleted, so that ids may be cached.
CREATE TABLE lane(
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  rate_key TEXT,
  booked INTEGER NOT NULL DEFAULT 0,
  UNIQUE(queue, rate_key, booked));
CREATE UNIQUE INDEX lane_plain ON lane(queue) WHERE rate_key IS NULL;

CREATE TABLE rate(
  key TEXT PRIMARY KEY,
  next_at INTEGER NOT NULL,
  closed_until INTEGER NOT NULL,
  last_start INTEGER NOT NULL,
  interval INTEGER NOT NULL) WITHOUT ROWID;

-- seq is the enqueue sequence. No AUTOINCREMENT (+5 us): it may be reused after the newest row went, but is
-- above every live one, and the token fences whoever held the old one.
CREATE TABLE message(
  seq INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL UNIQUE,
  task_id TEXT,                                  -- NULL: equal to message_id
  task TEXT NOT NULL,
  lane INTEGER NOT NULL,                         -- its own lane; once booked it waits in that one's twin
  npri INTEGER NOT NULL,
  visible_at INTEGER NOT NULL,                   -- its place with seq
  enqueued_at INTEGER NOT NULL,                  -- stamp of the submit, never below an older live one's
  expires_at INTEGER,
  max_deliveries INTEGER NOT NULL,
  ack TEXT NOT NULL,
  retries INTEGER NOT NULL,
  rate_interval REAL,
  key TEXT,                                      -- concurrency key
  key_limit INTEGER,
  follow TEXT,
  body BLOB NOT NULL,
  meta TEXT);                                    -- JSON of the fields that differ from their defaults
CREATE INDEX message_task ON message(task_id) WHERE task_id IS NOT NULL;
CREATE INDEX message_expires ON message(expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE ready(
  lane INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL,
  PRIMARY KEY(lane, npri, visible_at, seq)) WITHOUT ROWID;

-- due_at is the "not before"; visible_at stays the place. By band first: a cap on the work of one
-- transaction must never hide a more urgent due message.
CREATE TABLE scheduled(
  npri INTEGER NOT NULL, due_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  lane INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL,
  PRIMARY KEY(npri, due_at, seq)) WITHOUT ROWID;
CREATE INDEX scheduled_seq ON scheduled(seq);

-- At most running + prefetched rows: scans are cheap, so it has no index on worker or lease.
CREATE TABLE reserved(
  seq INTEGER PRIMARY KEY, token INTEGER NOT NULL, worker TEXT NOT NULL,
  reserved_at INTEGER NOT NULL, lease_until INTEGER NOT NULL,
  lease INTEGER NOT NULL,                        -- its length: bounds it when the clock is set back
  started_at INTEGER,                            -- NULL: reserved; set: running
  lane INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL);

CREATE TABLE blocked(
  key TEXT NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  due_at INTEGER, lane INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL, expires_at INTEGER,
  PRIMARY KEY(key, npri, visible_at, seq)) WITHOUT ROWID;

-- Who has a concurrency key: a due message of it that is ready, reserved, running or yielded.
CREATE TABLE holder(
  key TEXT NOT NULL, seq INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  PRIMARY KEY(key, seq)) WITHOUT ROWID;

CREATE TABLE dead(
  number INTEGER PRIMARY KEY AUTOINCREMENT,      -- never reused: operators name letters by it
  died_at INTEGER NOT NULL, reason TEXT NOT NULL, error TEXT NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL,
  message_id TEXT NOT NULL, task_id TEXT, task TEXT NOT NULL, lane INTEGER NOT NULL,
  queue INTEGER NOT NULL, npri INTEGER NOT NULL, expires_at INTEGER, max_deliveries INTEGER NOT NULL,
  ack TEXT NOT NULL, retries INTEGER NOT NULL, rate_interval REAL, key TEXT, key_limit INTEGER,
  follow TEXT, body BLOB NOT NULL, meta TEXT);
CREATE INDEX dead_queue ON dead(queue, number);
CREATE INDEX dead_message ON dead(message_id);
CREATE INDEX dead_task ON dead(task_id) WHERE task_id IS NOT NULL;
CREATE INDEX dead_died ON dead(died_at);

CREATE TABLE result(
  id INTEGER PRIMARY KEY,
  task_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL, final INTEGER NOT NULL,
  body BLOB, ended_at REAL, expires_at INTEGER,
  task TEXT NOT NULL, worker TEXT NOT NULL, retries INTEGER NOT NULL,
  traceback TEXT, meta TEXT);                    -- JSON: content type, parent, children, label
CREATE INDEX result_expires ON result(expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE revoked(
  task_id TEXT PRIMARY KEY, reason TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE chord(
  key TEXT PRIMARY KEY, size INTEGER NOT NULL, counted INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE chord_part(
  key TEXT NOT NULL, idx INTEGER NOT NULL, part BLOB NOT NULL, PRIMARY KEY(key, idx));

CREATE TABLE worker(name TEXT PRIMARY KEY, seen_at INTEGER NOT NULL, info TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE command(
  number INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT NOT NULL, name TEXT NOT NULL,
  arguments TEXT NOT NULL, reply_to TEXT, expires_at INTEGER NOT NULL);
CREATE INDEX command_worker ON command(worker);
CREATE TABLE reply(
  number INTEGER PRIMARY KEY, reply_to TEXT NOT NULL, worker TEXT NOT NULL, answer TEXT NOT NULL,
  expires_at INTEGER NOT NULL);
CREATE INDEX reply_to ON reply(reply_to);
CREATE TABLE event(
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL, fields TEXT NOT NULL);
CREATE TABLE duty(name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL, ttl INTEGER NOT NULL) WITHOUT ROWID;
