-- SPDX-License-Identifier: Apache-2.0
-- Times are microseconds since 1970 and 0 means "not"; ids are UUID texts; JSON is opaque text.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('user', 'admin')),
    uid INTEGER UNIQUE,
    default_namespace_id TEXT REFERENCES namespaces (id) ON DELETE SET NULL,
    date_created INTEGER NOT NULL
) STRICT;
CREATE INDEX users_default ON users (default_namespace_id);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    date_created INTEGER NOT NULL,
    date_expires INTEGER NOT NULL,
    date_last_used INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX keys_user ON keys (user_id);

CREATE TABLE namespaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL REFERENCES users (id),
    date_created INTEGER NOT NULL
) STRICT;
CREATE INDEX namespaces_owner ON namespaces (owner_id);

CREATE TABLE namespace_members (
    namespace_id TEXT NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    date_created INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX namespace_members_user ON namespace_members (user_id);

CREATE TABLE vfs (
    id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    name TEXT NOT NULL,
    limit_bytes INTEGER NOT NULL CHECK (limit_bytes > 0),
    date_created INTEGER NOT NULL,
    UNIQUE (namespace_id, name)
) STRICT;

-- A removed resource keeps its row and versions, so that its numbers never come twice.
CREATE TABLE resources (
    id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'app', 'capsule', 'interaction', 'json', 'prompt')),
    name TEXT NOT NULL,
    newest INTEGER NOT NULL,
    date_created INTEGER NOT NULL,
    date_updated INTEGER NOT NULL,
    date_removed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace_id, kind, name)
) STRICT;

CREATE TABLE resource_versions (
    resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    digest BLOB NOT NULL,
    date_created INTEGER NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (resource_id, version)
) STRICT;

CREATE TABLE resource_sources (
    resource_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (resource_id, version, number),
    FOREIGN KEY (resource_id, version) REFERENCES resource_versions (resource_id, version)
        ON DELETE CASCADE
) STRICT;

-- The file systems that the newest version names.
CREATE TABLE resource_vfs (
    resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    vfs_name TEXT NOT NULL,
    PRIMARY KEY (resource_id, vfs_name)
) STRICT, WITHOUT ROWID;

-- number: the order of lists. seq: of the last event of its journal that was applied. The long
-- columns stand last, so that lists do not read their pages.
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    capsule TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'Starting'
        CHECK (status IN ('Starting', 'Running', 'Finished', 'Error')),
    end_reason TEXT NOT NULL DEFAULT '',
    limit_ms INTEGER NOT NULL DEFAULT 0,
    signal INTEGER NOT NULL DEFAULT 0,
    terminated_by TEXT NOT NULL DEFAULT '',
    stop_requested_by TEXT NOT NULL DEFAULT '',
    limits_reached TEXT NOT NULL DEFAULT '[]',
    labels TEXT NOT NULL DEFAULT '{}',
    started_by_id TEXT REFERENCES users (id) ON DELETE SET NULL,
    started_by TEXT NOT NULL,
    parent_id TEXT NOT NULL DEFAULT '',
    date_created INTEGER NOT NULL,
    date_ready INTEGER NOT NULL DEFAULT 0,
    date_ended INTEGER NOT NULL DEFAULT 0,
    deadline INTEGER NOT NULL DEFAULT 0,
    max_duration_ms INTEGER NOT NULL DEFAULT 0,
    image TEXT NOT NULL DEFAULT '',
    image_digest TEXT NOT NULL DEFAULT '',
    memory_peak_bytes INTEGER NOT NULL DEFAULT 0,
    cpu_us INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0,
    phases TEXT NOT NULL DEFAULT '[]',
    failure_details TEXT NOT NULL DEFAULT '',
    request TEXT NOT NULL DEFAULT '{}',
    definition TEXT NOT NULL,
    CHECK ((date_ended = 0) = (status IN ('Starting', 'Running'))),
    CHECK ((date_ended = 0) = (end_reason = ''))
) STRICT;
CREATE INDEX runs_namespace ON runs (namespace_id, number);
CREATE INDEX runs_starter ON runs (started_by_id, number);
CREATE INDEX runs_live ON runs (number) WHERE date_ended = 0;

-- What live runs mount.
CREATE TABLE run_vfs (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    vfs_id TEXT NOT NULL REFERENCES vfs (id) ON DELETE CASCADE,
    PRIMARY KEY (run_id, vfs_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_vfs_vfs ON run_vfs (vfs_id);

CREATE TABLE idempotency (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    date_created INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_run ON idempotency (run_id);
CREATE INDEX idempotency_created ON idempotency (date_created);

CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    change TEXT NOT NULL
) STRICT;
