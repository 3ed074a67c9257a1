# SPDX-License-Identifier: Apache-2.0
"""Client of Maitento: capsules, their commands and files. Python's standard library only."""
from ._client import Maitento
from ._errors import CapsuleCommandAbortedError, MaitentoError
from ._records import Capsule, CapsuleRun, Command, DeployResult, Namespace, Record, Secret, StoryEntry, Vfs, VfsItem

__all__ = ["Capsule", "CapsuleCommandAbortedError", "CapsuleRun", "Command", "DeployResult",
           "Maitento", "MaitentoError", "Namespace", "Record", "Secret", "StoryEntry", "Vfs", "VfsItem"]
__version__ = "0.1.0"
