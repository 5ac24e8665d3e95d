-- One row per record: the key it is found by, and the record itself in msgpack.
-- The controller keeps every live record in memory; rows are read once, at its start.
CREATE TABLE job (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE task (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE attempt (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE worker (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE slice (id TEXT PRIMARY KEY, body BLOB NOT NULL);
-- Blobs too small for a file of their own: functions, arguments, values.
CREATE TABLE blob (id TEXT PRIMARY KEY, body BLOB NOT NULL);
