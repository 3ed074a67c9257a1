// SPDX-License-Identifier: Apache-2.0
// What is asked for, and the ends of the conversation.
#include "session/program.h"

#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static mt_buf heard = MT_BUF_INIT(2 * MT_SESSION_FRAME_MAX);
static size_t heard_used; // of the frame that was handed out last

void say(mt_buf *b)
{
    if (b->failed || mt_write_full(PEER_FD, b->data, b->len) < 0)
        _exit(1);
    mt_buf_clear(b);
}

bool hear(mt_session_frame *ret)
{
    mt_buf_consume(&heard, heard_used);
    heard_used = 0;
    for (;;) {
        ssize_t n = mt_session_parse(mt_buf_str(&heard), heard.len, ret);
        void *room;

        if (n > 0)
            heard_used = (size_t)n;
        if (n != 0)
            return n > 0;
        room = mt_buf_reserve(&heard, MT_SESSION_FRAME_MAX);
        if (!room)
            return false;
        do
            n = read(PEER_FD, room, MT_SESSION_FRAME_MAX);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            return false;
        mt_buf_added(&heard, (size_t)n);
    }
}

MT_NORETURN static void say_failed(const mt_session_failure *f)
{
    mt_buf b = MT_BUF_INIT(64);

    (void)mt_session_put_failed(&b, f);
    say(&b);
    _exit(0);
}

void fail(mt_session_why why, int detail)
{
    say_failed(&(mt_session_failure){.why = why, .detail = detail});
}

void fail_second(mt_session_why why, int detail)
{
    say_failed(&(mt_session_failure){.why = why, .detail = detail, .second = true});
}

void fail_errno(int e)
{
    switch (e) {
    case EISDIR:
        fail(MT_SESSION_IS_FOLDER, 0);
    case ENOTDIR:
        fail(MT_SESSION_NOT_FOLDER, 0);
    case ENOTEMPTY:
        fail(MT_SESSION_NOT_EMPTY, 0);
    case EEXIST:
        fail(MT_SESSION_TAKEN, 0);
    case EBUSY:
        fail(MT_SESSION_MOUNTED, 0);
    default:
        fail(MT_SESSION_ERRNO, e);
    }
}

// As a text of its own, whole from "/". Ends the program where it gets too long.
static char *whole_path(mt_str s)
{
    char home[4096] = "";
    char *path;
    size_t len = 0;

    if ((s.len == 0 || s.data[0] != '/') && !getcwd(home, sizeof(home)))
        fail_errno(errno);
    path = mt_asprintf("%s%s%.*s", home, home[0] ? "/" : "", (int)s.len, s.data ? s.data : "");
    if (!path)
        fail_errno(ENOMEM);
    // Without double slashes, single dots and slashes at the end, but for that of "/".
    for (const char *p = path; *p;) {
        size_t n;

        while (*p == '/')
            p++;
        n = strcspn(p, "/");
        if (n == 0 || (n == 1 && *p == '.')) {
            p += n;
            continue;
        }
        path[len++] = '/';
        memmove(path + len, p, n);
        len += n;
        p += n;
    }
    if (len == 0)
        path[len++] = '/';
    path[len] = '\0';
    if (len > MT_SESSION_PATH_MAX)
        fail_errno(ENAMETOOLONG);
    return path;
}

MT_NORETURN static void perform(const mt_session_request *r)
{
    char *path = r->op == MT_SESSION_SHELL ? NULL : whole_path(r->path);
    char *second = r->op == MT_SESSION_MOVE   ? whole_path(r->second)
                   : r->op == MT_SESSION_LINK ? mt_str_dup(r->second)
                                              : NULL;

    switch (r->op) {
    case MT_SESSION_READ:
        read_file(path);
    case MT_SESSION_WRITE:
        write_file(path);
    case MT_SESSION_STAT:
        stat_path(path);
    case MT_SESSION_LIST:
        list_folder(path, r);
    case MT_SESSION_MKDIR:
        make_folder(path, r->flag);
    case MT_SESSION_DELETE:
        delete_path(path, r->flag);
    case MT_SESSION_MOVE:
        move_path(path, second, r->flag);
    case MT_SESSION_LINK:
        make_link(path, second ? second : "");
    case MT_SESSION_SHELL:
        hold_shell(r);
    case MT_SESSION_OPS:
        break;
    }
    _exit(1);
}

int main(void)
{
    mt_session_frame frame;
    mt_session_request request;

    // Executed by descriptor, it would be called by that number.
    (void)prctl(PR_SET_NAME, "mt-session");
    (void)signal(SIGPIPE, SIG_IGN);
    if (!hear(&frame) || frame.type != MT_SESSION_REQUEST ||
        mt_session_get_request(&frame, &request) < 0)
        return 1;
    perform(&request);
}
