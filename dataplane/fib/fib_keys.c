// SPDX-License-Identifier: BSD-3-Clause
#include "fib/fib_state.h"

bool fib_prefix_is_sound(const struct fib_prefix *prefix)
{
	unsigned bits = prefix->family == 4 ? 32 : 128, length = prefix->length;

	if ((prefix->family != 4 && prefix->family != 6) || length > bits)
		return false;
	if (length % 8 && prefix->address[length / 8] & 0xff >> length % 8)
		return false;
	for (unsigned byte = (length + 7) / 8; byte < bits / 8; byte++)
		if (prefix->address[byte])
			return false;
	return true;
}

struct fib_key fib_key_of(uint16_t vnf, const struct fib_prefix *prefix)
{
	struct fib_key key = {.family = prefix->family == 4 ? FIB_V4 : FIB_V6};
	uint32_t address;

	if (key.family == FIB_V4) {
		memcpy(&address, prefix->address, sizeof(address));
		address = rte_be_to_cpu_32(address);
		key.four = prefix->length == 32 ? fib_host_key4(vnf, address)
		                                : fib_key4(vnf, address, prefix->length);
		return key;
	}
	key.six = fib_host_key6(vnf, prefix->address);
	if (prefix->length < 128)
		key.six = fib_key6(&key.six, prefix->length);
	return key;
}

uint16_t fib_key4_read(uint64_t key, struct fib_prefix *prefix)
{
	uint32_t address = (uint32_t)key;
	uint64_t owner = key >> 32;

	*prefix = (struct fib_prefix){.family = 4, .length = 32};
	if (owner >= 2 * FIB_VNFS_MAX || (owner & 1 && address == 0))
		return 0;
	if (owner & 1) {
		prefix->length = (uint8_t)(31 - __builtin_ctz(address));
		address &= address - 1;
	}
	address = rte_cpu_to_be_32(address);
	memcpy(prefix->address, &address, sizeof(address));
	return (uint16_t)(owner >> 1);
}

uint16_t fib_key6_read(const struct cuckoo_wide_key *key, struct fib_prefix *prefix)
{
	uint64_t high = key->high, low = key->low;

	*prefix = (struct fib_prefix){.family = 6, .length = 128};
	if (key->owner >= 2 * FIB_VNFS_MAX || (key->owner & 1 && (high | low) == 0))
		return 0;
	if (key->owner & 1 && low) {
		prefix->length = (uint8_t)(127 - __builtin_ctzll(low));
		low &= low - 1;
	} else if (key->owner & 1) {
		prefix->length = (uint8_t)(63 - __builtin_ctzll(high));
		high &= high - 1;
	}
	high = rte_cpu_to_be_64(high);
	low = rte_cpu_to_be_64(low);
	memcpy(prefix->address, &high, sizeof(high));
	memcpy(prefix->address + sizeof(high), &low, sizeof(low));
	return (uint16_t)(key->owner >> 1);
}
