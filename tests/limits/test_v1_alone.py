"""The same where control groups are v1 alone: killing, holding and binding go other ways there."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mtserver
import test_file_systems
import test_memory_and_processes
import test_seen_inside
from conftest import Api


@pytest.fixture(scope="module")
def v1():
    try:
        with mtserver.Server(image="slim", runner_options=["--cgroup", "v1"]) as server:
            yield Api(server)
    except mtserver.StartError as error:
        if "v1 freezer" in str(error):
            pytest.skip("this host has no v1 hierarchies")
        raise


@pytest.fixture()
def work(v1):
    ns = v1.namespace()
    v1.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return ns


def test_the_one_that_wrote_most_ends(v1, work):
    test_file_systems.test_the_one_that_wrote_most_ends_and_the_others_go_on(v1, work, v1.server)


def test_a_memory_hog(v1, work):
    test_memory_and_processes.test_o10_a_memory_hog_ends_with_its_reason(v1, work, v1.server)


def test_a_fork_storm(v1, work):
    test_memory_and_processes.test_o11_a_fork_storm_stays_in_its_run(v1, work, v1.server)


@pytest.mark.skipif(test_seen_inside.CPUS < 2, reason="needs two processors")
def test_nproc(v1, work):
    test_seen_inside.test_o11_nproc_fits_the_limit(v1, work)


def test_free(v1, work):
    test_seen_inside.test_free_shows_the_memory_of_the_run(v1, work)
