-- SPDX-License-Identifier: Apache-2.0
-- Secrets of namespaces. sealed: nonce, then the value encrypted and bound to id, namespace and name
-- (see secrets.c).

CREATE TABLE secrets (
    id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    name TEXT NOT NULL,
    date_created INTEGER NOT NULL,
    date_updated INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    UNIQUE (namespace_id, name)
) STRICT;

-- The secrets that the newest version names.
CREATE TABLE resource_secrets (
    resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    secret_name TEXT NOT NULL,
    PRIMARY KEY (resource_id, secret_name)
) STRICT, WITHOUT ROWID;

-- What live runs mount.
CREATE TABLE run_secrets (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    secret_id TEXT NOT NULL REFERENCES secrets (id) ON DELETE CASCADE,
    PRIMARY KEY (run_id, secret_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_secrets_secret ON run_secrets (secret_id);
