// SPDX-License-Identifier: Apache-2.0
// Runs of every kind, on the real kernel: what startup commands see, and how runs end.
#include "base/clock.h"
#include "base/fd.h"
#include "base/tap.h"
#include "runner/machine-internal.h"
#include "runner/testruns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

static void run_plan(mt_plan *plan, bed_result *ret)
{
    bed_run r;

    if (!CHECK(bed_start(the_bed, plan, false, &r) == 0))
        exit(1);
    bed_finish(&r, 30000, ret);
    CHECK_INT(ret->exit_code, 0);
    CHECK(ret->ended && ret->swept);
}

static void run_one(mt_plan_command c, bed_result *ret)
{
    mt_plan plan = plan_of(&c, 1, true);

    run_plan(&plan, ret);
}

static const char *shell(const char *user, const char *command)
{
    bed_result r;
    mt_plan_command c = {.command = command, .user = user, .wait = true};

    run_one(c, &r);
    if (!CHECK(r.end.status == MT_RUN_FINISHED))
        say(r.details);
    return output_of("out");
}

static void test_finished(void)
{
    bed_result r;
    mt_plan plan = plan_of(NULL, 0, true);

    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.end.reason, MT_END_EXITED);
    CHECK_STR(r.details, "");
    CHECK_INT(r.ready, 0);
    CHECK(r.phases > 8);
    run_one(CMD("true"), &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.started, 1);
    CHECK_INT(r.startup_ended, 1);
    CHECK_INT(r.startup_code[0], 0);
    say(r.phase_names);
}

static void test_identity(void)
{
    CHECK_STR(shell("maitento", "exec > /mnt/data/out; echo $HOME $USER $LOGNAME $SHELL; pwd; id"),
              "/home/maitento maitento maitento /bin/bash\n/home/maitento\n"
              "uid=1000(maitento) gid=1000(maitento) groups=1000(maitento)\n");
    CHECK_STR(shell("maitento", "env | grep -v '^_=\\|^PWD=\\|^SHLVL=' | sort > /mnt/data/out"),
              "HOME=/home/maitento\nLANG=C.UTF-8\nLOGNAME=maitento\nMAITENTO_NAMESPACE=tests\n"
              "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games\nSHELL=/bin/bash\n"
              "USER=maitento\n");
    CHECK_STR(shell("root", "(id -u; hostname; stat -c '%U %G %a' /mnt/data /tmp) > /mnt/data/out"),
              "0\nprobe\nmaitento maitento 770\nroot root 1777\n");
}

