-- SPDX-License-Identifier: Apache-2.0
-- The live runs of a namespace, in order: lists begin at the namespaces that a user sees. With date_ended,
-- so that of two indexes that would do this one is taken.
CREATE INDEX runs_live_namespace ON runs (namespace_id, date_ended, number) WHERE date_ended = 0;
CREATE INDEX app_runs_live_namespace ON app_runs (namespace_id, date_ended, number) WHERE date_ended = 0;
