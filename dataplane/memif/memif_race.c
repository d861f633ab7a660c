// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a memif whose memory changes while they read it: after a load from it a bit of what was read may be another,
// for some loads. What an end reads twice it sees two ways; then a frame of it lies outside of the memory that it may
// touch. Ends, polls and what must hold are those of memif_fuzz.c. The same seed does the same.
//
//     memif_race [ROUNDS [SEED]]
#include <stdlib.h>

#include "base/isa.h"
#include "shm/doorbell.h"
#include "shm/frames.h"

// A copy, beside that of the library: all of its loads are from the shared memory.
#include "test/turned.h"
#define ISA_SUFFIX scalar
#include "memif/memif_ring.c"
#include "memif/memif_run.c"
#undef __atomic_load_n

#include "memif/memif_fuzz.c"

enum { ROUND_BYTES = 1 << 12 };

static bool has_stopped(const struct end *end)
{
	bool stopped = false;

	for (unsigned pair = 0; pair < PAIRS; pair++)
		for (int way = 0; way < MEMIF_WAYS; way++)
			stopped |= !end->there[pair][way] || end->rings[pair][way].fault != MEMIF_OK;
	return stopped;
}

// Rings that have stopped begin afresh, at both ends: the rest of the round is not wasted.
static void revive(struct end *server, struct end *client)
{
	if (has_stopped(client) || has_stopped(server)) {
		open_rings(client);
		open_rings(server);
	}
}

static void end_both(struct end *server, struct end *client)
{
	turned_forget(); // its memory goes
	memif_link_end(&server->link);
	memif_link_end(&client->link);
}

static void one_round(void)
{
	const struct memif_link_config driven = {.name = "race",
	                                         .pairs = PAIRS,
	                                         .log2_size = LOG2_SIZE,
	                                         .shares_buffers = turned_random() & 1};
	struct end server = {0}, client = {0};
	uint8_t data[ROUND_BYTES];
	struct input in = {data, sizeof(data)};

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(turned_random() >> 24);
	while (!memif_connect(&server.link, &served, &client.link, &driven))
		end_both(&server, &client); // a cookie has changed
	while (in.left) {
		revive(&server, &client);
		poll_end(&client, &in);
		poll_end(&server, &in);
	}
	end_both(&server, &client);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;

	turned_state = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	isa_force("scalar");
	for (unsigned long i = 0; i < rounds; i++)
		one_round();
	fuzz_report();
	return 0;
}
