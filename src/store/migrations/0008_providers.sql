-- SPDX-License-Identifier: Apache-2.0
-- What an operator has set of providers of models; what is NULL is as the server knows it by itself. Prices are
-- decimals, of a million tokens. sealed_key: nonce, then the key encrypted and bound to name and base URL (see
-- providers.c).
CREATE TABLE providers (
    name TEXT PRIMARY KEY,
    base_url TEXT,
    schema_mode TEXT,
    concurrency INTEGER,
    price_in TEXT,
    price_out TEXT,
    sealed_key BLOB,
    date_created INTEGER NOT NULL,
    date_updated INTEGER NOT NULL
) STRICT;
