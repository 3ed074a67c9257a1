"""Sends commands to a capsule that stays up. Run report.py first: it makes the file system that the capsule mounts."""

import os

from maitento import CapsuleCommandAbortedError, Maitento

mt = Maitento(namespace=os.environ.get("MAITENTO_NAMESPACE", "demo"))
mt.deploy("../maitento")

# It need not have started: a command waits for its turn.
capsule = mt.capsules.start("workbench")

# Each argument arrives as the one word that it is here, whatever is in it.
words = ["--count", "-e", ",Cherries,", "-e", "no $HOME, no 'quotes'", "/mnt/data/market.csv"]
cherries = mt.capsule_runs.exec_and_wait(capsule.id, "grep", words)
print(f"exit code {cherries.exit_code}: {cherries.output_standard.rstrip()}")

# A command that fails is a result, too. The file system is for the capsule's default user alone.
denied = mt.capsule_runs.exec_and_wait(capsule.id, "cat", ["/mnt/data/market.csv"], run_as_user="sandbox")
print(f"exit code {denied.exit_code}: {denied.output_error.rstrip()}")

mt.capsule_runs.terminate(capsule.id)

# A command that can't come to its end any more is an error, which says why.
try:
    mt.capsule_runs.exec_and_wait(capsule.id, "true")
except CapsuleCommandAbortedError as error:
    print(f"too late: {error.reason}")
