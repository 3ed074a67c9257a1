// SPDX-License-Identifier: Apache-2.0
#include "capsule/protocol.h"

#include "base/id.h"
#include "capsule/journal.h"

#include <errno.h>

enum { BY_MAX = 256, SENTENCE_MAX = 16384, DISK_FULL_MAX = 1024 };

// Frames are written with their length left open and filled in at the end.
static size_t frame_begin(mt_buf *b, mt_frame_type type, uint32_t tag)
{
    size_t start = b->len;

    mt_wire_put_u32(b, 0);
    mt_wire_put_u16(b, (uint16_t)type);
    mt_wire_put_u32(b, tag);
    return start;
}

static int frame_end(mt_buf *b, size_t start)
{
    uint32_t len;

    if (b->failed)
        return b->failed;
    len = (uint32_t)(b->len - start - 4);
    for (int i = 0; i < 4; i++)
        b->data[start + (size_t)i] = (char)(uint8_t)(len >> (8 * i));
    return 0;
}

int mt_frame_put(mt_buf *b, mt_frame_type type, uint32_t tag, const void *payload, size_t len)
{
    size_t start = frame_begin(b, type, tag);

    if (len)
        (void)mt_buf_add(b, payload, len);
    return frame_end(b, start);
}

ssize_t mt_frame_parse(const void *data, size_t len, size_t max, mt_frame *ret)
{
    mt_wire_reader r = mt_wire_reader_of(data, len);
    uint32_t rest = mt_wire_get_u32(&r);
    mt_frame f = {0};

    if (len < 4)
        return 0;
    if (rest < MT_FRAME_HEADER - 4)
        return -EBADMSG;
    if ((uint64_t)rest + 4 > max)
        return -EMSGSIZE;
    if (len - 4 < rest)
        return 0;
    f.type = (mt_frame_type)mt_wire_get_u16(&r);
    f.tag = mt_wire_get_u32(&r);
    f.payload = (const uint8_t *)data + MT_FRAME_HEADER;
    f.payload_len = rest + 4 - MT_FRAME_HEADER;
    *ret = f;
    return (ssize_t)rest + 4;
}

int mt_put_hello(mt_buf *b, uint32_t tag)
{
    return mt_frame_put(b, MT_FRAME_HELLO, tag, NULL, 0);
}

int mt_put_info(mt_buf *b, uint32_t tag, const mt_info *info)
{
    size_t start = frame_begin(b, MT_FRAME_INFO, tag);

    mt_wire_put_str(b, info->version);
    mt_wire_put_str(b, info->boot_id);
    mt_wire_put_str(b, info->cgroup_mode);
    mt_wire_put_str(b, info->scratch_kind);
    mt_wire_put_u64(b, info->scratch_bytes);
    mt_wire_put_u64(b, info->scratch_free_bytes);
    mt_wire_put_u64(b, info->memory_bytes);
    mt_wire_put_u64(b, info->memory_cap_bytes);
    mt_wire_put_u32(b, info->cpus);
    mt_wire_put_u32(b, info->live_runs);
    mt_wire_put_u32(b, info->notice_count);
    for (uint32_t i = 0; i < info->notice_count; i++)
        mt_wire_put_str(b, info->notices[i]);
    mt_wire_put_u32(b, info->image_count);
    for (uint32_t i = 0; i < info->image_count; i++) {
        const mt_info_image *image = &info->images[i];

        mt_wire_put_str(b, image->name);
        mt_wire_put_str(b, image->digest);
        mt_wire_put_str(b, image->json);
        mt_wire_put_u64(b, image->size_bytes);
        mt_wire_put_i64(b, image->made_us);
    }
    return frame_end(b, start);
}

int mt_put_start(mt_buf *b, uint32_t tag, mt_str encoded_plan)
{
    return mt_frame_put(b, MT_FRAME_START, tag, encoded_plan.data, encoded_plan.len);
}

static int put_text_frame(mt_buf *b, mt_frame_type type, uint32_t tag, const char *text)
{
    size_t start = frame_begin(b, type, tag);

    mt_wire_put_text(b, text);
    return frame_end(b, start);
}

int mt_put_started(mt_buf *b, uint32_t tag, const char *run_id)
{
    return put_text_frame(b, MT_FRAME_STARTED, tag, run_id);
}

int mt_put_sweep(mt_buf *b, uint32_t tag, const char *run_id, mt_forget forget)
{
    size_t start = frame_begin(b, MT_FRAME_SWEEP, tag);

    mt_wire_put_text(b, run_id);
    mt_wire_put_u8(b, (uint8_t)forget);
    return frame_end(b, start);
}

