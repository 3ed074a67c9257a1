// SPDX-License-Identifier: Apache-2.0
// What the server and mt-session say to each other. mt-session is a program of ours that runs in a
// capsule as one of its users, with one end of a socket pair as standard input and output; the
// server has the other. It does one thing, reads or changes files or holds a terminal, and leaves.
// Frames both ways:
//
//   u32 length of the payload | u8 type | payload (the form of capsule/wire.h)
//
//   server -> mt-session             mt-session -> server
//   REQUEST read                     ENTRY, then waits
//   GO offset, length                DATA…  END
//   REQUEST write                    GO: the content may come
//   DATA…  END                       ENTRY  END (1: it replaced one)
//   REQUEST stat, link, move         ENTRY  END
//   REQUEST mkdir                    ENTRY  END (1: it was there)
//   REQUEST list                     ENTRY…  NEXT  END
//   REQUEST delete                   END
//   REQUEST shell, then DATA, SIZE   DATA…  (its end: the process's)
//   anything                         FAILED instead of END
//
// The server's end of the socket is the end of mt-session: what it was writing is gone. To the
// server all of this is what a capsule says: it may be anything, in any order, for ever.
#pragma once

#include "capsule/wire.h"

#include <sys/types.h>

enum {
    MT_SESSION_HEADER = 5,
    MT_SESSION_DATA_MAX = 64 << 10,
    MT_SESSION_FRAME_MAX = MT_SESSION_HEADER + MT_SESSION_DATA_MAX,
    MT_SESSION_PATH_MAX = 4095,
    MT_SESSION_CURSOR_MAX = 3 * MT_SESSION_PATH_MAX, // each byte may be escaped
    MT_SESSION_LIST_MAX = 1000,
    MT_SESSION_TERM_MAX = 64,
    MT_SESSION_SIDE_MAX = 4096, // columns, rows
};

typedef enum mt_session_type {
    MT_SESSION_REQUEST = 1,
    MT_SESSION_GO,
    MT_SESSION_SIZE,
    MT_SESSION_DATA, // payload: the bytes
    MT_SESSION_END,
    MT_SESSION_FAILED,
    MT_SESSION_ENTRY,
    MT_SESSION_NEXT,
} mt_session_type;

typedef enum mt_session_op {
    MT_SESSION_READ,
    MT_SESSION_WRITE,
    MT_SESSION_STAT,
    MT_SESSION_LIST,
    MT_SESSION_MKDIR,
    MT_SESSION_DELETE,
    MT_SESSION_MOVE,
    MT_SESSION_LINK,
    MT_SESSION_SHELL,
    MT_SESSION_OPS,
} mt_session_op;

typedef struct mt_session_request {
    mt_session_op op;
    bool flag;              // list, delete: recursive; mkdir: parents; move: replace
    uint16_t limit;         // list: entries of a page
    uint16_t columns, rows; // shell
    mt_str path;            // relative ones begin at the user's home
    mt_str second;          // move: the new path; link: its text; list: cursor
} mt_session_request;

// As vfs/vfs.h has them, in its order.
enum { MT_SESSION_FILE_TYPES = 6 };

typedef struct mt_session_entry {
    mt_str path;   // absolute
    mt_str target; // of a link
    bool is_link;
    uint8_t type;
    uint32_t mode; // 07777
    uint64_t size;
    uint64_t inode;
    int64_t modified_ns, changed_ns;
} mt_session_entry;

// Why something could not be done: the server makes the sentence.
typedef enum mt_session_why {
    MT_SESSION_ERRNO,
    MT_SESSION_NOT_REGULAR, // detail: its type
    MT_SESSION_IS_FOLDER,
    MT_SESSION_NOT_FOLDER,
    MT_SESSION_TAKEN,
    MT_SESSION_NOT_EMPTY,
    MT_SESSION_INTO_ITSELF,
    MT_SESSION_MOUNTED,
    MT_SESSION_BAD_CURSOR,
    MT_SESSION_BUSY, // others kept changing what was being removed
    MT_SESSION_WHYS,
} mt_session_why;

typedef struct mt_session_failure {
    mt_session_why why;
    int32_t detail; // ERRNO: errno
    bool second;    // it is about the second path
} mt_session_failure;

typedef struct mt_session_frame {
    mt_session_type type;
    const uint8_t *payload; // points into the bytes that were parsed
    size_t len;
} mt_session_frame;

// The whole frame at the start of data: its bytes (> 0), 0 when more are needed, -EMSGSIZE,
// -EBADMSG.
ssize_t mt_session_parse(const void *data, size_t len, mt_session_frame *ret);

// Each appends one frame: 0 or the negative errno of b->failed.
int mt_session_put_request(mt_buf *b, const mt_session_request *r);
int mt_session_put_go(mt_buf *b, uint64_t offset, uint64_t length);
int mt_session_put_size(mt_buf *b, uint16_t columns, uint16_t rows);
int mt_session_put_data(mt_buf *b, const void *data, size_t len); // at most MT_SESSION_DATA_MAX
int mt_session_put_end(mt_buf *b, bool flag);
int mt_session_put_failed(mt_buf *b, const mt_session_failure *f);
int mt_session_put_entry(mt_buf *b, const mt_session_entry *e);
int mt_session_put_next(mt_buf *b, mt_str cursor, uint64_t left_out);

// Each reads the payload of its frame: 0, or -EBADMSG. What is returned is in range: types, modes,
// lengths, no NUL in a path; slices point into the payload.
int mt_session_get_request(const mt_session_frame *f, mt_session_request *ret);
int mt_session_get_go(const mt_session_frame *f, uint64_t *ret_offset, uint64_t *ret_length);
int mt_session_get_size(const mt_session_frame *f, uint16_t *ret_columns, uint16_t *ret_rows);
int mt_session_get_end(const mt_session_frame *f, bool *ret_flag);
int mt_session_get_failed(const mt_session_frame *f, mt_session_failure *ret);
int mt_session_get_entry(const mt_session_frame *f, mt_session_entry *ret);
int mt_session_get_next(const mt_session_frame *f, mt_str *ret_cursor, uint64_t *ret_left_out);

// A name of a terminal that a shell may be told: letters, digits and "+-._".
bool mt_session_is_term(mt_str term);
