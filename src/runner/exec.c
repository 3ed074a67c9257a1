// SPDX-License-Identifier: Apache-2.0
// Asking mt-init for a process: the user is looked up in the capsule's own files, line and
// environment are laid out, and all of it goes over the control socket.
#include "base/fd.h"
#include "capsule/syscalls.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

// A file of the capsule, which is hostile: no link, no other mount, no device, FIFO or endless
// file.
static int read_inside(const supervisor *s, const char *path, mt_buf *to)
{
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    _cleanup_close_ int fd = mt_sys_openat2(s->machine.root_fd, path, &how);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? mt_read_all(fd, to) : -EINVAL;
}

void sup_exec_paths(supervisor *s)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_EXEC_FILE_MAX);
    mt_str defs;

    (void)read_inside(s, "etc/login.defs", &text);
    defs = (mt_str){mt_buf_str(&text), text.len};
    mt_exec_login_path(defs, false, s->path);
    mt_exec_login_path(defs, true, s->root_path);
}

static int find_user(const supervisor *s, const char *name, mt_exec_user *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf passwd = MT_BUF_INIT(MT_EXEC_FILE_MAX),
                         group = MT_BUF_INIT(MT_EXEC_FILE_MAX);
    int r = read_inside(s, "etc/passwd", &passwd);

    if (r < 0)
        return mt_fail_errno(err, r, "cannot read /etc/passwd of the capsule");
    // Without it there are no further groups, as for su.
    (void)read_inside(s, "etc/group", &group);
    return mt_exec_find_user((mt_str){mt_buf_str(&passwd), passwd.len},
                             (mt_str){mt_buf_str(&group), group.len}, name, ret, err);
}

// Read-only for ever: mt-init maps it, and nothing it reads there can change.
static int sealed_memfd(const char *name, const mt_buf *data)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (mt_write_full(fd, mt_buf_str(data), data->len) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        (void)close(fd);
        return -EIO;
    }
    return fd;
}

// block, streams, text, then the groups: their order is initwire.h's.
static int send_block(supervisor *s, const sup_exec *what, mt_init_request *req,
                      const mt_exec_block *block, mt_err **err)
{
    int groups[MT_CGROUP_JOIN_MAX], fds[MT_INIT_FDS_MAX], r;
    int joins = mt_cgroup_join_fds(s->res->cgroup, what->group, groups, err);
    bool is_here = block->strings.len <= sizeof(req->block);
    _cleanup_close_ int strings = -1, text = -1;
    const int streams[] = {what->in_fd, what->out_fd, what->err_fd};
    size_t count = 0;

    if (joins < 0)
        return -1;
    if (is_here)
        memcpy(req->block, block->strings.data, block->strings.len);
    else
        strings = sealed_memfd("exec", &block->strings);
    if (block->text.len)
        text = sealed_memfd("text", &block->text);
    req->flags = block->text.len ? MT_INIT_HAS_TEXT : 0;
    if (is_here)
        req->flags |= MT_INIT_BLOCK_HERE;
    else
        fds[count++] = strings;
    for (uint32_t i = 0; i < MT_ARRAY_SIZE(streams); i++) {
        if (streams[i] < 0)
            continue;
        req->flags |= (uint32_t)MT_INIT_HAS_STDIN << i;
        fds[count++] = streams[i];
    }
    if (block->text.len)
        fds[count++] = text;
    if (what->program_fd > 0) {
        req->flags |= MT_INIT_HAS_PROGRAM;
        fds[count++] = what->program_fd;
    }
    for (int i = 0; i < joins; i++)
        fds[count++] = groups[i];
    req->cgroup_count = (uint32_t)joins;
    if ((!is_here && strings < 0) || (block->text.len && text < 0))
        r = -ENOMEM;
    else
        r = sup_ask(s, what->group, req, fds, count);
    for (int i = 0; i < joins; i++)
        mt_close_fd(&groups[i]);
    return r < 0 ? mt_fail_errno(err, r, "cannot reach the capsule's first process") : 0;
}

