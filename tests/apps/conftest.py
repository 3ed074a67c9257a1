# SPDX-License-Identifier: Apache-2.0
"""Apps of servers and users of a test's own."""
import itertools
import os

import pytest

from appruns import Apps

_names = itertools.count(1)


@pytest.fixture()
def own_apps(own):
    """Those of a server that may be killed."""
    apps = Apps(own, own.namespace("apps"))
    own.call("POST", f"/v1/namespaces/{apps.ns}/vfs", {"name": "work"}, 201)
    return apps


@pytest.fixture()
def person(api, apps):
    """Makes a user, of the namespace or not, who sees its apps."""
    def make(member=True):
        name = f"apps-{os.getpid()}-{next(_names)}"
        key = api.call("POST", "/v1/users", {"name": name}, 201)["key"]
        if member:
            api.call("PUT", f"/v1/namespaces/{apps.ns}/members/{name}")
        one = Apps(api, apps.ns, {"Authorization": f"Bearer {key}"})
        one.name = name
        return one
    return make
