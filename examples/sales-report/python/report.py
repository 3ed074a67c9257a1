"""Puts the takings of the fruit stalls into a file system, has a capsule sum them up, and prints the report."""

import os
import sys
from pathlib import Path

from maitento import Maitento

namespace = os.environ.get("MAITENTO_NAMESPACE", "demo")
mt = Maitento(namespace=namespace)

# A capsule that mounts a file system is deployed after it was made. What is there already is left as it is.
if not mt.namespaces.find(namespace):
    mt.namespaces.create(namespace)
if not mt.vfs.find_by_name("sales-data"):
    mt.vfs.create("sales-data")

files = mt.vfs.open("sales-data")
for name in ["market.csv", "report.py"]:
    files.write_text(f"/{name}", Path("../data", name).read_text(encoding="utf-8"))
mt.deploy("../maitento")

# The capsule runs its script and ends. A run that went wrong says why.
run = mt.capsules.run("sales-report")
if run.status != "Finished":
    sys.exit(f"the capsule ended {run.status}: {run.failure_details}")
print(files.read_text("/report.md"))
