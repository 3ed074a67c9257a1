# SPDX-License-Identifier: Apache-2.0
"""The client for threads. All but net.py is made from maitento/_async by tools/make-sync."""
