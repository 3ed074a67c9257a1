-- SPDX-License-Identifier: Apache-2.0
-- What is kept of ended runs, and for how long. output_bytes: what the files hold that its commands
-- printed into, -1 until it was measured. date_outputs_removed: when they were removed.
ALTER TABLE runs ADD COLUMN output_bytes INTEGER NOT NULL DEFAULT -1;
ALTER TABLE runs ADD COLUMN date_outputs_removed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_ended ON runs (date_ended) WHERE date_ended <> 0;
CREATE INDEX runs_outputs ON runs (date_ended, output_bytes)
    WHERE date_ended <> 0 AND date_outputs_removed = 0;
