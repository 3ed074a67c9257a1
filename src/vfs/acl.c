// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs by hand: the one default ACL that roots of file systems carry. The xattr is
// struct posix_acl_xattr_header and its entries of linux/posix_acl_xattr.h, little-endian, sorted
// by tag.
#include "vfs/vfs-internal.h"

#include <endian.h>
#include <errno.h>
#include <sys/xattr.h>

struct acl_entry {
    uint16_t tag, perm;
    uint32_t id;
};

int vfs_set_default_acl(int fd, uid_t uid)
{
    enum { VERSION = 2, USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };
    enum { RWX = 7 };
    const uint32_t none = UINT32_MAX;
    struct {
        uint32_t version;
        struct acl_entry entries[5];
    } acl = {
        htole32(VERSION),
        {
            {htole16(USER_OBJ), htole16(RWX), none},
            {htole16(USER), htole16(RWX), htole32(uid)},
            {htole16(GROUP_OBJ), htole16(RWX), none},
            {htole16(MASK), htole16(RWX), none},
            {htole16(OTHER), 0, none},
        },
    };

    _Static_assert(sizeof(acl) == 4 + 5 * 8, "no padding");
    return fsetxattr(fd, "system.posix_acl_default", &acl, sizeof(acl), 0) < 0 ? -errno : 0;
}
