-- One row per record: the key it is found by, and the record itself in msgpack. The control plane keeps what is alive in
-- memory; rows are read once, at its start. Purchases and repairs that are over stay for a while as evidence.
CREATE TABLE node (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE purchase (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE repair (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE pool (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE trouble (id TEXT PRIMARY KEY, body BLOB NOT NULL);
-- Who this installation is, and the secret that its nodes' tokens are made of.
CREATE TABLE installation (id TEXT PRIMARY KEY, body BLOB NOT NULL);

-- What happened to nodes and pools, in sentences.
CREATE TABLE story (
    subject TEXT NOT NULL, nth INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (subject, nth)
);
CREATE UNIQUE INDEX story_seq ON story (seq);
-- What agents reported, by node.
CREATE TABLE health_event (
    subject TEXT NOT NULL, nth INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (subject, nth)
);
CREATE UNIQUE INDEX health_event_seq ON health_event (seq);
