// SPDX-License-Identifier: BSD-3-Clause
// A group of tests once for each instruction set that this CPU has (isa.h).
#pragma once

#include <stdio.h>

#include "base/isa.h"
#include "test/unit.h"

// How many of tests failed, over all sets. A macro since cmocka's is one: it needs the array.
#define RUN_FOR_EACH_ISA(name, tests)                                                                        \
	__extension__({                                                                                      \
		int failed_ = 0;                                                                             \
                                                                                                             \
		for (unsigned isa_ = 0; isa_ < ISA_COUNT; isa_++) {                                          \
			if (isa_force(isa_text((enum isa)isa_)) != 0)                                        \
				continue;                                                                    \
			printf("%s: %s\n", (name), isa_text((enum isa)isa_));                                \
			failed_ += cmocka_run_group_tests_name((name), (tests), NULL, NULL);                 \
		}                                                                                            \
		failed_;                                                                                     \
	})