static void test_other_user(void)
{
    static const mt_plan_command list[] = {
        {.command = "mkdir -m 777 /mnt/data/../../tmp/x && touch /mnt/data/secret",
         .user = "maitento",
         .wait = true},
        {.command = "(echo $HOME $USER; pwd; id; touch t && ls t; cat /mnt/data/secret; "
                    "env | grep -c MAITENTO; ls -A ~) > /tmp/x/o 2>&1; true",
         .user = "sandbox",
         .wait = true},
        {.command = "cat /tmp/x/o > /mnt/data/out", .user = "maitento", .wait = true},
    };
    mt_plan plan = plan_of(list, 3, true);
    bed_result r;

    run_plan(&plan, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(output_of("out"), "/home/sandbox sandbox\n/home/sandbox\n"
                                "uid=1001(sandbox) gid=1001(sandbox) groups=1001(sandbox)\nt\n"
                                "cat: /mnt/data/secret: Permission denied\n0\n"
                                ".bashrc\n.profile\nt\n");
    (void)output_of("secret");
}

static void test_arguments(void)
{
    static const char *const args[] = {"[%s]\\n", "a b", "$HOME", "$(id)", "x'y", "\"", "",
                                       "l1\nl2",  "*",   "\\",    ";",     "~",   "!x", "é"};
    mt_plan_command c = {.command = "printf > /mnt/data/out ",
                         .arguments = args,
                         .argument_count = MT_ARRAY_SIZE(args),
                         .user = "maitento",
                         .wait = true};
    bed_result r;

    run_one(c, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(
        output_of("out"),
        "[a b]\n[$HOME]\n[$(id)]\n[x'y]\n[\"]\n[]\n[l1\nl2]\n[*]\n[\\]\n[;]\n[~]\n[!x]\n[é]\n");
}

static void test_long_text(void)
{
    _cleanup_free_ char *text = malloc(3000001);
    static const char *const args[] = {"one two"};
    const char *end = "; echo $0 $# \"$1\" ${#x} ${MT_TEXT-none} > /mnt/data/out; ls /proc/self/fd "
                      "| wc -l >> /mnt/data/out";
    mt_plan_command c = {.command = text, .user = "maitento", .wait = true};
    bed_result r;

    memset(text, 'a', 3000000);
    memcpy(text, "x='", 3);
    memcpy(text + 2900000, "'", 1);
    (void)strcpy(text + 2900001, end);
    run_one(c, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(output_of("out"), "-bash 0  2899997 none\n4\n");
    c.arguments = args;
    c.argument_count = 1;
    (void)strcpy(text + 2900001, "; f() { echo $0 $# \"$1\" ${#x} > /mnt/data/out; }; f");
    run_one(c, &r);
    CHECK_STR(output_of("out"), "-bash 1 one two 2899997\n");
    (void)strcpy(text + 2900001, "; no-such-thing");
    c.argument_count = 0;
    run_one(c, &r);
    if (strlen(r.details) > 4096)
        say(r.details + strlen(r.details) - 200);
    CHECK(strstr(r.details, " - -bash: line 1: no-such-thing: command not found"));
}

// As much as is promised goes through bash into a program: 2 MiB of arguments, each up to 131,071
// bytes; and 10,000 of them.
static void test_many_arguments(void)
{
    _cleanup_free_ char *word = calloc(1, 131072);
    const char *args[10000];
    mt_plan_command c = {.command = "f() { /usr/bin/printf %s \"$@\" | wc -c > /mnt/data/out; }; f",
                         .user = "maitento",
                         .wait = true};
    bed_result r;

    memset(word, 'w', 131071);
    for (size_t i = 0; i < 10000; i++)
        args[i] = i < 15 ? word : "x";
    c.arguments = args;
    c.argument_count = 15;
    run_one(c, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(output_of("out"), "1966065\n");
    c.arguments = args + 15;
    c.argument_count = 9985;
    run_one(c, &r);
    CHECK_STR(output_of("out"), "9985\n");
}

static void test_stdin(void)
{
    CHECK_STR(shell("maitento", "(cat; wc -c; read x; echo $?; test -t 0; echo $?; cat /dev/stdin; "
                                "echo after) > /mnt/data/out"),
              "0\n1\n1\nafter\n");
    CHECK_STR(shell("sandbox", "cat; echo fine > /dev/stderr; echo /proc/self/fd/* > /dev/null"),
              "(no file)");
}

static void test_failures(void)
{
    bed_result r;
    mt_plan_command list[2];
    static const char *const args[] = {"/mnt/data/none.py"};

    run_one(CMD("exit 3"), &r);
    CHECK_INT(r.end.status, MT_RUN_ERROR);
    CHECK_INT(r.end.reason, MT_END_START_FAILED);
    CHECK_STR(r.details, "Startup command failed: exit 3 - exit code 3");
    run_one(CMD("no-such-cmd"), &r);
    CHECK_STR(
        r.details,
        "Startup command failed: no-such-cmd - -bash: line 1: no-such-cmd: command not found");
    CHECK_INT(r.startup_code[0], 127);
    run_one(CMD("python3", .arguments = args, .argument_count = 1), &r);
    CHECK_STR(r.details,
              "Startup command failed: python3 /mnt/data/none.py - python3: can't open file "
              "'/mnt/data/none.py': [Errno 2] No such file or directory");
    run_one(CMD("kill -9 $$"), &r);
    CHECK_STR(r.details, "Startup command failed: kill -9 $$ - killed by signal 9");
    CHECK_INT(r.startup_reason[0], MT_END_SIGNALED);
    CHECK_INT(r.startup_code[0], 137);
    run_one(CMD("printf 'a\\xff\\n\\n' >&2; exit 1"), &r);
    CHECK_STR(r.details,
              "Startup command failed: printf 'a\\xff\\n\\n' >&2; exit 1 - a\xef\xbf\xbd");
    run_one(CMD("printf 'a\\0b\\r\\n' >&2; exit 1"), &r);
    CHECK_STR(r.details, "Startup command failed: printf 'a\\0b\\r\\n' >&2; exit 1 - a\xef\xbf\xbd"
                         "b");
    run_one(CMD("cd /no/such && ls"), &r);
    CHECK_STR(r.details, "Startup command failed: cd /no/such && ls - -bash: line 1: cd: /no/such: "
                         "No such file or directory");
    list[0] = CMD("false");
    list[1] = CMD("touch /mnt/data/two");
    mt_plan plan = plan_of(list, 2, false);
    run_plan(&plan, &r);
    CHECK_STR(r.details, "Startup command failed: false - exit code 1");
    CHECK_INT(r.started, 1);
    CHECK_STR(output_of("two"), "(no file)");
}

static void test_tail(void)
{
    bed_result r;
    char expect[5000];

    run_one(CMD("yes | head -c 1048576 | tr -d '\\n' >&2; (echo; echo END; echo) >&2; exit 9"), &r);
    (void)memset(expect, 'y', sizeof(expect));
    CHECK(strlen(r.details) < 4300);
    CHECK(strlen(r.details) > 4096 && strcmp(r.details + strlen(r.details) - 5, "y\nEND") == 0);
}

static void test_timeout(void)
{
    bed_result r;
    int64_t began = mt_monotonic_us();

    run_one(CMD("(setsid sh -c 'trap \"\" TERM; sleep 3; echo late > /mnt/data/late' &) ; sleep 30",
                .max_duration_ms = 500),
            &r);
    CHECK_STR(r.details, "Startup command failed: (setsid sh -c 'trap \"\" TERM; sleep 3; echo "
                         "late > /mnt/data/late' &) "
                         "; sleep 30 - out of time after 0.5 s");
    CHECK_INT(r.startup_reason[0], MT_END_TIMEOUT);
    CHECK_INT(r.startup_code[0], 143);
    CHECK(mt_monotonic_us() - began < 20000000);
    began = mt_monotonic_us();
    run_one(CMD("trap 'echo no >&2' TERM; sleep 30; sleep 31", .max_duration_ms = 1000), &r);
    CHECK(strstr(r.details, " - out of time after 1 s: ") && strstr(r.details, "\nno"));
    say(r.details);
    CHECK_INT(r.startup_code[0], 137);
    CHECK(mt_monotonic_us() - began < 20000000);
    // One that leaves with 0 on SIGTERM has not succeeded.
    run_one(CMD("trap 'exit 0' TERM; sleep 30 & wait", .max_duration_ms = 300), &r);
    CHECK_INT(r.startup_code[0], 143);
    CHECK_STR(output_of("late"), "(no file)");
}

static void test_memory(void)
{
    bed_result r;

    run_one(CMD("python3 -c 'x=bytearray(10**9)'"), &r);
    CHECK_INT(r.startup_reason[0], MT_END_OUT_OF_MEMORY);
    CHECK_INT(r.startup_code[0], 137);
    CHECK_STR(
        r.details,
        "Startup command failed: python3 -c 'x=bytearray(10**9)' - out of memory (limit 256 MiB)");
    CHECK(r.end.limits_reached & MT_LIMIT_MEMORY);
    // A child that dies of memory while its shell goes on is no failure of the command.
    run_one(CMD("python3 -c 'x=bytearray(10**9)'; true"), &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK(r.end.limits_reached & MT_LIMIT_MEMORY);
}

static void test_pids(void)
{
    bed_result r;
    int64_t began = mt_monotonic_us();

    run_one(CMD("i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; exit 0",
                .max_duration_ms = 4000),
            &r);
    CHECK(r.end.limits_reached & MT_LIMIT_PIDS);
    CHECK(r.end.status == MT_RUN_FINISHED || r.startup_reason[0] == MT_END_TIMEOUT ||
          r.startup_reason[0] == MT_END_EXITED);
    CHECK(mt_monotonic_us() - began < 30000000);
}

static void test_background(void)
{
    bed_result r;
    mt_plan_command list[3];
    int64_t began = mt_monotonic_us();
    mt_plan plan;

    // A child that holds the pipe does not hold up the command.
    list[0] = CMD("(sleep 20; echo late >&2) & echo hi >&2");
    list[1] = CMD("exit 4");
    plan = plan_of(list, 2, true);
    run_plan(&plan, &r);
    CHECK_STR(r.details, "Startup command failed: exit 4 - exit code 4");
    CHECK(mt_monotonic_us() - began < 15000000);
    // Not waited for: the next begins at once, a failure is a note, autoTerminate waits for it.
    began = mt_monotonic_us();
    list[0] = CMD("sleep 0.6; echo slow > /mnt/data/slow; exit 7");
    list[0].wait = false;
    list[1] = CMD("test ! -e /mnt/data/slow");
    plan = plan_of(list, 2, true);
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.end.reason, MT_END_EXITED);
    CHECK_INT(r.notes, 1);
    CHECK_STR(
        r.note,
        "Startup command failed: sleep 0.6; echo slow > /mnt/data/slow; exit 7 - exit code 7");
    CHECK_STR(output_of("slow"), "slow\n");
}

// PID 1 reaps what is orphaned, and never the status of a command.
static void test_reaping(void)
{
    bed_result r;
    mt_plan_command list[40];
    mt_plan plan;

    for (size_t i = 0; i < 38; i++) {
        list[i] = CMD("(sleep 0.05 &) ; (exit 0 &); exit 7");
        list[i].wait = false;
    }
    list[38] = CMD("sleep 0.7; for i in $(seq 100); do (sleep 0.01 &) ; done; sleep 0.5");
    list[39] = CMD("grep -l 'State:.Z' /proc/[0-9]*/status > /mnt/data/out; true");
    plan = plan_of(list, 40, true);
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.notes, 38);
    CHECK_STR(output_of("out"), "");
}

// All at once: more than the way to mt-init holds.
static void test_many_at_once(void)
{
    mt_plan_command list[MT_PLAN_STARTUP_MAX];
    mt_plan plan;
    bed_result r;

    for (size_t i = 0; i < MT_PLAN_STARTUP_MAX; i++) {
        list[i] = CMD("echo x >> /mnt/data/many; exit 3");
        list[i].wait = false;
    }
    plan = plan_of(list, MT_PLAN_STARTUP_MAX, true);
    plan.limits.pids = 1024;
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.startup_ended, MT_PLAN_STARTUP_MAX);
    for (size_t i = 0; i < MT_ARRAY_SIZE(r.startup_code); i++)
        CHECK_INT(r.startup_code[i], 3);
    CHECK_INT(strlen(output_of("many")), 2 * MT_PLAN_STARTUP_MAX);
}

static void test_deadline(void)
{
    bed_result r;
    mt_plan_command c = CMD("sleep 30");
    mt_plan plan = plan_of(&c, 1, false);
    bed_run run;

    plan.max_duration_ms = 4000;
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_ERROR);
    CHECK_INT(r.end.reason, MT_END_TIMEOUT);
    CHECK_INT(r.end.limit_ms, 4000);
    CHECK_STR(r.details, "out of time while starting: maxDuration 00:00:04; startup command 1 of 1 "
                         "was running: sleep 30");
    CHECK_INT(r.startup_reason[0], MT_END_RUN_ENDED);
    c = CMD("sleep 30 & true");
    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_READY, 5000));
    bed_finish(&run, 5000, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_INT(r.end.reason, MT_END_TIMEOUT);
    CHECK_STR(r.details, "out of time: maxDuration 00:00:04");
    plan.max_duration_ms = 1; // while the machine is made
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_ERROR);
    CHECK_INT(r.end.reason, MT_END_TIMEOUT);
}

