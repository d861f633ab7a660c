// SPDX-License-Identifier: BSD-3-Clause
#include "tester/stamps.h"

#include <stdlib.h>
#include <string.h>

struct stamps *stamps_create(void)
{
	struct stamps *stamps = malloc(sizeof(*stamps));

	if (stamps)
		memset(stamps, 0, sizeof(*stamps)); // touched: no page is missing when the first probe comes
	return stamps;
}

void stamps_free(struct stamps *stamps)
{
	free(stamps);
}

json_t *stamps_list(const struct stamps *stamps, uint32_t from, uint32_t limit)
{
	uint32_t count = stamps ? stamps->count : 0;
	uint32_t end = from < count && count - from > limit ? from + limit : count;
	json_t *list = json_array();

	for (uint32_t i = from; i < end; i++) {
		const struct stamp *s = &stamps->log[i];

		json_array_append_new(list,
		                      json_pack("[i, I, I, I, I, I, i]", s->stream, (json_int_t)s->sequence,
		                                (json_int_t)s->in_tsc, (json_int_t)s->out_tsc,
		                                (json_int_t)s->port_ns, (json_int_t)s->empty_tsc, s->met));
	}
	return json_pack("{s:o, s:o, s:I}", "stamps", list, "next",
	                 end < count ? json_integer(end) : json_null(), "lost",
	                 (json_int_t)(stamps ? stamps->lost : 0));
}
