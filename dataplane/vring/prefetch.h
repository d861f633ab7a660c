// SPDX-License-Identifier: BSD-3-Clause
// A cache line for ourselves alone, before it is written.
#pragma once

// __builtin_prefetch(at, 1) would become a prefetch to read, since the oldest CPUs that the compiler builds
// for know no other; these take prefetchw for a no-op.
static inline void prefetch_to_write(void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" ::"m"(*(char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}
