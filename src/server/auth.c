// SPDX-License-Identifier: Apache-2.0
#include "server/auth.h"

#include "capsule/idmap.h"

#include <grp.h>
#include <pwd.h>

enum { GROUPS_MAX = 256, NSS_BYTES = 16384 };

// The name in "name", "name:port", "[::1]:port", without its port.
static mt_str host_name(mt_str host)
{
    const char *end;

    if (host.len && host.data[0] == '[') {
        end = memchr(host.data, ']', host.len);
        return end ? (mt_str){host.data, (size_t)(end - host.data) + 1} : host;
    }
    end = memchr(host.data, ':', host.len);
    return end ? (mt_str){host.data, (size_t)(end - host.data)} : host;
}

static bool host_known(const mt_door *door, mt_str name)
{
    for (size_t i = 0; door->hosts && door->hosts[i]; i++)
        if (mt_str_ieq(name, door->hosts[i]))
            return true;
    return false;
}

int mt_auth_check_host(const mt_door *door, const mt_http_request *request, mt_err **err)
{
    mt_str host = mt_http_request_host(request), origin;

    // A page of another site names its own host (DNS rebinding) or carries its Origin. On a Unix
    // socket there is no browser.
    if (door->kind != MT_DOOR_TCP)
        return 0;
    if (!host_known(door, host_name(host)))
        return mt_fail(err, MT_E_MISDIRECTED,
                       "this server does not answer for the host '%.*s': start it with "
                       "--allow-host for a name of your own",
                       (int)MT_MIN(host.len, (size_t)100), host.data);
    if (mt_http_header(request, "Origin", &origin)) {
        const char *scheme_end = memmem(origin.data, origin.len, "://", 3);
        size_t skip = scheme_end ? (size_t)(scheme_end - origin.data) + 3 : 0;

        if (!scheme_end ||
            !host_known(door, host_name((mt_str){origin.data + skip, origin.len - skip})))
            return mt_fail(err, MT_E_FORBIDDEN,
                           "requests from web pages of other sites are refused (Origin)");
    }
    return 0;
}

static int by_key(const mt_http_request *request, mt_request *req, mt_err **err)
{
    static const char SCHEME[] = "Bearer ";
    mt_str value;

    (void)mt_http_header(request, "Authorization", &value);
    if (mt_http_header_count(request, "Authorization") != 1 || value.len < sizeof(SCHEME) ||
        strncasecmp(value.data, SCHEME, sizeof(SCHEME) - 1) != 0)
        return mt_fail(err, MT_E_UNAUTHENTICATED,
                       "the Authorization header must be: Bearer mt_… (one API key)");
    if (mt_store_key_lookup(req->api->store, value.data + sizeof(SCHEME) - 1,
                            value.len - (sizeof(SCHEME) - 1), &req->user, err) < 0)
        return -1;
    req->via = "key";
    return 0;
}

// A local account may use the host's socket when it is of the service group.
static bool in_service_group(const struct passwd *account, gid_t gid)
{
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;

    if (account->pw_gid == gid)
        return true;
    if (getgrouplist(account->pw_name, account->pw_gid, groups, &count) < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

static int by_peer(const mt_http_peer *peer, mt_request *req, mt_err **err)
{
    char bytes[NSS_BYTES];
    struct passwd account, *found = NULL;
    const char *login = "root";

    if (peer->uid != 0) {
        if (getpwuid_r(peer->uid, &account, bytes, sizeof(bytes), &found) != 0 || !found ||
            !in_service_group(found, req->api->service_gid))
            return mt_fail(err, MT_E_UNAUTHENTICATED,
                           "uid %u may not use this socket: add the account to the service's "
                           "group, or sign in with a key (mt login)",
                           (unsigned)peer->uid);
        login = found->pw_name;
    }
    if (mt_store_user_by_login(req->api->store, login, (int64_t)peer->uid, &req->user, err) < 0)
        return -1;
    req->via = "socket";
    return 0;
}

// Who may connect is the socket's mode; here it is asked of the kernel once more.
static int check_run_peer(const mt_door *door, const mt_http_peer *peer, mt_err **err)
{
    if (peer->is_unix &&
        (peer->uid == door->uid_base || peer->uid == door->uid_base + MT_MAITENTO_UID))
        return 0;
    return mt_fail(err, MT_E_UNAUTHENTICATED,
                   "only the capsule's default user, and its root, are signed in");
}

// A request that comes through a run's door is the run's, whoever's key it may bring.
static int enter_run(const mt_door *door, const mt_http_peer *peer, mt_request *req, mt_err **err)
{
    if (check_run_peer(door, peer, err) < 0)
        return -1;
    req->run_id = mt_arena_strdup(req->arena, door->run_id);
    return req->run_id ? 0 : mt_fail_oom(err);
}

static int by_run(mt_request *req, mt_err **err)
{
    char ns[MT_STORE_NAME];

    if (mt_store_run_sign_in(req->api->store, req->run_id, &req->user, ns, err) < 0)
        return -1;
    req->via = "run";
    req->run_namespace = mt_arena_strdup(req->arena, ns);
    return req->run_namespace ? 0 : mt_fail_oom(err);
}

// Calls of a program: an app run's starter, as he is now.
static int by_app(const mt_door *door, mt_request *req, mt_err **err)
{
    char ns[MT_STORE_NAME];

    if (mt_store_app_run_sign_in(req->api->store, door->run_id, &req->user, ns, err) < 0)
        return -1;
    req->via = "app";
    req->app_run_id = mt_arena_strdup(req->arena, door->run_id);
    req->run_namespace = mt_arena_strdup(req->arena, ns);
    return req->app_run_id && req->run_namespace ? 0 : mt_fail_oom(err);
}

static int find_user(const mt_door *door, const mt_http_request *request, const mt_http_peer *peer,
                     mt_request *req, mt_err **err)
{
    if (door->kind == MT_DOOR_APP)
        return by_app(door, req, err);
    if (mt_http_header_count(request, "Authorization") > 0)
        return by_key(request, req, err);
    if (door->kind == MT_DOOR_RUN)
        return by_run(req, err);
    if (door->kind == MT_DOOR_SOCKET && peer->is_unix)
        return by_peer(peer, req, err);
    return mt_fail(err, MT_E_UNAUTHENTICATED, "an API key is needed: Authorization: Bearer mt_…");
}

int mt_auth_user(const mt_door *door, const mt_http_request *request, const mt_http_peer *peer,
                 mt_request *req, mt_err **err)
{
    if (door->kind == MT_DOOR_RUN && enter_run(door, peer, req, err) < 0)
        return -1;
    if (find_user(door, request, peer, req, err) < 0)
        return -1;
    // A key or a user that was made inside a run is still the run's doing.
    if (!req->run_id && req->user.run_id[0] &&
        !(req->run_id = mt_arena_strdup(req->arena, req->user.run_id)))
        return mt_fail_oom(err);
    return 0;
}
