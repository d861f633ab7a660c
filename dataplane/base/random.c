// SPDX-License-Identifier: BSD-3-Clause
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

// Part of each row, 1 on average. Returns NULL without memory.
static double *zipf_parts(uint32_t n, double exponent)
{
	double *parts = malloc(n * sizeof(*parts)), sum = 0;

	if (!parts)
		return NULL;
	for (uint32_t i = n; i-- > 0;) { // small ones first: less is lost in the sum
		parts[i] = pow(i + 1.0, -exponent);
		sum += parts[i];
	}
	for (uint32_t i = 0; i < n; i++)
		parts[i] *= n / sum;
	return parts;
}

static void row_set(struct alias *row, double part, uint32_t other)
{
	double share = part * 0x1p32;

	row->share = share < (double)UINT32_MAX ? (uint32_t)share : UINT32_MAX;
	row->other = other;
}

// Parts fall with the row, so a row above 1 is found from the left. Each row below 1 is filled up by the row
// that gives at that time, which may fall below 1 by that and is filled up by the next. What is left over by
// rounding is itself.
static void rows_fill(struct alias *table, double *parts, uint32_t n)
{
	uint32_t giving = 0, end = n;

	while (end > giving + 1 && parts[end - 1] < 1) {
		uint32_t small = --end;

		row_set(&table[small], parts[small], giving);
		parts[giving] -= 1 - parts[small];
		while (giving + 1 < end && parts[giving] < 1) {
			row_set(&table[giving], parts[giving], giving + 1);
			parts[giving + 1] -= 1 - parts[giving];
			giving++;
		}
	}
	for (uint32_t i = giving; i < end; i++)
		row_set(&table[i], 1, i);
}

struct alias *alias_make_zipf(uint32_t n, double exponent)
{
	struct alias *table = malloc(n * sizeof(*table));
	double *parts = zipf_parts(n, exponent);

	if (table && parts)
		rows_fill(table, parts, n);
	if (!table || !parts) {
		free(table);
		table = NULL;
	}
	free(parts);
	return table;
}