// The plan's environment, then the command's own. NULL when out of memory.
static mt_exec_setting *join_environment(const supervisor *s, const sup_exec *what)
{
    size_t common = s->plan->environment_count;
    mt_exec_setting *all = calloc(common + what->environment_count + 1, sizeof(*all));

    for (size_t i = 0; all && i < common; i++)
        all[i] = (mt_exec_setting){s->plan->environment[i].key, s->plan->environment[i].value};
    for (size_t i = 0; all && i < what->environment_count; i++)
        all[common + i] = (mt_exec_setting){what->environment[i].key, what->environment[i].value};
    return all;
}

int sup_exec_send(supervisor *s, const sup_exec *what, mt_err **err)
{
    _cleanup_exec_block_ mt_exec_block block = MT_EXEC_BLOCK_INIT;
    _cleanup_free_ mt_exec_setting *environment = join_environment(s, what);
    mt_exec_user user = {0};
    bool is_default = mt_streq(what->user, "maitento");
    mt_exec_spec spec = {
        .program = what->program_fd > 0 ? "mt-session" : NULL,
        .command = mt_str_of(what->command),
        .arguments = what->arguments,
        .argument_count = what->argument_count,
        .user = &user,
        .working_directory = what->working_directory,
        .namespace_name = is_default ? s->plan->namespace_name : NULL,
        .environment = environment,
        .environment_count = s->plan->environment_count + what->environment_count,
    };
    mt_init_request req = {.type = MT_INIT_EXEC, .token = what->token};

    if (!environment)
        return mt_fail_oom(err);
    if (find_user(s, what->user, &user, err) < 0)
        return -1;
    spec.path = user.uid == 0 ? s->root_path : s->path;
    if (mt_exec_build(&spec, &block, err) < 0)
        return -1;
    req.block_bytes = block.strings.len;
    req.argc = block.argc;
    req.envc = block.envc;
    req.uid = user.uid;
    req.gid = user.gid;
    req.group_count = user.group_count;
    memcpy(req.groups, user.groups, sizeof(uint32_t) * user.group_count);
    if (send_block(s, what, &req, &block, err) < 0)
        return -1;
    sup_views_touch(s);
    return 0;
}

void sup_exec_failure(const supervisor *s, const char *user, const char *folder,
                      const mt_init_reply *r, mt_buf *to)
{
    const char *why = strerror(r->error > 0 && r->error < 4096 ? r->error : EIO);

    switch (r->stage) {
    case MT_INIT_STAGE_CLONE:
        if (r->error == EAGAIN)
            (void)mt_buf_addf(to, "cannot make a process: %s (the run may have %u)", why,
                              s->plan->limits.pids);
        else
            (void)mt_buf_addf(to, "cannot make a process: %s", why);
        break;
    case MT_INIT_STAGE_CGROUP:
        (void)mt_buf_addf(to, "cannot enter the command's control group: %s", why);
        break;
    case MT_INIT_STAGE_IDS:
        (void)mt_buf_addf(to, "cannot become user %s: %s", user, why);
        break;
    case MT_INIT_STAGE_CHDIR:
        if (folder)
            (void)mt_buf_addf(to, "cannot enter the working directory %s: %s", folder, why);
        else
            (void)mt_buf_addf(to, "cannot enter the home folder of user %s: %s", user, why);
        break;
    case MT_INIT_STAGE_EXEC:
        if (r->error == E2BIG)
            (void)mt_buf_adds(to, "arguments and environment are too long for the kernel (2 MiB "
                                  "together): put the data in a file");
        else
            (void)mt_buf_addf(to, "cannot execute /bin/bash: %s", why);
        break;
    default:
        (void)mt_buf_addf(to, "cannot start it (step %u): %s", r->stage, why);
    }
}