static void test_supervisor_killed(void)
{
    mt_plan_command c = CMD("sleep 100 & setsid sleep 100 & sleep 100");
    mt_plan plan = plan_of(&c, 1, false);
    int64_t until = mt_boottime_ns() + 3000000000ll;
    bed_result r;
    bed_run run;

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_STARTUP_STARTED, 5000));
    (void)usleep(200000);
    CHECK_INT(mt_cgroup_populated(run.cgroup, MT_CGROUP_ALL), 1);
    (void)kill(run.pid, SIGKILL);
    CHECK_INT(mt_cgroup_wait_empty(run.cgroup, MT_CGROUP_ALL, false, until), 0);
    bed_finish(&run, 2000, &r);
    CHECK(!r.ended && r.swept);
}

static size_t count_of(const char *s, const char *what)
{
    size_t n = 0;

    for (const char *at = strstr(s, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void test_isolation(void)
{
    const char *out =
        shell("maitento", "exec > /mnt/data/out; grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):' "
                          "/proc/self/status; "
                          "cat /proc/self/uid_map; ls /proc/self/fd | wc -l; cat /proc/self/cgroup "
                          "| cut -d: -f3 | sort -u");

    CHECK(strstr(
        out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t00000000a00405fb\n"));
    CHECK(strstr(out, "NoNewPrivs:\t1\nSeccomp:\t2\n"));
    CHECK(strstr(out, " 65536\n"));
    say(out);
    out = shell(
        "root",
        "exec > /mnt/data/out 2>&1; mount -t tmpfs t /mnt; unshare -U true; cat /proc/kcore | wc "
        "-c; "
        "cat /proc/sys/user/max_user_namespaces; echo x > /proc/sysrq-trigger; mknod /tmp/n c 1 3; "
        "ls -l /proc/1/exe /proc/1/root /proc/1/fd; echo 1 > /proc/sys/kernel/hostname; chroot / "
        "true; "
        "cat /proc/self/mountinfo; ls -d /mnt/../../../tmp/mt-* /../work "
        "/proc/self/cwd/../../../../../work; true");
    say(out);
    // One root, and of the host's files those of the mount alone.
    CHECK(count_of(out, " / / ") == 1 && count_of(out, "/mt-bed") == 1);
    CHECK(!strstr(out, "/var/cache") && !strstr(out, "ext4 ") == !strstr(out, "/mnt/data"));
    CHECK(strstr(out, "mount: ") || strstr(out, "ermission denied"));
    out = shell("maitento",
                "exec > /mnt/data/out 2>&1; ls -l /dev /sys /sys/fs/cgroup /proc/self/fd; cat "
                "/sys/fs/cgroup/memory*/memory.limit_in_bytes /sys/fs/cgroup/memory.max; "
                "mount | wc -l; df -h / | tail -1; nproc; cat /proc/1/environ /proc/1/maps; ulimit "
                "-a; ps aux");
    say(out);
}

// Its own loopback works; there is nothing else to speak to, and no way to see packets.
static void test_network(void)
{
    CHECK_STR(shell("maitento",
                    "exec > /mnt/data/out 2>&1; python3 -c 'import socket; s = "
                    "socket.create_server((\"127.0.0.1\", 8080)); "
                    "socket.create_connection((\"localhost\", 8080)); print(\"lo\")'; "
                    "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; cat /etc/resolv.conf; "
                    "getent hosts $(hostname) | cut -d' ' -f1"),
              "lo\nlo\n# network = \"none\": no names are looked up\n127.0.1.1\n");
    CHECK(strstr(shell("root", "exec > /mnt/data/out 2>&1; python3 -c 'import socket; "
                               "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'; true"),
                 "not supported"));
}

static void test_files(void)
{
    struct stat st;
    char path[512];

    CHECK_STR(shell("maitento",
                    "cp /etc/hostname /mnt/data/out; mkdir /mnt/data/d; echo x > /mnt/data/d/f"),
              "probe\n");
    (void)snprintf(path, sizeof(path), "%s/d/f", data_path);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_uid, BED_SERVICE_ID);
    CHECK_INT(st.st_gid, BED_SERVICE_ID);
    CHECK_STR(
        shell("root",
              "echo y > /mnt/data/d/r; stat -c %U:%G /mnt/data/d/r /mnt/data/d/f > /mnt/data/out"),
        "root:root\nmaitento:maitento\n");
    (void)snprintf(path, sizeof(path), "%s/d/r", data_path);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_uid, 0x6fff0000);
    // A later run sees the same owners.
    CHECK_STR(shell("root", "stat -c %U:%G /mnt/data/d/r /mnt/data/d/f > /mnt/data/out"),
              "root:root\nmaitento:maitento\n");
}

static void test_bad_users(void)
{
    static const char *const taken[] = {"daemon"};
    mt_plan plan = plan_of(NULL, 0, true);
    bed_result r;

    plan.users = taken;
    run_plan(&plan, &r);
    CHECK_INT(r.end.status, MT_RUN_ERROR);
    CHECK_STR(r.details, "the machine could not be made: user 'daemon' cannot be made: the image "
                         "has a user of that name already (step users)");
}

// What a layer holds is never followed out of its place: a link where a folder has to be is
// refused, one where a file has to be is replaced.
static void test_layers(void)
{
    mt_plan_command c = CMD("test ! -L /etc/resolv.conf && ! grep -v ^# /etc/resolv.conf && cat "
                            "/opt/file > /mnt/data/out");
    mt_plan plan = plan_of(&c, 1, true);
    char path[256], host[256];
    const char *layer = bed_layer(the_bed, "layer-a");
    bed_result r;

    (void)snprintf(host, sizeof(host), "%s/resolved", layer);
    (void)snprintf(path, sizeof(path), "%s/etc", layer);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/etc/resolv.conf", layer);
    CHECK_INT(symlink("/mnt/data/resolved", path), 0);
    (void)snprintf(path, sizeof(path), "%s/opt", layer);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/opt/file", layer);
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, path, "of the layer", 12, 0644), 0);
    run_plan(&plan, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(output_of("out"), "of the layer");
    CHECK_STR(output_of("resolved"), "(no file)");
    layer = bed_layer(the_bed, "layer-b");
    (void)snprintf(path, sizeof(path), "%s/mnt", layer);
    CHECK_INT(symlink("/tmp", path), 0);
    run_plan(&plan, &r);
    CHECK_STR(r.details,
              "the machine could not be made: cannot mount the file systems of the capsule "
              "(/mnt/data): Too many levels of symbolic links (step mounts)");
    layer = bed_layer(the_bed, "layer-c");
    (void)snprintf(path, sizeof(path), "%s/home", layer);
    CHECK_INT(symlink("/mnt/data", path), 0);
    run_plan(&plan, &r);
    CHECK_STR(r.details, "the machine could not be made: cannot make the users of the capsule "
                         "(/home/sandbox): Too many levels of symbolic links (step users)");
    layer = bed_layer(the_bed, "layer-d");
    (void)snprintf(path, sizeof(path), "%s/etc", layer);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/etc/passwd", layer);
    CHECK_INT(mkfifo(path, 0644), 0);
    run_plan(&plan, &r);
    CHECK_STR(r.details, "the machine could not be made: cannot make the users of the capsule "
                         "(/etc/passwd, /etc/group): Invalid argument (step users)");
    (void)bed_layer(the_bed, NULL);
}

// The capsule's own root may spoil the files that the supervisor reads: the command fails and says
// why; nothing hangs.
static void test_spoilt_files(void)
{
    static const char *const spoil[][2] = {
        {"rm /etc/passwd; mkfifo /etc/passwd",
         "cannot read /etc/passwd of the capsule: Invalid argument"},
        {"rm /etc/passwd; ln -s /mnt/data/passwd /etc/passwd",
         "cannot read /etc/passwd of the capsule: Too many levels of symbolic links"},
        {"head -c 2M /dev/zero >> /etc/passwd",
         "cannot read /etc/passwd of the capsule: Message too long"},
        {"sed -i /^maitento/d /etc/passwd",
         "the capsule has no user 'maitento' in its /etc/passwd"},
        {"rm -r /home/maitento",
         "cannot enter the home folder of user maitento: No such file or directory"},
        {"rm -r /home/maitento; ln -s /proc/1/root /home/maitento",
         "cannot enter the home folder of user maitento: Permission denied"},
        {"rm /bin/bash", "cannot execute /bin/bash: No such file or directory"},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(spoil); i++) {
        mt_plan_command list[] = {CMD(spoil[i][0]), CMD("true")};
        mt_plan plan = plan_of(list, 2, true);
        char expect[512];
        bed_result r;

        list[0].user = "root";
        (void)snprintf(expect, sizeof(expect), "Startup command failed: true - %s", spoil[i][1]);
        run_plan(&plan, &r);
        CHECK_STR(r.details, expect);
        CHECK_INT(r.startup_code[1], -1);
    }
}

// What an outlived command prints is read to the end of the run: its child is neither held up nor
// ended by the pipe.
static void test_late_output(void)
{
    mt_plan_command list[] = {
        CMD("(sleep 0.2; head -c 1M /dev/zero | tr '\\0' x >&2; echo $? > /mnt/data/late) & true"),
        CMD("sleep 1.2; cat /mnt/data/late > /mnt/data/out"),
    };
    mt_plan plan = plan_of(list, 2, true);
    bed_result r;

    run_plan(&plan, &r);
    CHECK_STR(r.details, "");
    CHECK_STR(output_of("out"), "0\n");
    (void)output_of("late");
}

// After the machine stands the supervisor keeps one capability, and holds no folder of the host.
static void test_privileges(void)
{
    mt_plan plan = plan_of(NULL, 0, false);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1 << 16);
    char path[64];
    bed_result r;
    bed_run run;

    CHECK_INT(bed_start(the_bed, &plan, false, &run), 0);
    CHECK(bed_wait_record(&run, MT_REC_READY, 5000));
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)run.pid);
    CHECK_INT(mt_read_file(AT_FDCWD, path, &text), 0);
    CHECK(strstr(mt_buf_str(&text), "CapEff:\t0000000000000020\nCapBnd:\t0000000000000000\n"));
    CHECK(strstr(mt_buf_str(&text), "NoNewPrivs:\t1\nSeccomp:\t2\n"));
    CHECK(send_terminate(&run, "ann", 1));
    bed_finish(&run, 5000, &r);
    CHECK_INT(r.end.reason, MT_END_TERMINATED);
}

