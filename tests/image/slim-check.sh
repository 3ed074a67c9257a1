#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs INSIDE any image (in a capsule as its user, or in a chroot): what every capsule relies on. TAP.
set -u
count=0 failed=0

# is NAME GOT EXPECTED
is() {
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        printf '# got:      %q\n# expected: %q\n' "$2" "$3"
    fi
}
yes_if() { "$@" >/dev/null 2>&1 && echo yes || echo no; }
login() { env -i HOME="$HOME" USER=maitento "$@"; }

is 'a login shell prints nothing' "$(login bash -l -c 'exit 3' 2>&1; echo $?)" 3
is 'its exit code arrives' "$(login bash -l -c 'exit 7'; echo $?)" 7
is 'LANG is UTF-8' "$(login bash -l -c 'echo $LANG')" C.UTF-8
is 'a given LANG stays' "$(login LANG=C bash -l -c 'echo $LANG')" C
is 'it is one file' "$(localedef --list-archive)" C.utf8
is 'a given PATH stays' "$(login PATH=/opt/x:/usr/bin:/bin /bin/bash -l -c 'echo $PATH')" /opt/x:/usr/bin:/bin
is 'a PATH is exported where none was given' "$(login bash -l -c 'env' | grep -c '^PATH=.*/usr/bin')" 1
is 'the profile starts no program' "$(grep -cE '`|\$\(' /etc/profile)" 0
is 'there is no .bash_logout' "$(ls -A /etc/skel /home/maitento | grep -c bash_logout)" 0
is 'maitento is 1000' "$(getent passwd maitento)" 'maitento:x:1000:1000::/home/maitento:/bin/bash'
is 'its group, too' "$(getent group maitento)" 'maitento:x:1000:'
is 'it owns its home' "$(stat -c %u:%g /home/maitento /home/maitento/.profile | sort -u)" 1000:1000
is 'python3 has json, sqlite3, ssl and ctypes' "$(python3 -c 'import json, sqlite3, ssl, ctypes; print("ok")' 2>&1)" ok
is 'python3 speaks UTF-8' "$(login bash -l -c 'python3 -c "import sys; print(sys.stdout.encoding)"')" utf-8
is 'git is there' "$(git --version | cut -d' ' -f1-2)" 'git version'
is 'curl is there' "$(curl --version | head -1 | cut -d' ' -f1)" curl
is 'ps is there' "$(yes_if ps --version)" yes
is 'apt is there for packages' "$(yes_if apt-get --version)" yes
is 'sources are public ones alone' "$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -o 'http[^ ]*' | grep -cvE '^http://(deb|security)[.]debian[.]org/debian(-security)?$')" 0
is 'and there are three' "$(grep -c '^deb http' /etc/apt/sources.list)" 3
is 'no package lists or caches are kept' "$(find /var/lib/apt/lists /var/cache/apt -type f 2>/dev/null | wc -l)" 0
is 'licences are kept' "$(yes_if test -s /usr/share/doc/bash/copyright)" yes
is 'pages are not' "$(find /usr/share/man -type f | wc -l)" 0
is 'no proxy, no builder is in apt' "$(grep -rl 'mmdebstrap\|Proxy' /etc/apt 2>/dev/null | wc -l)" 0
is 'no machine id' "$(test -s /etc/machine-id && echo some || echo none)" none
is '/tmp is everybody'"'"'s' "$(stat -c %a /tmp)" 1777
is '/run/maitento is there to mount over' "$(yes_if test -d /run/maitento)" yes
is 'time zones' "$(yes_if test -e /usr/share/zoneinfo/Europe/Berlin)" yes

echo "1..$count"
[ "$failed" = 0 ]
