"""The acceptance checks of the foundation, by their numbers: deploy, files, runs, durations, users."""
import re

import pytest

from conftest import Ref, mtr

SALES = """date,region,product,units,unit_price
2026-09-01,North,Blue mug,12,8.50
2026-09-01,South,Desk lamp,3,59.90
2026-09-02,North,Tea sampler,20,12.00
2026-09-02,West,Blue mug,7,8.50
2026-09-03,South,Blue mug,15,8.50
2026-09-03,West,Desk lamp,5,59.90
2026-09-04,North,Desk lamp,2,59.90
2026-09-04,South,Tea sampler,9,12.00
2026-09-05,West,Tea sampler,14,12.00
2026-09-05,North,Blue mug,10,8.50
"""

SCRIPT = '''import csv
from collections import defaultdict
units, totals = defaultdict(int), defaultdict(float)
for row in csv.DictReader(open("/mnt/data/sales.csv", newline="")):
    totals[row["product"]] += int(row["units"]) * float(row["unit_price"])
    units[row["product"]] += int(row["units"])
with open("/mnt/data/report.md", "w") as f:
    for name, total in sorted(totals.items(), key=lambda i: -i[1]):
        print(f"{name}|{units[name]}|{total:.2f}", file=f)
    print(f"total {sum(totals.values()):.2f}", file=f)
'''

REPORT = b"Desk lamp|10|599.00\nTea sampler|43|516.00\nBlue mug|44|374.00\ntotal 1489.00\n"

CAPSULE = """// comment
autoTerminate = true
maxDuration = "00:05:00"

vfs = [
  {
    vfs = @ref("sales-data")
    mountName = "data"
  }
]

startup = [
  {
    command = "python3"
    arguments = ["/mnt/data/summarise.py"]
    wait = true
    maxDuration = "00:02:00"
  }
]
"""


@pytest.fixture()
def sales(api, ns):
    """A namespace with the file system, its two files and the deployed capsule."""
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "sales-data"}, 201)
    api.write(ns, "sales-data", "/sales.csv", SALES)
    api.write(ns, "sales-data", "/summarise.py", SCRIPT)
    api.deploy(ns, {"capsules/sales-report.mtr": CAPSULE})
    return ns


def diagnostics(api, ns, files):
    return api.deploy(ns, files, expect=422)["diagnostics"]


# ---- definition and deploy ----

def test_001_one_call_deploys_kinds_by_folder_names_by_stem(api, ns):
    result = api.deploy(ns, {"capsules/one.mtr": "autoTerminate = true\n",
                             "json/answer.json": '{"type": "object"}',
                             "prompts/ask.md": "Say %%word%%\n"})
    assert {(c["kind"], c["name"], c["version"]) for c in result["created"]} == {
        ("capsule", "one", 1), ("json", "answer", 1), ("prompt", "ask", 1)}


def test_002_a_missing_file_system_fails_the_deploy_and_is_named(api, ns):
    found = diagnostics(api, ns, {"capsules/sales-report.mtr": CAPSULE})
    assert any("sales-data" in d["message"] for d in found)
    assert found[0]["file"] == "capsules/sales-report.mtr" and found[0]["line"] == 7
    assert api.call("GET", f"/v1/namespaces/{ns}/capsules")["items"] == []


def test_003_after_creating_it_the_same_deploy_succeeds(api, ns):
    diagnostics(api, ns, {"capsules/sales-report.mtr": CAPSULE})
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "sales-data"}, 201)
    assert api.deploy(ns, {"capsules/sales-report.mtr": CAPSULE})["created"]


def test_004_a_secret_that_is_not_there_fails_the_deploy(api, ns):
    found = diagnostics(api, ns, {"capsules/c.mtr": mtr(
        {"secrets": [{"secret": Ref("api-token"), "mountName": "token"}]})})
    assert any("api-token" in d["message"] for d in found)


