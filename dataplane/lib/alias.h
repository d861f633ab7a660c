// SPDX-License-Identifier: BSD-3-Clause
// Walker's alias method (ACM TOMS 3(3), 1977), built as Vose does (IEEE TSE 17(9), 1991): a draw from any
// distribution over n rows costs one look-up, 8 bytes a row. Shares are 32 bits: no row is off by more than
// 2^-32 of a row.
#pragma once

#include <stdint.h>

// Of a row, share / 2^32 is the row itself and the rest another one.
struct alias {
	uint32_t share, other;
};

// Rows 0 .. n - 1 with probabilities in proportion to 1 / (row + 1)^exponent. NULL without memory; free().
struct alias *alias_make_zipf(uint32_t n, double exponent);

// Which row to look at, and what becomes of it.
static inline uint32_t alias_row(uint64_t hash, uint32_t n)
{
	return (uint32_t)((hash >> 32) * n >> 32);
}

static inline uint32_t alias_draw(const struct alias *table, uint32_t row, uint64_t hash)
{
	return (uint32_t)hash < table[row].share ? row : table[row].other;
}
