-- SPDX-License-Identifier: Apache-2.0
-- Commands of runs. arguments and environment are JSON; texts of programs are blobs, as they may
-- hold NULs. bytes: what a waiting one holds of the store, for the ceiling of a run. The long
-- columns stand last.

CREATE TABLE commands (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    status TEXT NOT NULL DEFAULT 'Queued'
        CHECK (status IN ('Queued', 'Running', 'Finished', 'Error', 'Aborted')),
    run_as_user TEXT NOT NULL,
    async INTEGER NOT NULL,
    max_duration_ms INTEGER NOT NULL,
    working_directory TEXT NOT NULL,
    end_reason TEXT NOT NULL DEFAULT '',
    exit_code INTEGER,
    limit_ms INTEGER NOT NULL DEFAULT 0,
    signal INTEGER NOT NULL DEFAULT 0,
    limits_reached TEXT NOT NULL DEFAULT '[]',
    cancel_requested_by TEXT NOT NULL DEFAULT '',
    standard_length INTEGER NOT NULL DEFAULT 0,
    error_length INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    date_created INTEGER NOT NULL,
    date_started INTEGER NOT NULL DEFAULT 0,
    date_ended INTEGER NOT NULL DEFAULT 0,
    failure_details TEXT NOT NULL DEFAULT '',
    command TEXT NOT NULL,
    arguments TEXT NOT NULL,
    environment TEXT NOT NULL,
    input BLOB,
    output_standard BLOB,
    output_error BLOB,
    CHECK ((date_ended = 0) = (status IN ('Queued', 'Running'))),
    CHECK ((date_ended = 0) = (end_reason = ''))
) STRICT;
CREATE INDEX commands_run ON commands (run_id, number);
CREATE INDEX commands_waiting ON commands (run_id, number, bytes) WHERE date_ended = 0;
-- Aborted ones wait for the words that the end of their run brings.
CREATE INDEX commands_untold ON commands (run_id)
    WHERE status = 'Aborted' AND failure_details = '';

-- An Idempotency-Key is of a start (NULL) or of a command.
ALTER TABLE idempotency ADD COLUMN command_id TEXT REFERENCES commands (id) ON DELETE CASCADE;
CREATE INDEX idempotency_command ON idempotency (command_id);

-- A longer life that was asked for and that the run has not confirmed. 0: none.
ALTER TABLE runs ADD COLUMN extended_ms INTEGER NOT NULL DEFAULT 0;
