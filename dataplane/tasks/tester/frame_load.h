// SPDX-License-Identifier: BSD-3-Clause
// Words of a frame as they lie in memory, at any alignment.
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}
