-- Each statement has a name, by which the code asks for it.

-- name: append_outcome
INSERT INTO outcomes (
    at, tool, server, conversation, caller, via, ending, duration_ms,
    request_bytes, result_bytes, result_tokens, cost_usd, repairs, cached, detail
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_lookup
INSERT INTO lookups (at, query, conversation, caller, found, answer_tokens, request_tokens, duration_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_exposure
INSERT INTO exposures (at, conversation, caller, shown, deferred, shown_tokens, own_tokens, deferred_tokens, counted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_skill_load
INSERT INTO skill_loads (at, skill, file, conversation, caller, tokens) VALUES (?, ?, ?, ?, ?, ?);

-- name: outcomes_between
SELECT at, tool, server, conversation, caller, via, ending, duration_ms,
    request_bytes, result_bytes, result_tokens, cost_usd, repairs, cached, detail
FROM outcomes
WHERE at >= :since AND at < :until AND (:conversation IS NULL OR conversation = :conversation)
ORDER BY at, id;

-- name: lookups_between
SELECT at, query, conversation, caller, found, answer_tokens, request_tokens, duration_ms
FROM lookups
WHERE at >= :since AND at < :until AND (:conversation IS NULL OR conversation = :conversation)
ORDER BY at, id;

-- name: exposures_between
SELECT at, conversation, caller, shown, deferred, shown_tokens, own_tokens, deferred_tokens, counted
FROM exposures
WHERE at >= :since AND at < :until AND (:conversation IS NULL OR conversation = :conversation)
ORDER BY at, id;

-- name: skill_loads_between
SELECT at, skill, file, conversation, caller, tokens
FROM skill_loads
WHERE at >= :since AND at < :until AND (:conversation IS NULL OR conversation = :conversation)
ORDER BY at, id;

-- name: skills_used
SELECT skill, max(at) FROM skill_loads GROUP BY skill;

-- name: outcomes_after
SELECT id, at, tool, server, conversation, caller, via, ending, duration_ms,
    request_bytes, result_bytes, result_tokens, cost_usd, repairs, cached, detail
FROM outcomes
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: forget_outcomes
DELETE FROM outcomes WHERE id IN (SELECT id FROM outcomes WHERE at < ? ORDER BY at LIMIT ?);

-- name: forget_lookups
DELETE FROM lookups WHERE id IN (SELECT id FROM lookups WHERE at < ? ORDER BY at LIMIT ?);

-- name: forget_exposures
DELETE FROM exposures WHERE id IN (SELECT id FROM exposures WHERE at < ? ORDER BY at LIMIT ?);

-- name: forget_skill_loads
DELETE FROM skill_loads WHERE id IN (SELECT id FROM skill_loads WHERE at < ? ORDER BY at LIMIT ?);

-- name: crowd_out_outcomes
DELETE FROM outcomes WHERE id IN (
    SELECT id FROM outcomes WHERE id <= (SELECT max(id) FROM outcomes) - ? ORDER BY id LIMIT ?
);

-- name: crowd_out_lookups
DELETE FROM lookups WHERE id IN (
    SELECT id FROM lookups WHERE id <= (SELECT max(id) FROM lookups) - ? ORDER BY id LIMIT ?
);

-- name: crowd_out_exposures
DELETE FROM exposures WHERE id IN (
    SELECT id FROM exposures WHERE id <= (SELECT max(id) FROM exposures) - ? ORDER BY id LIMIT ?
);

-- name: crowd_out_skill_loads
DELETE FROM skill_loads WHERE id IN (
    SELECT id FROM skill_loads WHERE id <= (SELECT max(id) FROM skill_loads) - ? ORDER BY id LIMIT ?
);

-- name: keep_activation
INSERT INTO activations (conversation, state, expires_at) VALUES (?, ?, ?)
ON CONFLICT (conversation) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at;

-- name: conversations
SELECT conversation, expires_at FROM activations WHERE expires_at > ? ORDER BY expires_at DESC LIMIT 1000;

-- name: activation
SELECT state FROM activations WHERE conversation = ? AND expires_at > ?;

-- name: forget_activations
DELETE FROM activations WHERE conversation IN (
    SELECT conversation FROM activations WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
);

-- name: crowd_out_activations
DELETE FROM activations WHERE conversation IN (
    SELECT conversation FROM activations ORDER BY expires_at DESC LIMIT ? OFFSET ?
);

-- name: keep_proxied
INSERT INTO proxied (conversation, state, expires_at) VALUES (?, ?, ?)
ON CONFLICT (conversation) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at;

-- name: proxied
SELECT state FROM proxied WHERE conversation = ? AND expires_at > ?;

-- name: forget_proxied
DELETE FROM proxied WHERE conversation IN (
    SELECT conversation FROM proxied WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
);

-- name: crowd_out_proxied
DELETE FROM proxied WHERE conversation IN (
    SELECT conversation FROM proxied ORDER BY expires_at DESC LIMIT ? OFFSET ?
);

-- name: keep_prior
INSERT INTO priors (tool, calls, success_rate, p50_ms, p95_ms, p99_ms, cost_usd, result_tokens, last_used)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: priors
SELECT tool, calls, success_rate, p50_ms, p95_ms, p99_ms, cost_usd, result_tokens, last_used
FROM priors
ORDER BY tool;

-- name: drop_priors
DELETE FROM priors;

-- name: digests
SELECT tool, state FROM digests;

-- name: digest
SELECT state FROM digests WHERE tool = ?;

-- name: keep_digest
INSERT INTO digests (tool, state) VALUES (?, ?)
ON CONFLICT (tool) DO UPDATE SET state = excluded.state;

-- name: drop_digest
DELETE FROM digests WHERE tool = ?;

-- name: drop_digests
DELETE FROM digests;

-- name: fact
SELECT value FROM facts WHERE name = ?;

-- name: keep_fact
INSERT INTO facts (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
