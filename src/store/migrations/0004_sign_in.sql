-- SPDX-License-Identifier: Apache-2.0
-- What is done by way of a run's own sign-in.

-- The run at the beginning of a chain of runs that started each other ('': the run itself is one),
-- and how many starts lie between.
ALTER TABLE runs ADD COLUMN root_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_root ON runs (root_id) WHERE date_ended = 0 AND root_id <> '';

-- The run that a key or a user was made by: both are worth nothing once it has ended. A user who
-- owns namespaces then stays, stopped, until an administrator deletes him.
ALTER TABLE keys ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
CREATE INDEX keys_run ON keys (run_id) WHERE run_id <> '';
ALTER TABLE users ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;
CREATE INDEX users_run ON users (run_id) WHERE run_id <> '';
