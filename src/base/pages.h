// SPDX-License-Identifier: Apache-2.0
// Memory that a process has touched and needs no more, given back to the kernel, for processes of
// which there are thousands and that wait most of their lives. For one thread.
#pragma once

#include "base/macros.h"

// The whole pages of p to p + len: they read as zeros from then on.
void mt_pages_drop(void *p, size_t len);
// What calls that have returned left below the caller's stack frame.
void mt_pages_drop_stack(void);
// Free memory of the heap, wherever in it that lies.
void mt_pages_drop_heap(void);
