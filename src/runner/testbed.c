// SPDX-License-Identifier: Apache-2.0
#include "runner/testbed.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "capsule/idmap.h"
#include "capsule/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#define IMAGES "/var/cache/maitento/images"
enum { BLOCK = BED_BLOCK, UID_BASE = BED_UID_BASE };

struct bed {
    char root[64];
    char digest[MT_DIGEST_LEN + 1];
    char vfs_path[256];
    char layer_path[128];
    int layer_fd;
    mt_cgroups *cgroups;
    mt_seccomp seccomp;
    int image_fd, init_fd, dev_fd;
    int image_userns, vfs_userns;
};

static int read_digest(bed *b)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(256);

    if (mt_read_file(AT_FDCWD, IMAGES "/names/slim", &text) < 0 || text.len < MT_DIGEST_LEN)
        return -1;
    memcpy(b->digest, text.data, MT_DIGEST_LEN);
    return 0;
}

static int make_dev(bed *b)
{
    static const struct {
        const char *name;
        int minor, major;
    } nodes[] = {{"null", 3, 1},   {"zero", 5, 1},    {"full", 7, 1},
                 {"random", 8, 1}, {"urandom", 9, 1}, {"tty", 0, 5}};
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"fd/0", "stdin"},
                                           {"fd/1", "stdout"},
                                           {"fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    static const char *const folders[] = {"pts", "shm", "mqueue"};
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/dev", b->root);
    if (mkdir(path, 0755) < 0 || mount("tmpfs", path, "tmpfs", MS_NOSUID, "mode=0755,size=64k") < 0)
        return -1;
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < MT_ARRAY_SIZE(nodes); i++) {
        if (mknodat(fd, nodes[i].name, S_IFCHR | 0666,
                    makedev((unsigned)nodes[i].major, (unsigned)nodes[i].minor)) < 0 ||
            fchmodat(fd, nodes[i].name, 0666, 0) < 0)
            return -1;
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(links); i++)
        (void)!symlinkat(links[i][0], fd, links[i][1]);
    for (size_t i = 0; i < MT_ARRAY_SIZE(folders); i++)
        (void)mkdirat(fd, folders[i], 0755);
    (void)mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL);
    b->dev_fd = fd;
    return 0;
}

