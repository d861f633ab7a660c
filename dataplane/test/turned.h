// SPDX-License-Identifier: BSD-3-Clause
// Shared memory that changes while it is read: after a load from it a bit of what was read may be another, for some loads. Code
// that reads a word twice then sees it two ways. A test includes the source that it looks at behind this header: only loads from
// the shared memory may be in it. The same seed does the same.
#pragma once

#include <stddef.h>
#include <stdint.h>

static uint64_t turned_state = 1; // the seed: not 0
static struct {
	uint8_t *byte; // NULL: no bit is turned
	uint8_t bits;
	unsigned loads; // until it is turned back
} turned;

static uint64_t turned_random(void) // xorshift64
{
	turned_state ^= turned_state << 13;
	turned_state ^= turned_state >> 7;
	turned_state ^= turned_state << 17;
	return turned_state;
}

// Before the memory goes.
static void turned_forget(void)
{
	turned.byte = NULL;
}

// After a load of so many bytes. One in RARE is turned.
static void turned_after(void *at, size_t bytes)
{
	enum { RARE = 16, LOADS = 4 };
	uint64_t random;

	if (turned.byte && turned.loads--)
		return;
	if (turned.byte)
		*turned.byte ^= turned.bits;
	turned.byte = NULL;
	random = turned_random();
	if (random % RARE)
		return;
	turned.byte = (uint8_t *)at + (random >> 8) % bytes;
	turned.bits = (uint8_t)(1u << (random >> 16 & 7));
	turned.loads = (random >> 24) % LOADS;
	*turned.byte ^= turned.bits;
}

// Of what is included from here on, until it is undefined. The name within is the compiler's: no macro is replaced in itself.
#define __atomic_load_n(at, order)                                                                           \
	({                                                                                                   \
		__typeof__(*(at)) loaded_ = __atomic_load_n(at, order);                                      \
		turned_after((void *)(uintptr_t)(at), sizeof(loaded_));                                      \
		loaded_;                                                                                     \
	})
