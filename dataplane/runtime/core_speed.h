// SPDX-License-Identifier: BSD-3-Clause
// How much of its core a CPU has: fewer additions a cycle than at other times, and another hyperthread uses the core. The
// guest of a virtual machine cannot see that one in any other way.
#pragma once

// Returns the independent additions that this thread makes in a cycle of its core, at whatever clock that runs: the median
// of samples over a tenth of a millisecond. A core alone makes as many as it is wide. Below 0: the time did not pass.
double core_speed_measure(void);
