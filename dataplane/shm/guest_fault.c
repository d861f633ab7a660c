// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guest_fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	WATCHED_MAX =
	        16384, // more than 128 ports with four connections with three tables of eight regions have
	WINDOW_BYTES = 2 << 20,
	DOUBLINGS_MAX = 20,
};

// at: 0 of one that is free, TAKEN of one that is being filled. The rest does not change while at is an address.
enum { TAKEN = 1 };

static struct watched {
	_Atomic(uintptr_t) at;
	size_t bytes, page;
	_Atomic(unsigned) faults;
} all[WATCHED_MAX];

static _Atomic(int) used; // of all: those behind were never taken
static _Atomic(int) wake_fd = -1;
static struct sigaction before;

// Replace what is around the address. Returns false if that cannot be.
static bool cover(struct watched *it, uintptr_t at, uintptr_t address)
{
	unsigned faults = atomic_fetch_add(&it->faults, 1);
	size_t window = it->page > WINDOW_BYTES ? it->page : WINDOW_BYTES, from, bytes;

	window <<= faults < DOUBLINGS_MAX ? faults : DOUBLINGS_MAX;
	from = (address - at) / window * window;
	bytes = it->bytes - from < window ? it->bytes - from : window;
	return mmap((void *)(at + from), bytes, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool is_guests(uintptr_t address)
{
	for (int i = 0; i < atomic_load(&used); i++) {
		uintptr_t at = atomic_load(&all[i].at);

		if (at > TAKEN && address - at < all[i].bytes)
			return cover(&all[i], at, address);
	}
	return false;
}

// Only what a signal handler may call.
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	const uint64_t one = 1;
	int error = errno, fd = atomic_load(&wake_fd);

	if (info->si_code <= 0) { // somebody has sent it
		sigaction(SIGBUS, &before, NULL);
		raise(signal);
	} else if (!is_guests((uintptr_t)info->si_addr)) {
		sigaction(SIGBUS, &before, NULL); // it comes again at once
	} else if (fd >= 0) {
		(void)!write(fd, &one, sizeof(one));
	}
	errno = error;
}

void guest_fault_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART}, now;

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, NULL, &now);
	if (now.sa_sigaction == on_bus_error)
		return;
	before = now;
	sigaction(SIGBUS, &action, NULL);
}

void guest_fault_catch(int fd)
{
	atomic_store(&wake_fd, fd);
	guest_fault_begin();
}

int guest_fault_watch(void *at, size_t bytes, size_t page)
{
	for (int i = 0; i < WATCHED_MAX; i++) {
		uintptr_t nobody = 0;
		int known = atomic_load(&used);

		if (!atomic_compare_exchange_strong(&all[i].at, &nobody, TAKEN))
			continue;
		while (known <= i && !atomic_compare_exchange_weak(&used, &known, i + 1))
			;
		all[i].bytes = bytes;
		all[i].page = page;
		atomic_store(&all[i].faults, 0);
		atomic_store(&all[i].at, (uintptr_t)at);
		return i;
	}
	return -1;
}

void guest_fault_forget(int watched)
{
	atomic_store(&all[watched].at, 0);
}

bool guest_fault_seen(int watched)
{
	return atomic_load(&all[watched].faults) != 0;
}
