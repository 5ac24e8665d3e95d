-- Who changed what, by a number that only grows. The oldest row goes when a new one would be too many.
CREATE TABLE audit (id TEXT PRIMARY KEY, body BLOB NOT NULL);