def test_005_an_edit_takes_effect_on_the_next_start(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    for text in ("one", "two"):
        run = api.shell(ns, f"echo {text} > /mnt/work/word", vfs="work")
        assert run["status"] == "Finished", run
        assert api.read(ns, "work", "/word") == f"{text}\n".encode()
    assert run["version"] == 2


def test_006_comments_dotted_keys_lists_objects_and_references_parse(api, ns):
    api.deploy(ns, {
        "agents/analyst.mtr": 'model = @ref("deepseek.deepseek-v4-flash")\nprompt = "Help."\nsummary = "Helps"\n',
        "apps/analyst/analyst.mtc": "string main(string question) {\n\treturn(question);\n}\n",
        "apps/analyst/analyst.mtr": '// stop\nduration.max = "00:10:00"\n',
        "interactions/one-shot/next.mtr": 'agent = {\n  name = "Analyst"\n  agent = @ref("analyst")\n}\n'
                                          'task = @prompt("next")\ninputs.prompts = [\n  {\n    name = "question"\n'
                                          '    required = true\n  }\n]\nschema.solution = @json("next")\n',
        "json/next.json": '{"type": "object", "required": ["done"]}',
        "prompts/next.md": "Answer: %%question%%\n"})


def test_007_the_tutorials_project_deploys_unchanged(api, ns, tutorial):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "sales-data"}, 201)
    project = tutorial / "maitento"
    files = {str(p.relative_to(project)): p.read_text() for p in project.rglob("*") if p.is_file()}
    created = api.deploy(ns, files)["created"]
    kinds = sorted(c["kind"] for c in created)
    assert kinds == ["agent", "app", "capsule", "capsule", "interaction", "json", "prompt"]
    again = api.deploy(ns, files)
    assert again["created"] == again["updated"] == [] and len(again["unchanged"]) == 7


# ---- namespaces and files ----

def test_008_create_namespace_if_missing_runs_twice(api, ns):
    for _ in range(2):
        status, _ = api.server.request("GET", f"/v1/namespaces/{ns}-x")
        if status == 404:
            api.call("POST", "/v1/namespaces", {"name": f"{ns}-x"}, 201)
    assert api.error("POST", "/v1/namespaces", {"name": f"{ns}-x"})[:2] == (409, "alreadyExists")


def test_009_create_file_system_if_missing_runs_twice(api, ns):
    for _ in range(2):
        status, _ = api.server.request("GET", f"/v1/namespaces/{ns}/vfs/data")
        if status == 404:
            api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "data"}, 201)
    assert len(api.call("GET", f"/v1/namespaces/{ns}/vfs")["items"]) == 1


def test_010_written_text_reads_back_the_same(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "data"}, 201)
    api.write(ns, "data", "/a/b.txt", "grüße\n")
    assert api.read(ns, "data", "/a/b.txt") == "grüße\n".encode()
    assert api.error("GET", api.files(ns, "data", "a/b.txt"))[:2] == (400, "badPath")


def test_011_mt_cp_uploads_and_mt_cat_prints(mt, ns, tmp_path):
    (tmp_path / "f.txt").write_text("hello\n")
    mt("vfs-create", "data", namespace=ns, check=0)
    mt("cp", tmp_path / "f.txt", f"/vfs/data@{ns}/f.txt", check=0)
    assert mt("cat", f"/vfs/data@{ns}/f.txt", check=0).stdout == "hello\n"


def test_012_bytes_are_stored_unchanged(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "data"}, 201)
    data = b"a\r\nb\r\n\0\xff" + bytes(range(256))
    api.write(ns, "data", "/x", data)
    assert api.read(ns, "data", "/x") == data


def test_013_mt_vfs_create_uses_the_default_namespace(mt, ns):
    mt("vfs-create", "data", namespace=ns, check=0)
    assert "data" in mt("vfs-list", "-n", ns, check=0).stdout


# ---- runs to the end ----

def test_014_the_file_system_is_mounted_at_its_place(api, sales):
    run = api.run(sales, "sales-report")
    assert run["status"] == "Finished", run


def test_015_a_run_ends_with_status_finished_by_itself(api, sales):
    run = api.run(sales, "sales-report")
    assert (run["status"], run["endReason"], run["failureDetails"]) == ("Finished", "exited", "")


def test_016_the_report_can_be_read(api, sales):
    api.run(sales, "sales-report")
    assert api.read(sales, "sales-data", "/report.md") == REPORT


def test_017_written_files_outlive_the_capsule(api, sales):
    api.run(sales, "sales-report")
    listing = api.call("GET", api.files(sales, "sales-data", "/", "list"))["items"]
    assert {i["name"] for i in listing} == {"report.md", "sales.csv", "summarise.py"}


def test_018_a_second_run_overwrites_the_report(api, sales):
    api.run(sales, "sales-report")
    api.write(sales, "sales-data", "/report.md", "old")
    assert api.run(sales, "sales-report")["status"] == "Finished"
    assert api.read(sales, "sales-data", "/report.md") == REPORT


def test_019_auto_terminate_ends_after_the_last_startup_command(api, ns):
    run = api.shell(ns, "true")
    assert run["status"] == "Finished" and run["dateEnded"]


def test_020_without_it_the_capsule_stays_up_until_stopped(api, ns):
    api.capsule(ns, [], maxDuration="00:01:00")
    run = api.get(api.start(ns, "c"), until="ready")
    assert run["status"] == "Running"
    api.terminate(run)
    ended = api.get(run)
    assert (ended["status"], ended["endReason"], ended["terminatedBy"]) == (
        "Finished", "terminated", "admin")
    assert ended["failureDetails"] == "stopped by admin"


