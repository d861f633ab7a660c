// SPDX-License-Identifier: BSD-3-Clause
// Hot code is compiled several times, for different instruction sets, and chosen when the process starts: the
// program is portable, and no faster for having been built on the machine it runs on.
//
// A source in meson's isa_sources is compiled once for each set, with ISA_NAME(f) as f_scalar, f_avx2 or
// f_avx512; its module has a table of these by enum isa and looks up isa_current() once, at set-up, never per
// packet. "scalar" is what DPDK itself is built for (x86-64 with SSE4.2),
// and the only set on other CPUs.
#pragma once

#include <stdbool.h>

// Defined where the instruction sets of x86-64 are compiled; -DISA_PORTABLE compiles what other CPUs run.
#if defined(__x86_64__) && !defined(ISA_PORTABLE)
#define ISA_X86 1
#endif

enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_COUNT };

#define ISA_JOIN_(name, suffix) name##_##suffix
#define ISA_JOIN(name, suffix)  ISA_JOIN_(name, suffix)
#define ISA_NAME(name)          ISA_JOIN(name, ISA_SUFFIX) // in isa_sources only

// Declares name for each set: ISA_DECLARE(unsigned, deliver, (struct ring *to, ...));
#define ISA_DECLARE(type, name, arguments)                                                                   \
	type name##_scalar arguments;                                                                        \
	type name##_avx2 arguments;                                                                          \
	type name##_avx512 arguments

// The table of them, by enum isa.
#ifdef ISA_X86
#define ISA_TABLE(name)                                                                                      \
	{                                                                                                    \
		name##_scalar, name##_avx2, name##_avx512                                                    \
	}
#else
#define ISA_TABLE(name)                                                                                      \
	{                                                                                                    \
		name##_scalar                                                                                \
	}
#endif

// The best that this CPU has; what isa_force() said before. The first call chooses: it is made before there
// are threads; after it, any thread.
enum isa isa_current(void);

bool isa_supported(enum isa isa);
const char *isa_text(enum isa isa);

// Use this one: "scalar", "avx2" or "avx512". Before any worker starts. Returns 0, -EINVAL for a name that
// there is not, or -ENOTSUP if this CPU has not got it.
int isa_force(const char *name);