int mt_put_swept(mt_buf *b, uint32_t tag, const char *run_id)
{
    return put_text_frame(b, MT_FRAME_SWEPT, tag, run_id);
}

int mt_put_gone(mt_buf *b, const char *run_id)
{
    return put_text_frame(b, MT_FRAME_GONE, 0, run_id);
}

int mt_put_prune(mt_buf *b, uint32_t tag)
{
    return mt_frame_put(b, MT_FRAME_PRUNE, tag, NULL, 0);
}

int mt_put_pruned(mt_buf *b, uint32_t tag, uint32_t layers, uint64_t bytes)
{
    size_t start = frame_begin(b, MT_FRAME_PRUNED, tag);

    mt_wire_put_u32(b, layers);
    mt_wire_put_u64(b, bytes);
    return frame_end(b, start);
}

int mt_put_attach(mt_buf *b, uint64_t after_seq)
{
    size_t start = frame_begin(b, MT_FRAME_ATTACH, 0);

    mt_wire_put_u64(b, after_seq);
    return frame_end(b, start);
}

int mt_put_record(mt_buf *b, mt_str record_frame)
{
    return mt_frame_put(b, MT_FRAME_RECORD, 0, record_frame.data, record_frame.len);
}

int mt_put_synced(mt_buf *b, uint64_t seq)
{
    size_t start = frame_begin(b, MT_FRAME_SYNCED, 0);

    mt_wire_put_u64(b, seq);
    return frame_end(b, start);
}

int mt_put_terminate(mt_buf *b, const char *by)
{
    size_t start = frame_begin(b, MT_FRAME_TERMINATE, 0);

    mt_wire_put_bytes(b, by, MT_MIN(strlen(by), (size_t)BY_MAX));
    return frame_end(b, start);
}

int mt_put_exec(mt_buf *b, mt_str encoded_command)
{
    return mt_frame_put(b, MT_FRAME_EXEC, 0, encoded_command.data, encoded_command.len);
}

int mt_put_cancel(mt_buf *b, const char *command_id, const char *by)
{
    size_t start = frame_begin(b, MT_FRAME_CANCEL, 0);

    mt_wire_put_text(b, command_id);
    mt_wire_put_bytes(b, by, MT_MIN(strlen(by), (size_t)BY_MAX));
    return frame_end(b, start);
}

int mt_put_extend(mt_buf *b, int64_t max_duration_ms, int64_t deadline_ns)
{
    size_t start = frame_begin(b, MT_FRAME_EXTEND, 0);

    mt_wire_put_i64(b, max_duration_ms);
    mt_wire_put_i64(b, deadline_ns);
    return frame_end(b, start);
}

int mt_put_api(mt_buf *b, uint32_t uid_base)
{
    size_t start = frame_begin(b, MT_FRAME_API, 0);

    mt_wire_put_u32(b, uid_base);
    return frame_end(b, start);
}

int mt_put_session(mt_buf *b, uint32_t tag, const char *user, const char *term)
{
    size_t start = frame_begin(b, MT_FRAME_SESSION, tag);

    mt_wire_put_text(b, user);
    mt_wire_put_text(b, term);
    return frame_end(b, start);
}

int mt_put_session_started(mt_buf *b, uint32_t tag)
{
    return mt_frame_put(b, MT_FRAME_SESSION_STARTED, tag, NULL, 0);
}

static int put_failed(mt_buf *b, mt_frame_type type, uint32_t tag, mt_code code,
                      const char *sentence)
{
    size_t start = frame_begin(b, type, tag);

    mt_wire_put_text(b, mt_code_name(code));
    mt_wire_put_bytes(b, sentence, MT_MIN(strlen(sentence), (size_t)SENTENCE_MAX));
    return frame_end(b, start);
}

int mt_put_failed(mt_buf *b, uint32_t tag, mt_code code, const char *sentence)
{
    return put_failed(b, MT_FRAME_FAILED, tag, code, sentence);
}

int mt_put_session_failed(mt_buf *b, uint32_t tag, mt_code code, const char *sentence)
{
    return put_failed(b, MT_FRAME_SESSION_FAILED, tag, code, sentence);
}

int mt_put_session_ended(mt_buf *b, uint32_t tag, bool run_ended, int status, const char *sentence)
{
    size_t start = frame_begin(b, MT_FRAME_SESSION_ENDED, tag);

    mt_wire_put_bool(b, run_ended);
    mt_wire_put_u32(b, (uint32_t)status);
    mt_wire_put_bytes(b, sentence, MT_MIN(strlen(sentence), (size_t)SENTENCE_MAX));
    return frame_end(b, start);
}