static int load_init(bed *b, const char *path)
{
    _cleanup_buf_ mt_buf program = MT_BUF_INIT(1 << 20);

    b->init_fd = memfd_create("mt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->init_fd < 0 || mt_read_file(AT_FDCWD, path, &program) < 0 ||
        mt_write_full(b->init_fd, mt_buf_str(&program), program.len) < 0)
        return -1;
    (void)fchmod(b->init_fd, 0555);
    return fcntl(b->init_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int make_folders(bed *b)
{
    char path[128];

    (void)snprintf(b->root, sizeof(b->root), "%.40s/mt-bed-XXXXXX",
                   getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(b->root))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", b->root,
                       (const char *const[]){"vfs", "runs", "scratch"}[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    (void)snprintf(path, sizeof(path), IMAGES "/%s/root", b->digest);
    b->image_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return b->image_fd < 0 ? -1 : 0;
}

bed *bed_new(const char *init_path, const char **ret_why)
{
    static char why[512];
    bed *b = calloc(1, sizeof(*b));
    mt_err *err = NULL;
    char name[32];
    mt_cgroups_options options = {.instance = name};

    *ret_why = why;
    if (!b)
        return NULL;
    b->layer_fd = -1;
    if (mt_streq(getenv("MT_TEST_CGROUP"), "v1"))
        options.mode = MT_CGROUP_V1;
    (void)snprintf(name, sizeof(name), "test-%d", (int)getpid());
    (void)strcpy(why, "needs root");
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return NULL;
    (void)strcpy(why, "needs the image slim: mt-image build slim");
    if (read_digest(b) < 0)
        return NULL;
    (void)strcpy(why, "cannot make its folders");
    if (make_folders(b) < 0 || make_dev(b) < 0 || load_init(b, init_path) < 0)
        return NULL;
    if (mt_cgroups_open(&options, &b->cgroups, &err) < 0 ||
        mt_seccomp_compile(&b->seccomp, &err) < 0 ||
        mt_idmap_image(UID_BASE, &b->image_userns, &err) < 0 ||
        mt_idmap_vfs(UID_BASE, BED_SERVICE_ID, BED_SERVICE_ID, &b->vfs_userns, &err) < 0) {
        (void)snprintf(why, sizeof(why), "%s", mt_err_sentence(err));
        return NULL;
    }
    return b;
}

// Only what this program has made, under its own folder of /tmp; nothing is mounted below but its
// own /dev, which is detached first.
static void remove_tree(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/bin/rm", "rm", "-rf", "--one-file-system", path, NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

void bed_free(bed *b)
{
    char path[128];

    mt_cgroups_remove_parent(b->cgroups);
    mt_cgroups_close(b->cgroups);
    mt_seccomp_done(&b->seccomp);
    (void)snprintf(path, sizeof(path), "%s/dev", b->root);
    (void)umount2(path, MNT_DETACH);
    remove_tree(b->root);
    mt_close_fd(&b->layer_fd);
    mt_close_fd(&b->dev_fd);
    mt_close_fd(&b->image_fd);
    mt_close_fd(&b->init_fd);
    mt_close_fd(&b->image_userns);
    mt_close_fd(&b->vfs_userns);
    free(b);
}

const char *bed_layer(bed *b, const char *name)
{
    mt_close_fd(&b->layer_fd);
    if (!name)
        return NULL;
    (void)snprintf(b->layer_path, sizeof(b->layer_path), "%s/%s", b->root, name);
    (void)mkdir(b->layer_path, 0755);
    b->layer_fd = open(b->layer_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return b->layer_path;
}

const char *bed_vfs_make(bed *b, const char *id)
{
    (void)snprintf(b->vfs_path, sizeof(b->vfs_path), "%s/vfs/%s", b->root, id);
    (void)mkdir(b->vfs_path, 0755);
    (void)snprintf(b->vfs_path, sizeof(b->vfs_path), "%s/vfs/%s/files", b->root, id);
    (void)mkdir(b->vfs_path, 0770);
    (void)chmod(b->vfs_path, 0770);
    (void)!chown(b->vfs_path, BED_SERVICE_ID, BED_SERVICE_ID);
    return b->vfs_path;
}

static int listen_at(const char *folder)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/sock", folder);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
        return -1;
    return fd;
}

int bed_connect(const bed_run *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/sock", r->folder);
    return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -1 : fd;
}

static int make_scratch(bed *b, const bed_run *r)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/scratch/%s", b->root, r->id);
    (void)mkdir(path, 0755);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        (void)mkdirat(fd, i ? "work" : "upper", 0755);
        (void)!fchownat(fd, i ? "work" : "upper", UID_BASE, UID_BASE, 0);
    }
    return fd;
}

static int open_vfs(bed *b, const char *id)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/vfs/%s/files", b->root, id);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int make_run(bed *b, mt_plan *plan, bool tmpfs, bed_run *r, mt_run_resources *res)
{
    mt_record boot = {.type = MT_REC_BOOT, .boot = {.id = MT_STR("test")}};
    mt_err *err = NULL;

    (void)snprintf(r->folder, sizeof(r->folder), "%s/runs/%s", b->root, r->id);
    if (mkdir(r->folder, 0750) < 0 || chown(r->folder, 0, BED_SERVICE_ID) < 0 ||
        chmod(r->folder, 02750) < 0 || mt_plan_validate(plan, &err) < 0)
        goto fail;
    r->run_dir = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *res = (mt_run_resources){.run_id = r->id,
                              .place = r->id,
                              .block = BLOCK,
                              .block_lock_fd = -1,
                              .disk_usage_fd = -1,
                              .uid_base = UID_BASE,
                              .image_userns_fd = b->image_userns,
                              .vfs_userns_fd = b->vfs_userns,
                              .service_uid = BED_SERVICE_ID,
                              .service_gid = BED_SERVICE_ID,
                              .run_dir_fd = r->run_dir,
                              .listen_fd = listen_at(r->folder),
                              .image_fd = b->image_fd,
                              .scratch_fd = tmpfs ? -1 : make_scratch(b, r),
                              .netns_fd = -1,
                              .layer_lock_fd = -1,
                              .layers_fd = -1,
                              .conf_fd = -1,
                              .net_life_fd = -1,
                              .seccomp = &b->seccomp,
                              .init_fd = b->init_fd,
                              .dev_fd = b->dev_fd,
                              .mt_fd = -1,
                              .sign_in = true};
    if (mt_journal_create(r->run_dir, "journal", 0640, (uid_t)-1, (gid_t)-1, &res->journal, &err) <
            0 ||
        mt_journal_append(res->journal, &boot, false, &err) < 0 ||
        mt_cgroup_make(b->cgroups, r->id, &plan->limits, &res->cgroup, &err) < 0)
        goto fail;
    r->cgroup = res->cgroup;
    r->journal = openat(r->run_dir, "journal", O_RDONLY | O_CLOEXEC);
    res->journal_read_fd = r->journal;
    for (uint32_t i = 0; i < plan->mount_count; i++)
        res->vfs_fds[i] = open_vfs(b, plan->mounts[i].vfs_id);
    if (b->layer_fd >= 0)
        res->layer_fds[res->layer_count++] = dup(b->layer_fd);
    return 0;
fail:
    printf("# %s\n", mt_err_sentence(err));
    (void)mt_err_free(err);
    return -1;
}

int bed_start(bed *b, mt_plan *plan, bool tmpfs, bed_run *r)
{
    mt_run_resources res;

    *r = (bed_run){.bed = b, .run_dir = -1, .journal = -1};
    mt_id_new(r->id);
    plan->run_id = r->id;
    plan->namespace_name = "tests";
    plan->capsule_name = "probe";
    plan->image_digest = b->digest;
    plan->hostname = "probe";
    plan->network = MT_NETWORK_NONE;
    plan->deadline_ns = mt_boottime_ns() + plan->max_duration_ms * 1000000;
    if (make_run(b, plan, tmpfs, r, &res) < 0)
        return -1;
    (void)fflush(stdout);
    r->pid = fork();
    if (r->pid == 0) {
        (void)setsid();
        (void)dup2(2, 1);
        mt_log_init("supervisor", MT_LOG_INFO);
        mt_supervisor_main(plan, &res);
    }
    mt_close_fd(&res.listen_fd);
    mt_close_fd(&res.scratch_fd);
    mt_journal_close(res.journal);
    if (res.layer_count)
        mt_close_fd(&res.layer_fds[0]);
    for (uint32_t i = 0; i < plan->mount_count; i++)
        mt_close_fd(&res.vfs_fds[i]);
    return r->pid < 0 ? -1 : 0;
}

bool bed_wait_record(const bed_run *r, mt_record_type type, int timeout_ms)
{
    int64_t until = mt_monotonic_us() + (int64_t)timeout_ms * 1000;
    _cleanup_(mt_journal_reader_free_p) mt_journal_reader *reader = NULL;
    uint64_t after = 0;
    mt_record rec;

    if (mt_journal_reader_new(r->journal, &reader, NULL) < 0)
        return false;
    while (mt_monotonic_us() < until) {
        while (mt_journal_next(reader, after, &rec, NULL, NULL) == 1) {
            after = rec.seq;
            if (rec.type == type)
                return true;
        }
        (void)poll(NULL, 0, 2);
    }
    return false;
}

static void copy_str(char *to, size_t size, mt_str s)
{
    (void)snprintf(to, size, "%.*s", (int)s.len, s.len ? s.data : "");
}

static void take_record(const mt_record *rec, bed_result *ret)
{
    uint32_t n = ret->startup_ended;

    switch (rec->type) {
    case MT_REC_READY:
        ret->ready++;
        break;
    case MT_REC_STARTUP_STARTED:
        ret->started++;
        break;
    case MT_REC_STARTUP_ENDED:
        if (n < MT_ARRAY_SIZE(ret->startup_code)) {
            ret->startup_reason[n] = rec->startup_ended.reason;
            ret->startup_code[n] = rec->startup_ended.exit_code;
        }
        ret->startup_ended++;
        break;
    case MT_REC_NOTE:
        ret->notes++;
        copy_str(ret->note, sizeof(ret->note), rec->note.text);
        break;
    case MT_REC_PHASE:
        ret->phases++;
        (void)snprintf(ret->phase_names + strlen(ret->phase_names),
                       sizeof(ret->phase_names) - strlen(ret->phase_names), "%.*s=%" PRIu64 " ",
                       (int)rec->phase.name.len, rec->phase.name.data, rec->phase.us);
        break;
    case MT_REC_ENDING:
        ret->ending++;
        break;
    case MT_REC_ENDED:
        ret->ended = true;
        ret->end = rec->ended;
        copy_str(ret->details, sizeof(ret->details), rec->ended.failure_details);
        copy_str(ret->by, sizeof(ret->by), rec->ended.terminated_by);
        break;
    default:
        break;
    }
}

static int wait_supervisor(pid_t pid, int timeout_ms)
{
    _cleanup_close_ int fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int status;

    if (poll(&p, 1, timeout_ms) != 1) {
        printf("# the supervisor did not end in %d ms\n", timeout_ms);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        return -1;
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void bed_finish(bed_run *r, int timeout_ms, bed_result *ret)
{
    mt_journal_reader *reader = NULL;
    uint64_t after = 0;
    mt_record rec;
    char path[256];

    *ret = (bed_result){.exit_code = wait_supervisor(r->pid, timeout_ms)};
    if (mt_journal_reader_new(r->journal, &reader, NULL) == 0) {
        while (mt_journal_next(reader, after, &rec, NULL, NULL) == 1) {
            after = rec.seq;
            take_record(&rec, ret);
        }
    }
    mt_journal_reader_free(reader);
    ret->swept = mt_cgroup_populated(r->cgroup, MT_CGROUP_ALL) == 0;
    mt_cgroup_close(r->cgroup);
    (void)mt_cgroups_sweep(r->bed->cgroups, r->id, mt_boottime_ns() + 5000000000ll);
    mt_close_fd(&r->journal);
    mt_close_fd(&r->run_dir);
    (void)snprintf(path, sizeof(path), "%s/scratch/%s", r->bed->root, r->id);
    remove_tree(path);
}
