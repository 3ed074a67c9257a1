// SPDX-License-Identifier: Apache-2.0
// Sealing. The sealed form of a value is
//
//   nonce (24 bytes, random for each value) | XChaCha20-Poly1305 of the value (length + 16)
//
// under a key derived from the key file, with what it belongs to as additional data: it opens for
// that alone.
#include "store/store-internal.h"

#include <sodium.h>

enum {
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
};
_Static_assert(NONCE + TAG == STORE_SEAL, "what a seal adds");

size_t store_seal(const mt_store *s, mt_str value, mt_str binding, unsigned char *out)
{
    unsigned long long len;

    randombytes_buf(out, NONCE);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        out + NONCE, &len, (const unsigned char *)value.data, value.len,
        (const unsigned char *)binding.data, binding.len, NULL, out, s->secret_key);
    return NONCE + (size_t)len;
}

int store_unseal(const mt_store *s, const void *sealed, size_t len, size_t max, mt_str binding,
                 mt_buf *ret, mt_err **err)
{
    const unsigned char *in = sealed;
    unsigned char *out;

    if (len <= STORE_SEAL || len > max + STORE_SEAL)
        return 1;
    // The room that ret has is exactly what the value takes.
    out = mt_buf_reserve(ret, len - STORE_SEAL);
    if (!out)
        return mt_fail_oom(err);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, in + NONCE, len - NONCE,
                                                   (const unsigned char *)binding.data, binding.len,
                                                   in, s->secret_key) != 0)
        return 1;
    mt_buf_added(ret, len - STORE_SEAL);
    return 0;
}
