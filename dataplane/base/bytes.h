// SPDX-License-Identifier: BSD-3-Clause
// Words in memory, at any alignment. load and store keep the order of the bytes: what is read from a frame is in
// network byte order. get_be and put_be convert: the value is a number.
#pragma once

#include <rte_byteorder.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline void store16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline void store32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t get_be16(const uint8_t *at)
{
	return rte_be_to_cpu_16(load16(at));
}

static inline void put_be16(uint8_t *at, uint16_t value)
{
	store16(at, rte_cpu_to_be_16(value));
}
