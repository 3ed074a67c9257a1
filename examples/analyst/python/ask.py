"""Asks the analyst about the logs: python3 ask.py [QUESTION]"""

import os
import sys
from pathlib import Path

from maitento import Maitento

namespace = os.environ.get("MAITENTO_NAMESPACE", "investigations")
mt = Maitento(namespace=namespace)
if not mt.namespaces.find(namespace):
    mt.namespaces.create(namespace)
if not mt.vfs.find_by_name("access-logs"):
    mt.vfs.create("access-logs")
mt.vfs.open("access-logs").write_text("/access.log", Path("../logs/access.log").read_text(encoding="utf-8"))
mt.deploy("../maitento")

question = sys.argv[1] if len(sys.argv) > 1 else "Which page failed most often?"
run = mt.apps.run("analyst", inputs={"question": question, "rounds": "8"})
for line in run.console_outputs:
    print(line.text.rstrip())
if run.status != "Finished":
    sys.exit(f"no answer: {run.failure_details}")
print(f"\nAnswer: {run.return_value}")
