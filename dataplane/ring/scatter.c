// SPDX-License-Identifier: BSD-3-Clause
#include "ring/scatter.h"

#include <rte_common.h>
#include <rte_memcpy.h>

static inline void move_on(struct scatter *at, uint32_t run)
{
	at->offset += run;
	if (at->offset == at->piece->length) {
		at->piece++;
		at->offset = 0;
	}
}

void scatter_copy(struct scatter *to, struct scatter *from, uint32_t length)
{
	while (length) {
		uint32_t run = RTE_MIN(to->piece->length - to->offset, from->piece->length - from->offset);

		run = RTE_MIN(run, length);
		rte_memcpy(to->piece->data + to->offset, from->piece->data + from->offset, run);
		move_on(to, run);
		move_on(from, run);
		length -= run;
	}
}
