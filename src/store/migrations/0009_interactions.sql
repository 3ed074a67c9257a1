-- SPDX-License-Identifier: Apache-2.0
-- Runs of interactions.

-- number, root_id: as those of app_runs. plan: what is asked, as the engine wants it. tokens_in,
-- tokens_out: of all attempts together, -1 while none was told; cost: a decimal, '' where no price
-- is set. An attempt changes the record, so what may be long and is written once stands in
-- interaction_values.
CREATE TABLE interaction_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    interaction TEXT NOT NULL,
    version INTEGER NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'Running' CHECK (status IN ('Running', 'Finished', 'Error')),
    end_reason TEXT NOT NULL DEFAULT '',
    limit_ms INTEGER NOT NULL DEFAULT 0,
    cancelled_by TEXT NOT NULL DEFAULT '',
    cancel_requested_by TEXT NOT NULL DEFAULT '',
    started_by_id TEXT REFERENCES users (id) ON DELETE SET NULL,
    started_by TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    parent_app_id TEXT NOT NULL,
    root_id TEXT NOT NULL,
    date_created INTEGER NOT NULL,
    date_ended INTEGER NOT NULL DEFAULT 0,
    deadline INTEGER NOT NULL,
    max_duration_ms INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT -1,
    tokens_out INTEGER NOT NULL DEFAULT -1,
    cost TEXT NOT NULL DEFAULT '',
    failure_details TEXT NOT NULL DEFAULT '',
    CHECK ((date_ended = 0) = (status = 'Running')),
    CHECK ((date_ended = 0) = (end_reason = ''))
) STRICT;
CREATE INDEX interaction_runs_namespace ON interaction_runs (namespace_id, number);
CREATE INDEX interaction_runs_starter ON interaction_runs (started_by_id, number);
CREATE INDEX interaction_runs_below ON interaction_runs (parent_app_id, number)
    WHERE parent_app_id <> '';
-- With date_ended: as those of app_runs.
CREATE INDEX interaction_runs_live ON interaction_runs (date_ended) WHERE date_ended = 0;
CREATE INDEX interaction_runs_live_starter ON interaction_runs (started_by_id, date_ended)
    WHERE date_ended = 0;
CREATE INDEX interaction_runs_live_below ON interaction_runs (parent_app_id, date_ended)
    WHERE date_ended = 0 AND parent_app_id <> '';
CREATE INDEX interaction_runs_live_root ON interaction_runs (root_id, date_ended)
    WHERE date_ended = 0 AND root_id <> '';
CREATE INDEX interaction_runs_live_namespace ON interaction_runs (namespace_id, date_ended, number)
    WHERE date_ended = 0;
CREATE INDEX interaction_runs_ended ON interaction_runs (date_ended) WHERE date_ended <> 0;

-- JSON: inputs by their names, the plan; output: what was answered.
CREATE TABLE interaction_values (
    run_id TEXT PRIMARY KEY REFERENCES interaction_runs (id) ON DELETE CASCADE,
    inputs TEXT NOT NULL,
    plan TEXT NOT NULL,
    output TEXT
) STRICT;

-- How often its model was asked, from 1, without a gap. The newest alone may be under way.
CREATE TABLE interaction_attempts (
    run_id TEXT NOT NULL REFERENCES interaction_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    date_started INTEGER NOT NULL,
    date_ended INTEGER NOT NULL DEFAULT 0,
    outcome TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    http_status INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT -1,
    tokens_out INTEGER NOT NULL DEFAULT -1,
    faults TEXT NOT NULL DEFAULT '[]',
    answer TEXT NOT NULL DEFAULT '',
    reasoning TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, number),
    CHECK ((date_ended = 0) = (outcome = ''))
) STRICT;

-- An Idempotency-Key may be of a start of an interaction as well.
CREATE TABLE idempotency_new (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    run_id TEXT REFERENCES runs (id) ON DELETE CASCADE,
    command_id TEXT REFERENCES commands (id) ON DELETE CASCADE,
    app_run_id TEXT REFERENCES app_runs (id) ON DELETE CASCADE,
    interaction_run_id TEXT REFERENCES interaction_runs (id) ON DELETE CASCADE,
    holder_id TEXT REFERENCES app_runs (id) ON DELETE CASCADE,
    date_created INTEGER NOT NULL,
    PRIMARY KEY (user_id, key),
    CHECK ((run_id IS NOT NULL) + (app_run_id IS NOT NULL) + (interaction_run_id IS NOT NULL) = 1),
    CHECK (command_id IS NULL OR run_id IS NOT NULL)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_new
    (user_id, key, digest, run_id, command_id, app_run_id, holder_id, date_created)
    SELECT user_id, key, digest, run_id, command_id, app_run_id, holder_id, date_created
    FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_new RENAME TO idempotency;
CREATE INDEX idempotency_run ON idempotency (run_id);
CREATE INDEX idempotency_command ON idempotency (command_id);
CREATE INDEX idempotency_app_run ON idempotency (app_run_id) WHERE app_run_id IS NOT NULL;
CREATE INDEX idempotency_interaction_run ON idempotency (interaction_run_id)
    WHERE interaction_run_id IS NOT NULL;
CREATE INDEX idempotency_holder ON idempotency (holder_id) WHERE holder_id IS NOT NULL;
CREATE INDEX idempotency_created ON idempotency (date_created) WHERE holder_id IS NULL;
