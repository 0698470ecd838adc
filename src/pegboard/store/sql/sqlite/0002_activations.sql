-- What each conversation has loaded.

CREATE TABLE activations (
    conversation TEXT PRIMARY KEY,
    state BLOB NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX activations_by_expiry ON activations (expires_at);
