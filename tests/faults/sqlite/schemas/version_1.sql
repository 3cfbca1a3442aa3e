BEGIN TRANSACTION;
CREATE TABLE blocked(
  key TEXT NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  due_at INTEGER, lane INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL, expires_at INTEGER,
  PRIMARY KEY(key, npri, visible_at, seq)) WITHOUT ROWID;
INSERT INTO "blocked" VALUES('account 1',0,1700000000000000,6,NULL,1,0,0,1,NULL);
CREATE TABLE catalog(version INTEGER NOT NULL);
INSERT INTO "catalog" VALUES(7);
CREATE TABLE chord(
  key TEXT PRIMARY KEY, size INTEGER NOT NULL, counted INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE chord_part(
  key TEXT NOT NULL, idx INTEGER NOT NULL, part BLOB NOT NULL, PRIMARY KEY(key, idx));
CREATE TABLE command(
  number INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT NOT NULL, name TEXT NOT NULL,
  arguments TEXT NOT NULL, reply_to TEXT, expires_at INTEGER NOT NULL);
CREATE TABLE dead(
  number INTEGER PRIMARY KEY AUTOINCREMENT,      -- never reused: operators name letters by it
  died_at INTEGER NOT NULL, reason TEXT NOT NULL, error TEXT NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL,
  message_id TEXT NOT NULL, task_id TEXT, task TEXT NOT NULL, lane INTEGER NOT NULL,
  queue INTEGER NOT NULL, npri INTEGER NOT NULL, expires_at INTEGER, max_deliveries INTEGER NOT NULL,
  ack TEXT NOT NULL, retries INTEGER NOT NULL, rate_interval REAL, key TEXT, key_limit INTEGER,
  follow TEXT, body BLOB NOT NULL, meta TEXT);
INSERT INTO "dead" VALUES(1,1700000000000000,'failed','ValueError: no',1,0,'dead',NULL,'t',1,1,0,NULL,5,'on_finish',2,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
CREATE TABLE duty(name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL, ttl INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE event(
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL, fields TEXT NOT NULL);
CREATE TABLE holder(
  key TEXT NOT NULL, seq INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  PRIMARY KEY(key, seq)) WITHOUT ROWID;
INSERT INTO "holder" VALUES('account 1',5,0,1700000000000000);
CREATE TABLE lane(
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  rate_key TEXT,
  booked INTEGER NOT NULL DEFAULT 0,
  UNIQUE(queue, rate_key, booked));
INSERT INTO "lane" VALUES(1,1,NULL,0);
INSERT INTO "lane" VALUES(2,1,'mail',0);
INSERT INTO "lane" VALUES(3,1,'mail',1);
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
  meta TEXT);
INSERT INTO "message" VALUES(1,'running',NULL,'t',1,0,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
INSERT INTO "message" VALUES(2,'low',NULL,'t',1,9,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
INSERT INTO "message" VALUES(3,'urgent',NULL,'t',1,-9,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null,"headers":{"from":"before"}}');
INSERT INTO "message" VALUES(4,'other id','shared','t',1,0,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
INSERT INTO "message" VALUES(5,'first of its key',NULL,'t',1,0,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,'account 1',1,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
INSERT INTO "message" VALUES(6,'blocked',NULL,'t',1,0,1700000000000000,1700000000000000,NULL,5,'on_finish',0,NULL,'account 1',1,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
INSERT INTO "message" VALUES(7,'scheduled',NULL,'t',1,0,1700000060000000,1700000000000000,NULL,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"eta":1700000060.0,"root_id":null}');
INSERT INTO "message" VALUES(8,'expiring',NULL,'t',1,0,1700003600000000,1700000000000000,1700000030000000,5,'on_finish',0,NULL,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"eta":1700003600.0,"root_id":null}');
INSERT INTO "message" VALUES(9,'limited',NULL,'t',2,0,1700000000000000,1700000000000000,NULL,5,'on_finish',0,10.0,NULL,NULL,NULL,X'5B5B5D2C207B7D2C207B7D5D','{"root_id":null}');
CREATE TABLE queue(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  paused INTEGER NOT NULL DEFAULT 0);
INSERT INTO "queue" VALUES(1,'q',0);
INSERT INTO "queue" VALUES(2,'paused',1);
CREATE TABLE rate(
  key TEXT PRIMARY KEY,
  next_at INTEGER NOT NULL,
  closed_until INTEGER NOT NULL,
  last_start INTEGER NOT NULL,
  interval INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "rate" VALUES('mail',0,0,0,10000000);
CREATE TABLE ready(
  lane INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL,
  PRIMARY KEY(lane, npri, visible_at, seq)) WITHOUT ROWID;
INSERT INTO "ready" VALUES(1,-9,1700000000000000,3,0,0,1,NULL,0);
INSERT INTO "ready" VALUES(1,0,1700000000000000,4,0,0,1,NULL,0);
INSERT INTO "ready" VALUES(1,0,1700000000000000,5,0,0,1,NULL,1);
INSERT INTO "ready" VALUES(1,9,1700000000000000,2,0,0,1,NULL,0);
INSERT INTO "ready" VALUES(2,0,1700000000000000,9,0,0,1,NULL,0);
CREATE TABLE reply(
  number INTEGER PRIMARY KEY, reply_to TEXT NOT NULL, worker TEXT NOT NULL, answer TEXT NOT NULL,
  expires_at INTEGER NOT NULL);
CREATE TABLE reserved(
  seq INTEGER PRIMARY KEY, token INTEGER NOT NULL, worker TEXT NOT NULL,
  reserved_at INTEGER NOT NULL, lease_until INTEGER NOT NULL,
  lease INTEGER NOT NULL,                        -- its length: bounds it when the clock is set back
  started_at INTEGER,                            -- NULL: reserved; set: running
  lane INTEGER NOT NULL, npri INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL);
INSERT INTO "reserved" VALUES(1,16341641472905449,'w',1700000000000000,1700000030000000,30000000,1700000000000000,1,0,1700000000000000,1,0,1,NULL,0);
CREATE TABLE result(
  id INTEGER PRIMARY KEY,
  task_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL, final INTEGER NOT NULL,
  body BLOB, ended_at REAL, expires_at INTEGER,
  task TEXT NOT NULL, worker TEXT NOT NULL, retries INTEGER NOT NULL,
  traceback TEXT, meta TEXT);
INSERT INTO "result" VALUES(1,'succeeded','succeeded',1,X'3432',1700000000.0,NULL,'','',0,NULL,NULL);
CREATE TABLE revoked(
  task_id TEXT PRIMARY KEY, reason TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "revoked" VALUES('revoked','not wanted',1700086400000000);
CREATE TABLE rotation(counters TEXT NOT NULL);
INSERT INTO "rotation" VALUES('{}');
CREATE TABLE scheduled(
  npri INTEGER NOT NULL, due_at INTEGER NOT NULL, seq INTEGER NOT NULL,
  lane INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  deliveries INTEGER NOT NULL, yields INTEGER NOT NULL, yieldable INTEGER NOT NULL,
  expires_at INTEGER, keyed INTEGER NOT NULL,
  PRIMARY KEY(npri, due_at, seq)) WITHOUT ROWID;
INSERT INTO "scheduled" VALUES(0,1700000060000000,7,1,1700000060000000,0,0,1,NULL,0);
INSERT INTO "scheduled" VALUES(0,1700003600000000,8,1,1700003600000000,0,0,1,1700000030000000,0);
CREATE TABLE worker(name TEXT PRIMARY KEY, seen_at INTEGER NOT NULL, info TEXT NOT NULL) WITHOUT ROWID;
CREATE UNIQUE INDEX lane_plain ON lane(queue) WHERE rate_key IS NULL;
CREATE INDEX message_task ON message(task_id) WHERE task_id IS NOT NULL;
CREATE INDEX message_expires ON message(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX scheduled_seq ON scheduled(seq);
CREATE INDEX dead_queue ON dead(queue, number);
CREATE INDEX dead_message ON dead(message_id);
CREATE INDEX dead_task ON dead(task_id) WHERE task_id IS NOT NULL;
CREATE INDEX dead_died ON dead(died_at);
CREATE INDEX result_expires ON result(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX command_worker ON command(worker);
CREATE INDEX reply_to ON reply(reply_to);
INSERT INTO "sqlite_sequence" VALUES('dead',1);
PRAGMA application_id=1414353201;
PRAGMA user_version=1;
COMMIT;