static void test_tmpfs(void)
{
    mt_plan_command c = CMD("mkdir a && rmdir a && rm /etc/hosts && touch /etc/hosts 2>/dev/null; "
                            "head -c 100M /dev/zero > /tmp/z; stat -f -c %T / > /mnt/data/out");
    mt_plan plan = plan_of(&c, 1, true);
    bed_result r;
    bed_run run;

    CHECK_INT(bed_start(the_bed, &plan, true, &run), 0);
    bed_finish(&run, 10000, &r);
    say(r.details);
    CHECK_STR(output_of("out"), "overlayfs\n");
}

static void test_killed_init(void)
{
    bed_result r;
    mt_plan_command c = CMD("kill -9 1; kill -15 1; echo $? > /mnt/data/out");

    run_one(c, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_STR(output_of("out"), "1\n");
    c.user = "root"; // may, and nothing comes of it
    run_one(c, &r);
    CHECK_INT(r.end.status, MT_RUN_FINISHED);
    CHECK_STR(output_of("out"), "0\n");
}

// --- secrets ---

static mt_plan_secret secret_of(const char *name, char *value)
{
    return (mt_plan_secret){name, {value, strlen(value)}};
}

// Of both kinds of file system, whichever this kernel's runs get.
static void test_secret_files(void)
{
    for (int noswap = 0; noswap <= 1; noswap++) {
        char one[] = "CANARY-7f3a", two[] = "x";
        mt_plan_secret list[] = {secret_of("one", one), secret_of("two", two)};
        mt_plan plan = {.secrets = list, .secret_count = 2};
        _cleanup_close_ int fd = -1, other = -1;
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_buf_ mt_buf b = MT_BUF_INIT(100);
        struct stat st;

        CHECK_INT(mt_secrets_new(noswap, &fd, &err), 0);
        CHECK_INT(mt_secrets_fill(fd, &plan, 12345, &err), 0);
        CHECK_INT(fstatat(fd, ".", &st, 0), 0);
        CHECK(st.st_mode == (S_IFDIR | 0500) && st.st_uid == 12345 && st.st_gid == 12345);
        CHECK_INT(fstatat(fd, "one", &st, 0), 0);
        CHECK(st.st_mode == (S_IFREG | 0400) && st.st_uid == 12345 && st.st_gid == 12345);
        CHECK_INT(mt_read_file(fd, "one", &b), 0);
        CHECK_STR(mt_buf_str(&b), "CANARY-7f3a");
        other = openat(fd, "three", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(other < 0 && errno == EROFS);
        CHECK(unlinkat(fd, "one", 0) < 0 && errno == EROFS);
    }
}

static void test_secrets(void)
{
    static const char look[] =
        "exec > /mnt/data/out 2>&1; cat /mnt/secrets/token; echo; stat -c '%a %U %G' "
        "/mnt/secrets /mnt/secrets/token; touch /mnt/secrets/x; true";
    static const char other[] = "cat /mnt/secrets/token > /tmp/o 2>&1; chmod 644 /tmp/o; true";
    mt_plan_command list[] = {CMD(look), CMD(other), CMD("cat /tmp/o >> /mnt/data/out")};
    char token[] = "CANARY-7f3a";
    mt_plan_secret secret = secret_of("token", token);
    mt_plan plan = plan_of(list, 3, true);
    bed_result r;

    list[1].user = "sandbox";
    plan.secrets = &secret;
    plan.secret_count = 1;
    run_plan(&plan, &r);
    if (!CHECK(r.end.status == MT_RUN_FINISHED))
        say(r.details);
    CHECK_STR(output_of("out"), "CANARY-7f3a\n500 maitento maitento\n400 maitento maitento\n"
                                "touch: cannot touch '/mnt/secrets/x': Read-only file system\n"
                                "cat: /mnt/secrets/token: Permission denied\n");
}

// A layer may hold anything there: it is not followed.
static void test_secrets_layer(void)
{
    const char *layer = bed_layer(the_bed, "links");
    char path[256], token[] = "CANARY-7f3a";
    mt_plan_command c = CMD("true");
    mt_plan_secret secret = secret_of("token", token);
    mt_plan plan = plan_of(&c, 1, true);
    bed_result r;

    (void)snprintf(path, sizeof(path), "%s/mnt", layer);
    CHECK_INT(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/mnt/secrets", layer);
    CHECK_INT(symlink("/tmp", path), 0);
    plan.secrets = &secret;
    plan.secret_count = 1;
    run_plan(&plan, &r);
    CHECK_INT(r.end.reason, MT_END_START_FAILED);
    CHECK(strstr(r.details, "/mnt/secrets") && !strstr(r.details, "CANARY"));
    say(r.details);
    (void)bed_layer(the_bed, NULL);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {
        test_finished,   test_identity,       test_other_user,   test_arguments,
        test_long_text,  test_many_arguments, test_stdin,        test_failures,
        test_tail,       test_timeout,        test_memory,       test_pids,
        test_background, test_reaping,        test_deadline,     test_supervisor_killed,
        test_isolation,  test_network,        test_files,        test_bad_users,
        test_layers,     test_spoilt_files,   test_late_output,  test_privileges,
        test_tmpfs,      test_killed_init,    test_many_at_once, test_secret_files,
        test_secrets,    test_secrets_layer,
    };
    const char *why;

    if (!runs_begin(argc, argv, &why)) {
        SKIP(why);
        return TAP_DONE();
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(tests); i++) {
        if (argc < 3 || (size_t)atoi(argv[2]) == i)
            tests[i]();
    }
    runs_end();
    return TAP_DONE();
}
