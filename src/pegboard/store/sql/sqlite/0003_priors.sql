-- What past calls say of each tool; the digest each prior is worked out from; and single facts, such as when.

CREATE TABLE priors (
    tool TEXT PRIMARY KEY,
    calls REAL NOT NULL,
    success_rate REAL NOT NULL,
    p50_ms REAL,
    p95_ms REAL,
    p99_ms REAL,
    cost_usd REAL,
    result_tokens REAL,
    last_used REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE digests (
    tool TEXT PRIMARY KEY,
    state BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
