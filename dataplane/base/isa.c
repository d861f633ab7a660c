// SPDX-License-Identifier: BSD-3-Clause
#include "base/isa.h"

#include <errno.h>
#include <string.h>

static const char *const texts[ISA_COUNT] = {"scalar", "avx2", "avx512"};
static enum isa current = ISA_COUNT; // not chosen yet

bool isa_supported(enum isa isa)
{
	switch (isa) {
	case ISA_SCALAR:
		return true;
#ifdef ISA_X86
	case ISA_AVX2:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
	case ISA_AVX512:
		return isa_supported(ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
		       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512dq");
#endif
	default:
		return false;
	}
}

enum isa isa_current(void)
{
	if (current == ISA_COUNT)
		current = isa_supported(ISA_AVX512) ? ISA_AVX512
		          : isa_supported(ISA_AVX2) ? ISA_AVX2
		                                    : ISA_SCALAR;
	return current;
}

const char *isa_text(enum isa isa)
{
	return texts[isa];
}

int isa_force(const char *name)
{
	for (unsigned i = 0; i < ISA_COUNT; i++)
		if (strcmp(texts[i], name) == 0) {
			if (!isa_supported((enum isa)i))
				return -ENOTSUP;
			current = (enum isa)i;
			return 0;
		}
	return -EINVAL;
}
