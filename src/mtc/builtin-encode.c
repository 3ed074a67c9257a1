// SPDX-License-Identifier: Apache-2.0
// Hashes and encodings.
#include "mtc/builtin-internal.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "base/utf8.h"

int builtin_HashSha256(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_sha256 hash;
    char text[MT_SHA256_TEXT];

    vm_spend(vm, 16 * (size_t)args[0].string->len); // it takes its time
    mt_sha256_init(&hash);
    mt_sha256_add(&hash, args[0].string->data, args[0].string->len);
    mt_sha256_hex(&hash, text);
    return vm_make_string(vm, mt_str_of(text), ret);
}

// Bytes that were decoded, as a string.
static int decoded(mt_vm *vm, mt_str bytes, const char *of, vm_value *ret)
{
    if (memchr(bytes.data, '\0', bytes.len))
        return vm_throw(vm, "BadFormat", "%s holds a NUL, which no string may hold", of);
    if (!mt_utf8_valid(bytes.data, bytes.len))
        return vm_throw(vm, "BadFormat", "%s holds bytes that are no UTF-8", of);
    return vm_make_string(vm, bytes, ret);
}

int builtin_Base64Encode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);

    vm_spend(vm, args[0].string->len);
    (void)mt_base64_encode(vm_text(args[0]), &text);
    return vm_string_of(vm, &text, ret);
}

int builtin_Base64Decode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    _cleanup_free_ char *bytes = malloc(MT_BASE64_ROOM(text.len));
    char quoted[VM_QUOTE];
    size_t len;

    if (!bytes)
        return vm_no_memory(vm);
    vm_spend(vm, text.len);
    if (!mt_base64_decode(text, bytes, &len))
        return vm_throw(vm, "BadFormat", "%s is not base64", vm_quote(text, quoted));
    return decoded(vm, (mt_str){bytes, len}, "the base64", ret);
}

// ---- URLs ----

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int builtin_UrlEncode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    static const char digits[] = "0123456789ABCDEF";
    mt_str text = vm_text(args[0]);
    uint64_t len = 0;
    char *to;

    for (size_t i = 0; i < text.len; i++)
        len += is_unreserved(text.data[i]) ? 1 : 3;
    vm_spend(vm, text.len);
    if (vm_string_room(vm, len, ret) < 0)
        return -1;
    to = ret->string->data;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (is_unreserved(text.data[i])) {
            *to++ = text.data[i];
            continue;
        }
        *to++ = '%';
        *to++ = digits[c >> 4];
        *to++ = digits[c & 15];
    }
    return 0;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The byte that "%41" at p means; -1 where it means none.
static int percent(const char *p, const char *end)
{
    int high, low;

    if (end - p < 3)
        return -1;
    high = hex_of(p[1]);
    low = hex_of(p[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int builtin_UrlDecode(mt_vm *vm, vm_value *args, vm_value *ret)
{
    mt_str text = vm_text(args[0]);
    const char *end = text.data + text.len;
    _cleanup_free_ char *bytes = malloc(text.len + 1);
    size_t len = 0;

    if (!bytes)
        return vm_no_memory(vm);
    vm_spend(vm, text.len);
    for (const char *p = text.data; p < end; p++) {
        int byte = *p == '%' ? percent(p, end) : (unsigned char)*p;

        if (byte < 0)
            return vm_throw(vm, "BadFormat", "a %% without two hexadecimal digits at position %zu",
                            vm_count_text((mt_str){text.data, (size_t)(p - text.data)}));
        bytes[len++] = (char)byte;
        p += *p == '%' ? 2 : 0;
    }
    return decoded(vm, (mt_str){bytes, len}, "the URL", ret);
}