def test_021_the_tutorials_lines_work_in_their_order(fresh_mt, tutorial):
    lines = (tutorial / "cli" / "sandbox.sh").read_text().splitlines()
    assert len(lines) == 7
    for line in lines:
        words = re.findall(r"\S+", line)
        assert words[0] == "mt"
        done = fresh_mt(*words[1:], cwd=tutorial, check=0)
    assert len(done.stdout.encode()) == 171
    assert "| Desk lamp | 10 | 599.00 |" in done.stdout and "Total revenue: 1489.00" in done.stdout


def test_022_a_changed_script_alone_changes_the_report(api, sales):
    api.write(sales, "sales-data", "/summarise.py", SCRIPT.replace('row["product"]', 'row["region"]'))
    assert api.run(sales, "sales-report")["status"] == "Finished"
    lines = api.read(sales, "sales-data", "/report.md").decode().splitlines()
    assert [re.sub(r"\|\d+\|", "|", line) for line in lines[:3]] == [
        "North|546.80", "West|527.00", "South|415.20"]


# ---- startup ----

@pytest.fixture()
def work(api, ns):
    api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": "work"}, 201)
    return {"vfs": [{"vfs": Ref("work"), "mountName": "work"}]}


def test_023_startup_commands_run_in_order(api, ns, work):
    lines = [{"command": f"echo {i} >> /mnt/work/order"} for i in range(5)]
    api.capsule(ns, lines, autoTerminate=True, **work)
    assert api.run(ns, "c")["status"] == "Finished"
    assert api.read(ns, "work", "/order") == b"0\n1\n2\n3\n4\n"


def test_024_wait_true_waits(api, ns, work):
    api.capsule(ns, [{"command": "sleep 1; echo one >> /mnt/work/order", "wait": True},
                     {"command": "echo two >> /mnt/work/order"}], autoTerminate=True, **work)
    assert api.run(ns, "c")["status"] == "Finished"
    assert api.read(ns, "work", "/order") == b"one\ntwo\n"


def test_025_a_failing_startup_command_says_what_it_printed(api, sales):
    api.write(sales, "sales-data", "/summarise.py", "import sys\nsys.exit('the data is bad')\n")
    run = api.run(sales, "sales-report")
    assert run["status"] == "Error" and run["endReason"] == "startFailed"
    assert run["failureDetails"] == (
        "Startup command failed: python3 /mnt/data/summarise.py - the data is bad")


def test_026_also_when_the_script_is_missing(api, sales):
    api.call("DELETE", api.files(sales, "sales-data", "/summarise.py"))
    run = api.run(sales, "sales-report")
    assert run["status"] == "Error"
    assert run["failureDetails"].startswith("Startup command failed: python3 /mnt/data/summarise.py - ")
    assert "No such file or directory" in run["failureDetails"]


def test_027_a_startup_command_over_its_time_fails_the_start(api, ns):
    api.capsule(ns, [{"command": "sleep", "arguments": ["60"], "maxDuration": "00:00:01"}],
                autoTerminate=True)
    run = api.run(ns, "c")
    assert run["status"] == "Error"
    assert run["failureDetails"] == "Startup command failed: sleep 60 - out of time after 1 s"


def test_028_run_as_user_works(api, ns, work):
    api.capsule(ns, [{"command": "id -un > /tmp/who; chmod 644 /tmp/who", "runAsUser": "sandbox"},
                     {"command": "cp /tmp/who /mnt/work/who"}],
                autoTerminate=True, users=[{"name": "sandbox"}], **work)
    run = api.run(ns, "c")
    assert run["status"] == "Finished", run
    assert api.read(ns, "work", "/who") == b"sandbox\n"


def test_029_output_of_startup_commands_is_not_kept(api, ns):
    run = api.shell(ns, "echo MARK-out; echo MARK-err >&2")
    assert "MARK" not in str(run)


# ---- duration ----

def test_033_max_duration_is_ten_minutes_by_default(api, ns):
    api.capsule(ns, [], autoTerminate=True)
    assert api.run(ns, "c")["maxDuration"] == "00:10:00"


def test_034_it_counts_from_the_start(api, ns):
    from datetime import datetime
    api.capsule(ns, [{"command": "sleep 2"}], maxDuration="00:00:04")
    run = api.run(ns, "c")
    took = datetime.fromisoformat(run["dateEnded"][:-1]) - datetime.fromisoformat(run["dateCreated"][:-1])
    assert 3.9 <= took.total_seconds() < 6 and run["status"] == "Finished"


