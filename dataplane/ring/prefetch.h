// SPDX-License-Identifier: BSD-3-Clause
// Fetching a line that is to be written. Never faults, whatever the address.
#pragma once

// The line for ourselves alone. The compiler would make this a prefetch to read, since the oldest CPUs that
// it builds for know no other; these take prefetchw for a no-op.
static inline void prefetch_to_write(void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" ::"m"(*(char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}
