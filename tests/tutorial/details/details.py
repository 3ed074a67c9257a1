# Runs what an argument names and prints how its run ended: capsule NAME, or app NAME QUESTION.
import os
import sys

from maitento import Maitento

mt = Maitento()
if sys.argv[1] == "capsule":
    run = mt.capsules.run(sys.argv[2])
else:
    inputs = {"question": sys.argv[3], "namespaceName": os.environ.get("MAITENTO_NAMESPACE", "tutorials")}
    run = mt.apps.run(sys.argv[2], inputs=inputs)
print(f"{run.status}\n{run.failure_details}")
