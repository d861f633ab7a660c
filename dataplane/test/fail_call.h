// SPDX-License-Identifier: BSD-3-Clause
// Calls that take memory, a descriptor or a thread, of the objects that are linked with fail_call_wraps (meson.build): one of
// them fails, once.
#pragma once

#include <stdbool.h>

// The call with this number fails, counted from 1 on and from now on, by whatever thread. 0: none.
void fail_call(unsigned number);

// Whether it has; from here on none fails.
bool fail_call_done(void);
