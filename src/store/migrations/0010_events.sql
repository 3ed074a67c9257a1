-- SPDX-License-Identifier: Apache-2.0
-- What a stream of events tells and filters by, as it was when the event happened.

-- run_id: of a command its run, of a run of any kind itself, else ''. name: of what changed (of a
-- run: what it is a run of), '' where it has none. person_id: who sees the event although it is of
-- no namespace that he sees: a user himself, the owner of a key, who owned a namespace that is gone.
ALTER TABLE events ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN person_id TEXT NOT NULL DEFAULT '';
UPDATE events SET run_id = object_id WHERE kind IN ('capsuleRun', 'appRun', 'interactionRun');
UPDATE events SET run_id = ifnull((SELECT c.run_id FROM commands c WHERE c.id = object_id), '')
    WHERE kind = 'command';
