-- SPDX-License-Identifier: Apache-2.0
-- Runs of apps.

-- number: the order of lists. root_id and depth: as those of runs, of the chain of starts by runs'
-- sign-ins that it stands in; app_depth: how many app runs before it have started one another.
-- line_count: the number of the last line, of the console or the log; lines_kept, lines_bytes: of
-- those that are kept; console_count, console_kept: of the console's alone. output_bytes: of names
-- and values in app_outputs. journal_left: 1 where the end could not take all of the journal along.
-- A call changes the counts, so what may be long and is written once stands in app_values.
CREATE TABLE app_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    app TEXT NOT NULL,
    version INTEGER NOT NULL,
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
    depth INTEGER NOT NULL,
    app_depth INTEGER NOT NULL,
    rerun_of TEXT NOT NULL,
    language INTEGER NOT NULL,
    date_created INTEGER NOT NULL,
    date_ended INTEGER NOT NULL DEFAULT 0,
    deadline INTEGER NOT NULL,
    max_duration_ms INTEGER NOT NULL,
    line_count INTEGER NOT NULL DEFAULT 0,
    lines_kept INTEGER NOT NULL DEFAULT 0,
    lines_bytes INTEGER NOT NULL DEFAULT 0,
    console_count INTEGER NOT NULL DEFAULT 0,
    console_kept INTEGER NOT NULL DEFAULT 0,
    output_count INTEGER NOT NULL DEFAULT 0,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    call_count INTEGER NOT NULL DEFAULT 0,
    journal_bytes INTEGER NOT NULL DEFAULT 0,
    journal_left INTEGER NOT NULL DEFAULT 0,
    waiting_for TEXT NOT NULL DEFAULT '',
    failure_code TEXT NOT NULL DEFAULT '',
    failure_place TEXT NOT NULL DEFAULT '',
    failure_stack TEXT NOT NULL DEFAULT '[]',
    failure_details TEXT NOT NULL DEFAULT '',
    CHECK ((date_ended = 0) = (status = 'Running')),
    CHECK ((date_ended = 0) = (end_reason = ''))
) STRICT;
CREATE INDEX app_runs_namespace ON app_runs (namespace_id, number);
CREATE INDEX app_runs_starter ON app_runs (started_by_id, number);
CREATE INDEX app_runs_below ON app_runs (parent_app_id, number) WHERE parent_app_id <> '';
-- With date_ended, so that what is live is counted without a look at its rows.
CREATE INDEX app_runs_live ON app_runs (date_ended) WHERE date_ended = 0;
CREATE INDEX app_runs_live_starter ON app_runs (started_by_id, date_ended) WHERE date_ended = 0;
CREATE INDEX app_runs_live_below ON app_runs (parent_app_id, date_ended)
    WHERE date_ended = 0 AND parent_app_id <> '';
CREATE INDEX app_runs_live_root ON app_runs (root_id, date_ended)
    WHERE date_ended = 0 AND root_id <> '';
CREATE INDEX app_runs_ended ON app_runs (date_ended) WHERE date_ended <> 0;
CREATE INDEX app_runs_left ON app_runs (number) WHERE journal_left <> 0;

-- JSON: an object by the names of parameters, and what main returned.
CREATE TABLE app_values (
    run_id TEXT PRIMARY KEY REFERENCES app_runs (id) ON DELETE CASCADE,
    inputs TEXT NOT NULL,
    return_value TEXT NOT NULL DEFAULT 'null'
) STRICT;

-- The journal: calls by the program's own count from 1, without a gap. arguments: of one that is
-- open, which the newest alone may be. bytes: what it takes of the run's journal.
CREATE TABLE app_calls (
    run_id TEXT NOT NULL REFERENCES app_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    open INTEGER NOT NULL,
    until INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    code TEXT NOT NULL,
    arguments TEXT,
    result TEXT NOT NULL,
    PRIMARY KEY (run_id, number),
    CHECK ((open = 0) = (arguments IS NULL))
) STRICT, WITHOUT ROWID;

-- The newest lines, without a gap. Texts of programs are blobs, as they may hold NULs.
CREATE TABLE app_lines (
    run_id TEXT NOT NULL REFERENCES app_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    time INTEGER NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('o', 'i', 'w', 'e')),
    text BLOB NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

-- number: of the first time that it was set.
CREATE TABLE app_outputs (
    run_id TEXT NOT NULL REFERENCES app_runs (id) ON DELETE CASCADE,
    name BLOB NOT NULL,
    number INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

-- The app run that started it.
ALTER TABLE runs ADD COLUMN parent_app_id TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_live_below_app ON runs (parent_app_id)
    WHERE date_ended = 0 AND parent_app_id <> '';

-- An Idempotency-Key is of a start of a capsule, of a command (with its run), or of a start of an
-- app. holder_id: the app run whose call it belongs to; such a key stays until that run has ended.
CREATE TABLE idempotency_new (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    run_id TEXT REFERENCES runs (id) ON DELETE CASCADE,
    command_id TEXT REFERENCES commands (id) ON DELETE CASCADE,
    app_run_id TEXT REFERENCES app_runs (id) ON DELETE CASCADE,
    holder_id TEXT REFERENCES app_runs (id) ON DELETE CASCADE,
    date_created INTEGER NOT NULL,
    PRIMARY KEY (user_id, key),
    CHECK ((run_id IS NULL) <> (app_run_id IS NULL)),
    CHECK (command_id IS NULL OR run_id IS NOT NULL)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_new (user_id, key, digest, run_id, command_id, date_created)
    SELECT user_id, key, digest, run_id, command_id, date_created FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_new RENAME TO idempotency;
CREATE INDEX idempotency_run ON idempotency (run_id);
CREATE INDEX idempotency_command ON idempotency (command_id);
CREATE INDEX idempotency_app_run ON idempotency (app_run_id) WHERE app_run_id IS NOT NULL;
CREATE INDEX idempotency_holder ON idempotency (holder_id) WHERE holder_id IS NOT NULL;
CREATE INDEX idempotency_created ON idempotency (date_created) WHERE holder_id IS NULL;
