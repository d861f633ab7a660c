// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guest_charge.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/ram.h"

enum {
	SHARE = 4, // of the memory, for all ports
	SHORT = 2, // a part of it
	RAM_MS = 1000,
};

static _Atomic(unsigned) ports;

void guest_charge_open(struct guest_charge *charge, uint32_t chosen_mb, int wake_fd)
{
	charge->wake_fd = wake_fd;
	atomic_fetch_add(&ports, 1);
	charge->chosen = (uint64_t)chosen_mb << 20;
	guest_charge_begin(charge, true);
}

void guest_charge_close(struct guest_charge *charge)
{
	atomic_fetch_sub(&ports, 1);
}

// Connections may come by the thousand a second. *now: it is not that of a moment ago.
static struct ram ram_lately(bool *now)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ram ram;
	static uint64_t until_ms;
	uint64_t now_ms = clock_now_ms();
	struct ram found;

	pthread_mutex_lock(&lock);
	*now = now_ms >= until_ms;
	if (*now) {
		ram = ram_read("");
		until_ms = now_ms + RAM_MS;
	}
	found = ram;
	pthread_mutex_unlock(&lock);
	return found;
}

void guest_charge_begin(struct guest_charge *charge, bool alone)
{
	bool now;
	struct ram ram = ram_lately(&now);
	unsigned sharing = atomic_load(&ports);

	atomic_store(&charge->most,
	             charge->chosen ? charge->chosen : ram.total / SHARE / (sharing ? sharing : 1));
	if (alone && now && ram.available >= ram.total / SHORT)
		atomic_store(&charge->made, 0);
}

bool guest_charge_take(struct guest_charge *charge, uint64_t bytes)
{
	if (atomic_fetch_add(&charge->made, bytes) + bytes <= atomic_load(&charge->most))
		return true;
	guest_charge_return(charge, bytes);
	return false;
}

void guest_charge_return(struct guest_charge *charge, uint64_t bytes)
{
	atomic_fetch_sub(&charge->made, bytes);
}

const char *guest_charge_text(const struct guest_charge *charge, char text[GUEST_CHARGE_TEXT_BYTES])
{
	snprintf(text, GUEST_CHARGE_TEXT_BYTES,
	         "its frames have made %" PRIu64
	         " MB of pages that its memory did not have, all that it may; "
	         "\"max_charged_mb\" of the port allows more",
	         atomic_load(&charge->most) >> 20);
	return text;
}
