-- What happened. Columns are named as the fields of Outcome, Lookup and Exposure.
-- AUTOINCREMENT: a number is never used twice, so "all after this one" stays true when old rows are dropped.

CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    conversation TEXT NOT NULL,
    caller TEXT NOT NULL,
    via TEXT NOT NULL,
    ending TEXT NOT NULL,
    duration_ms REAL NOT NULL,
    request_bytes INTEGER NOT NULL,
    result_bytes INTEGER NOT NULL,
    result_tokens INTEGER NOT NULL,
    cost_usd REAL,
    repairs INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    detail TEXT NOT NULL
);

CREATE INDEX outcomes_by_time ON outcomes (at);

CREATE TABLE lookups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    query TEXT NOT NULL,
    conversation TEXT NOT NULL,
    caller TEXT NOT NULL,
    found TEXT NOT NULL,
    answer_tokens INTEGER NOT NULL,
    request_tokens INTEGER NOT NULL,
    duration_ms REAL NOT NULL
);

CREATE INDEX lookups_by_time ON lookups (at);

CREATE TABLE exposures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    conversation TEXT NOT NULL,
    caller TEXT NOT NULL,
    shown INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    shown_tokens INTEGER NOT NULL,
    own_tokens INTEGER NOT NULL,
    deferred_tokens TEXT NOT NULL,
    counted TEXT NOT NULL
);

CREATE INDEX exposures_by_time ON exposures (at);
