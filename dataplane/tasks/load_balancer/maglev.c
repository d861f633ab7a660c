// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/load_balancer/maglev.h"

#include <rte_jhash.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/config.h"

bool maglev_is_prime(uint32_t n)
{
	for (uint32_t i = 2; (uint64_t)i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n >= 2;
}

void maglev_permute(struct maglev_backend *backend, const char *name, uint32_t size)
{
	alignas(uint32_t) char key[CONFIG_NAME_MAX]; // the hash reads words
	uint32_t length = (uint32_t)strnlen(name, sizeof(key));

	memcpy(key, name, length);
	backend->offset = rte_jhash(key, length, 0) % size;
	backend->skip = rte_jhash(key, length, 1) % (size - 1) + 1;
}

// The next entry of its permutation that is still free. There is one.
static uint32_t entry_next(const uint16_t *table, uint32_t size, struct maglev_backend *backend)
{
	uint32_t entry;

	do {
		entry = backend->at;
		backend->at += backend->skip;
		if (backend->at >= size)
			backend->at -= size;
	} while (table[entry] != MAGLEV_NONE);
	return entry;
}

void maglev_fill(uint16_t *table, uint32_t size, struct maglev_backend *backends, unsigned n)
{
	uint16_t in[MAGLEV_BACKENDS_MAX]; // those that take turns: of 4096 it may be one
	uint32_t filled = 0;
	unsigned count = 0;

	memset(table, 0xff, size * sizeof(*table)); // MAGLEV_NONE
	for (unsigned i = 0; i < n; i++) {
		backends[i].at = backends[i].offset;
		if (backends[i].weight)
			in[count++] = (uint16_t)i;
	}
	while (count && filled < size)
		for (unsigned k = 0; k < count; k++)
			for (uint32_t turn = 0; turn < backends[in[k]].weight && filled < size;
			     turn++, filled++)
				table[entry_next(table, size, &backends[in[k]])] = in[k];
}
