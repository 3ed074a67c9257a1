# SPDX-License-Identifier: Apache-2.0
"""The calls that acceptance table F promises, written out as users write them in each language (tests/sdk/table-f), and what
each member is called there. Each script prints what it got: the same in all languages."""
import itertools
import os
import shutil
import subprocess

import pytest

from languages import LANGUAGES, ROOT, need

SCRIPTS = {"typescript": ["node", "table.ts"], "python": ["/usr/bin/python3", "table.py"], "csharp": ["dotnet", "run", "table.cs"]}
PRINTED = """\
default namespace True
found False
found True
file system sales
text 29
deployed 3
report Finished 2
command 0 'a  b $HOME\\n' '' Finished
command 3 '' 'cat: /nowhere: No such file or directory\\n' Error
sent True 0
followed slow
read later slow
options 1 00:06:00 4711
options s3cret x y
extended 00:20:00
files Träger 2 ['note', 'raw']
events 4
event 4
app ['greeting Ada\\n'] Hello Ada
aborted True True True
error notFound 404
"""
_names = itertools.count(1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_090_091_every_call_has_its_name_and_its_arguments_in_their_order(server, language, tmp_path):
    need(language)
    folder = shutil.copytree(ROOT / "tests" / "sdk" / "table-f", tmp_path / "table-f")
    namespace = f"table-{os.getpid()}-{next(_names)}"
    done = subprocess.run([str(ROOT / "tools" / "with-sdk"), language, *SCRIPTS[language], namespace], cwd=folder,
                          env={**os.environ, **server.environment(), "MAITENTO_NAMESPACE": namespace}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr[-3000:]