int mt_put_session_kill(mt_buf *b, uint32_t tag)
{
    return mt_frame_put(b, MT_FRAME_SESSION_KILL, tag, NULL, 0);
}

int mt_put_hold(mt_buf *b, bool on)
{
    size_t start = frame_begin(b, MT_FRAME_HOLD, 0);

    mt_wire_put_bool(b, on);
    return frame_end(b, start);
}

int mt_put_ask_usage(mt_buf *b)
{
    return mt_frame_put(b, MT_FRAME_USAGE, 0, NULL, 0);
}

int mt_put_usage(mt_buf *b, const mt_usage *usage)
{
    size_t start = frame_begin(b, MT_FRAME_USAGE, 0);

    mt_wire_put_u64(b, usage->file_bytes);
    mt_wire_put_u64(b, usage->dirty_bytes);
    return frame_end(b, start);
}

int mt_put_disk_full(mt_buf *b, const char *sentence)
{
    size_t start = frame_begin(b, MT_FRAME_DISK_FULL, 0);

    mt_wire_put_bytes(b, sentence, MT_MIN(strlen(sentence), (size_t)DISK_FULL_MAX));
    return frame_end(b, start);
}

static mt_wire_reader payload(const mt_frame *f)
{
    return mt_wire_reader_of(f->payload, f->payload_len);
}

static int verdict(const mt_wire_reader *r)
{
    return mt_wire_end(r) ? 0 : -EBADMSG;
}

static void get_images(mt_wire_reader *r, mt_info *info, mt_arena *arena)
{
    uint32_t count = mt_wire_get_count(r, MT_INFO_IMAGES_MAX, 28);
    mt_info_image *images = mt_arena_array_of(arena, mt_info_image, count + 1);

    if (!images) {
        mt_wire_fail(r);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        images[i].name = mt_wire_get_bytes(r, 256);
        images[i].digest = mt_wire_get_bytes(r, 256);
        images[i].json = mt_wire_get_bytes(r, MT_INFO_JSON_MAX);
        images[i].size_bytes = mt_wire_get_u64(r);
        images[i].made_us = mt_wire_get_i64(r);
    }
    info->images = images;
    info->image_count = count;
}

