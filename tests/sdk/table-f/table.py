# SPDX-License-Identifier: Apache-2.0
"""The calls of the three SDKs that are promised by name, one after the other: table.ts, table.py and table.cs print the same."""
import sys

from maitento import CapsuleCommandAbortedError, Maitento, MaitentoError

ns = sys.argv[1]
mt = Maitento()

print("default namespace", mt.default_namespace == ns)
print("found", bool(mt.namespaces.find(ns)))
if not mt.namespaces.find(ns):
    mt.namespaces.create(ns)
print("found", mt.namespaces.find(ns).name == ns)
if not mt.vfs.find_by_name("sales"):
    mt.vfs.create("sales")
print("file system", mt.vfs.find_by_name("sales").name)
files = mt.vfs.open("sales")
files.write_text("/sales.csv", "order,product\n1001,Desk lamp\n")
print("text", len(files.read_text("/sales.csv")))
mt.secrets.create("token", "s3cret")
print("deployed", len(mt.deploy("maitento").created))

run = mt.capsules.run("report")
print("report", run.status, files.read_text("/report.md").strip())

capsule = mt.capsules.start("bench")
listing = mt.capsule_runs.exec_and_wait(capsule.id, "echo", ["a  b", "$HOME"], run_as_user="sandbox")
print("command", listing.exit_code, repr(listing.output_standard), repr(listing.output_error), listing.status)
failed = mt.capsule_runs.exec_and_wait(capsule.id, "cat /nowhere; exit 3")
print("command", failed.exit_code, repr(failed.output_standard), repr(failed.output_error), failed.status)
slow = mt.capsule_runs.exec(capsule.id, "until [ -e /tmp/go ]; do sleep 0.05; done; echo slow", run_async=True)
print("sent", slow.exit_code is None, mt.capsule_runs.exec_and_wait(capsule.id, "touch", ["/tmp/go"]).exit_code)
print("followed", b"".join(mt.capsule_runs.output(capsule.id, slow.id, follow=True)).decode().strip())
print("read later", mt.capsule_runs.get_command(capsule.id, slow.id).output_standard.strip())

started = mt.capsules.start(
    "bench", version=1, environment={"WORD": "x y"}, max_duration="00:06:00",
    startup=[{"command": "cp", "arguments": ["/mnt/secrets/word", "/mnt/more/copied"]}],
    vfs=[{"vfs": "sales", "mountName": "more"}], secrets=[{"secret": "token", "mountName": "word"}], labels={"ticket": "4711"})
print("options", started.version, started.max_duration, started.labels["ticket"])
print("options", mt.capsule_runs.exec_and_wait(started.id, "cat /mnt/more/copied; echo \" $WORD\"").output_standard.strip())
print("extended", mt.capsule_runs.extend(started.id, "00:20:00").max_duration)
inside = mt.capsule_runs.files(started.id)
inside.write_text("/tmp/note", "Träger\n")
inside.write("/tmp/raw", b"\x00\xff")
print("files", inside.read_text("/tmp/note").strip(), len(inside.read("/tmp/raw")), [f.name for f in inside.list("/tmp")])

with mt.events.open() as events:
    print("events", mt.capsule_runs.exec_and_wait(started.id, "exit 4").exit_code)
    print("event", next(e.exit_code for e in events if e.event == "change" and e.kind == "command" and e.change == "ended"))

app = mt.apps.run("greet", inputs={"name": "Ada"})
print("app", [output.text for output in app.console_outputs], app.return_value)

mt.capsule_runs.terminate(started.id)
mt.capsule_runs.terminate(capsule.id)
try:
    mt.capsule_runs.exec_and_wait(started.id, "true")
except CapsuleCommandAbortedError as error:
    gone = error.command is None or error.command.status == "Aborted"  # it may have been sent a moment before the end
    print("aborted", bool(error.reason), gone, error.run.failure_details.startswith("stopped by"))
try:
    mt.capsules.start("nothing")
except MaitentoError as error:
    print("error", error.code, error.status)
