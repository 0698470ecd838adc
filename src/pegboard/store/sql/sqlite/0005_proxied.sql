-- What the proxy remembers of conversations: how each was begun, and what its client was not shown.

CREATE TABLE proxied (
    conversation TEXT PRIMARY KEY,
    state BLOB NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX proxied_by_expiry ON proxied (expires_at);
