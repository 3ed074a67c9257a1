# SPDX-License-Identifier: Apache-2.0
"""The client for tasks, and the one source of both: tools/make-sync makes maitento/_sync from it.

net.py is the ground that the rest stands on: streams, queues, waiting. It is written twice, as the two worlds
differ there, with the same names. Everything else is written once, here.
"""
