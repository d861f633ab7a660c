// SPDX-License-Identifier: BSD-3-Clause
// Maglev's consistent hashing (Eisenbud et al., NSDI 2016, section 3.4): a lookup table of prime size that is
// shared out evenly, and changes little when a backend comes or goes. Pure; memory is the caller's.
//
// Hashes, so that others build the same table: of a name, Jenkins' lookup3 (hashlittle) with the initial
// values 0 for the offset and 1 for the skip; of a flow, CRC-32C (maglev_hash).
#pragma once

#include <rte_hash_crc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/flow_key.h"

enum {
	MAGLEV_NONE = UINT16_MAX,
	MAGLEV_BACKENDS_MAX = 4096,
	MAGLEV_SIZE_MIN = 101,
	MAGLEV_SIZE_MAX = 1 << 20
};

struct maglev_backend {
	uint32_t offset, skip; // of its permutation
	uint32_t weight;       // turns that it takes where the others take one each; 0: out
	uint32_t at;           // scratch: where its permutation has come to
};

bool maglev_is_prime(uint32_t n);

// The permutation of a name in a table of so many entries (prime). Weight is left alone.
void maglev_permute(struct maglev_backend *backend, const char *name, uint32_t size);

// Share the table out among n backends (MAGLEV_BACKENDS_MAX at most), in turns, in their order: entries are
// numbers of backends, or MAGLEV_NONE if all are out.
void maglev_fill(uint16_t *table, uint32_t size, struct maglev_backend *backends, unsigned n);

// The paper's hash of the 5-tuple: CRC-32C over the bytes of the key, from 0, not inverted at either end.
static inline uint32_t maglev_hash(const struct flow_key *key)
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < FLOW_KEY_WORDS; i++)
		hash = rte_hash_crc_8byte(key->words[i], hash);
	return hash;
}
