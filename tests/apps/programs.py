# SPDX-License-Identifier: Apache-2.0
"""Programs that the tests of apps share."""

# Waits until the file /go is there.
GATE = 'void gate() {\n\twhile (!VfsExists("work", "/go")) { Sleep(20); }\n}\n'
SLEEPER = 'void main() {\n\tPrintLine("asleep");\n\tSleep(600000);\n}\n'