static void get_notices(mt_wire_reader *r, mt_info *info, mt_arena *arena)
{
    uint32_t count = mt_wire_get_count(r, MT_INFO_NOTICES_MAX, 4);
    mt_str *notices = mt_arena_array_of(arena, mt_str, count + 1);

    if (!notices) {
        mt_wire_fail(r);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        notices[i] = mt_wire_get_bytes(r, 4096);
    info->notices = notices;
    info->notice_count = count;
}

int mt_get_info(const mt_frame *f, mt_info *ret, mt_arena *arena)
{
    mt_wire_reader r = payload(f);
    mt_info info = {0};

    info.version = mt_wire_get_bytes(&r, 256);
    info.boot_id = mt_wire_get_bytes(&r, 256);
    info.cgroup_mode = mt_wire_get_bytes(&r, 256);
    info.scratch_kind = mt_wire_get_bytes(&r, 256);
    info.scratch_bytes = mt_wire_get_u64(&r);
    info.scratch_free_bytes = mt_wire_get_u64(&r);
    info.memory_bytes = mt_wire_get_u64(&r);
    info.memory_cap_bytes = mt_wire_get_u64(&r);
    info.cpus = mt_wire_get_u32(&r);
    info.live_runs = mt_wire_get_u32(&r);
    get_notices(&r, &info, arena);
    get_images(&r, &info, arena);
    if (verdict(&r) < 0)
        return -EBADMSG;
    *ret = info;
    return 0;
}

static void take_id(mt_wire_reader *r, char ret[37])
{
    mt_str s = mt_wire_get_bytes(r, MT_ID_LEN);

    if (!mt_is_id(s)) {
        mt_wire_fail(r);
        return;
    }
    memcpy(ret, s.data, MT_ID_LEN);
    ret[MT_ID_LEN] = '\0';
}

int mt_get_run_id(const mt_frame *f, char ret[37])
{
    mt_wire_reader r = payload(f);

    take_id(&r, ret);
    return verdict(&r);
}

int mt_get_failed(const mt_frame *f, mt_code *ret_code, mt_str *ret_sentence)
{
    mt_wire_reader r = payload(f);
    mt_str name = mt_wire_get_bytes(&r, 63);
    mt_str sentence = mt_wire_get_bytes(&r, SENTENCE_MAX);
    char code[64];

    if (verdict(&r) < 0)
        return -EBADMSG;
    memcpy(code, name.data, name.len);
    code[name.len] = '\0';
    *ret_code = mt_code_by_name(code);
    if (*ret_code == MT_E_NONE)
        *ret_code = MT_E_INTERNAL;
    *ret_sentence = sentence;
    return 0;
}

int mt_get_sweep(const mt_frame *f, char ret_run_id[37], mt_forget *ret_forget)
{
    mt_wire_reader r = payload(f);
    uint8_t forget;

    take_id(&r, ret_run_id);
    forget = mt_wire_get_u8(&r);
    if (verdict(&r) < 0 || forget > MT_FORGET_OUTPUTS)
        return -EBADMSG;
    *ret_forget = (mt_forget)forget;
    return 0;
}

int mt_get_pruned(const mt_frame *f, uint32_t *ret_layers, uint64_t *ret_bytes)
{
    mt_wire_reader r = payload(f);

    *ret_layers = mt_wire_get_u32(&r);
    *ret_bytes = mt_wire_get_u64(&r);
    return verdict(&r);
}

int mt_get_attach(const mt_frame *f, uint64_t *ret_after_seq)
{
    mt_wire_reader r = payload(f);

    *ret_after_seq = mt_wire_get_u64(&r);
    return verdict(&r);
}

int mt_get_synced(const mt_frame *f, uint64_t *ret_seq)
{
    return mt_get_attach(f, ret_seq);
}

int mt_get_terminate(const mt_frame *f, mt_str *ret_by)
{
    mt_wire_reader r = payload(f);

    *ret_by = mt_wire_get_bytes(&r, BY_MAX);
    return verdict(&r);
}

int mt_get_cancel(const mt_frame *f, char ret_command_id[37], mt_str *ret_by)
{
    mt_wire_reader r = payload(f);

    take_id(&r, ret_command_id);
    *ret_by = mt_wire_get_bytes(&r, BY_MAX);
    return verdict(&r);
}

int mt_get_extend(const mt_frame *f, int64_t *ret_max_duration_ms, int64_t *ret_deadline_ns)
{
    mt_wire_reader r = payload(f);

    *ret_max_duration_ms = mt_wire_get_i64(&r);
    *ret_deadline_ns = mt_wire_get_i64(&r);
    return verdict(&r);
}

int mt_get_api(const mt_frame *f, uint32_t *ret_uid_base)
{
    mt_wire_reader r = payload(f);

    *ret_uid_base = mt_wire_get_u32(&r);
    return verdict(&r);
}

static bool get_text(mt_wire_reader *r, size_t size, char *ret)
{
    mt_str s = mt_wire_get_bytes(r, size - 1);

    if (s.len)
        memcpy(ret, s.data, s.len);
    ret[s.len] = '\0';
    return strlen(ret) == s.len;
}

int mt_get_session(const mt_frame *f, char ret_user[33], char ret_term[65])
{
    mt_wire_reader r = payload(f);
    bool fine = get_text(&r, 33, ret_user);

    fine = get_text(&r, 65, ret_term) && fine;
    return fine ? verdict(&r) : -EBADMSG;
}

int mt_get_session_ended(const mt_frame *f, bool *ret_run_ended, int *ret_status,
                         mt_str *ret_sentence)
{
    mt_wire_reader r = payload(f);

    *ret_run_ended = mt_wire_get_bool(&r);
    *ret_status = (int)mt_wire_get_u32(&r);
    *ret_sentence = mt_wire_get_bytes(&r, SENTENCE_MAX);
    return verdict(&r);
}

int mt_get_hold(const mt_frame *f, bool *ret_on)
{
    mt_wire_reader r = payload(f);

    *ret_on = mt_wire_get_bool(&r);
    return verdict(&r);
}

int mt_get_usage(const mt_frame *f, mt_usage *ret)
{
    mt_wire_reader r = payload(f);

    ret->file_bytes = mt_wire_get_u64(&r);
    ret->dirty_bytes = mt_wire_get_u64(&r);
    return verdict(&r);
}

int mt_get_disk_full(const mt_frame *f, mt_str *ret_sentence)
{
    mt_wire_reader r = payload(f);

    *ret_sentence = mt_wire_get_bytes(&r, DISK_FULL_MAX);
    return verdict(&r);
}