def test_035_still_starting_when_it_runs_out_is_an_error(api, ns):
    api.capsule(ns, [{"command": "sleep 60"}], maxDuration="00:00:01")
    run = api.run(ns, "c")
    assert (run["status"], run["endReason"]) == ("Error", "timeout")
    assert run["failureDetails"] and run["limitMs"] == 1000


def test_036_ready_when_it_runs_out_is_finished(api, ns):
    api.capsule(ns, [], maxDuration="00:00:03")
    run = api.run(ns, "c")
    assert (run["status"], run["endReason"]) == ("Finished", "timeout")
    assert run["failureDetails"] == "out of time: maxDuration 00:00:03"


def test_037_what_runs_at_that_moment_is_stopped(api, ns, work):
    api.capsule(ns, [{"command": "sleep 5; echo late > /mnt/work/late", "wait": False}],
                maxDuration="00:00:03", **work)
    run = api.run(ns, "c")
    assert run["status"] == "Finished"
    check = api.shell(ns, "sleep 4; test ! -e /mnt/work/late", vfs="work", name="check")
    assert check["status"] == "Finished", check


@pytest.mark.parametrize("text", ["600", "00:60:00", "1h", "00:00:00", "-00:01:00"])
def test_038_durations_are_hh_mm_ss(api, ns, text):
    found = diagnostics(api, ns, {"capsules/c.mtr": f'maxDuration = "{text}"\n'})
    assert found[0]["line"] == 1 and "00:10:00" in found[0]["message"] + str(found[0].get("hint"))


# ---- users and mounts ----

def test_060_the_default_user_is_maitento(api, ns, work):
    run = api.shell(ns, "id -un > /mnt/work/who; echo $HOME $USER $(pwd) >> /mnt/work/who", vfs="work")
    assert run["status"] == "Finished", run
    assert api.read(ns, "work", "/who") == b"maitento\n/home/maitento maitento /home/maitento\n"


def test_061_a_mount_belongs_to_maitento_with_mode_770_and_shuts_others_out(api, ns, work):
    api.write(ns, "work", "/secret.txt", "x")
    api.capsule(ns, [{"command": "stat -c '%U:%G %a' /mnt/work > /mnt/work/stat"},
                     {"command": "cat /mnt/work/secret.txt", "runAsUser": "sandbox"}],
                autoTerminate=True, users=[{"name": "sandbox"}], **work)
    run = api.run(ns, "c")
    assert run["failureDetails"] == ("Startup command failed: cat /mnt/work/secret.txt - "
                                     "cat: /mnt/work/secret.txt: Permission denied")
    assert api.read(ns, "work", "/stat") == b"maitento:maitento 770\n"


def test_062_the_default_user_reads_and_writes_it(api, ns, work):
    api.write(ns, "work", "/in", "one\n")
    run = api.shell(ns, "cat /mnt/work/in > /mnt/work/out && echo two >> /mnt/work/in", vfs="work")
    assert run["status"] == "Finished", run
    assert api.read(ns, "work", "/out") == b"one\n" and api.read(ns, "work", "/in") == b"one\ntwo\n"


def test_063_a_copy_in_tmp_is_readable_for_another_user(api, ns, work):
    api.write(ns, "work", "/a.txt", "data\n")
    api.capsule(ns, [
        {"command": "bash", "arguments": ["-c", "rm -rf /tmp/data && cp -r /mnt/work /tmp/data && "
                                                "chmod -R a+rwX /tmp/data"]},
        {"command": "ls -l /tmp/data > /tmp/data/listing && cat /tmp/data/a.txt", "runAsUser": "sandbox"},
        {"command": "cp /tmp/data/listing /mnt/work/listing"}],
        autoTerminate=True, users=[{"name": "sandbox"}], **work)
    run = api.run(ns, "c")
    assert run["status"] == "Finished", run
    listing = api.read(ns, "work", "/listing").decode()
    assert re.search(r"-rw-rw-rw- 1 maitento maitento 5 .* a\.txt", listing), listing


def test_065_several_file_systems_each_at_its_place(api, ns):
    mounts = []
    for name in ("one", "two", "three"):
        api.call("POST", f"/v1/namespaces/{ns}/vfs", {"name": name}, 201)
        mounts.append({"vfs": Ref(name), "mountName": f"m-{name}"})
    api.capsule(ns, [{"command": "for d in one two three; do echo $d > /mnt/m-$d/f; done"}],
                autoTerminate=True, vfs=mounts)
    assert api.run(ns, "c")["status"] == "Finished"
    assert [api.read(ns, n, "/f") for n in ("one", "two", "three")] == [b"one\n", b"two\n", b"three\n"]
