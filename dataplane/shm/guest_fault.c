// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guest_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include <rte_lcore.h>
#include <rte_memory.h>

#include "base/clock.h"
#include "base/log.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 // Linux 5.11
#endif

enum {
	WATCHED_MAX =
	        16384, // more than 128 ports with four connections with three tables of eight regions have
	WINDOW_BYTES = 2 << 20,
	DOUBLINGS_MAX = 20,
};

// at: 0 of one that is free, TAKEN of one that is being filled. The rest does not change while at is an address.
enum { TAKEN = 1, ZEROS_BYTES = 1 << 30, PAUSE_MS = 10000 };

static struct watched {
	_Atomic(uintptr_t) at;
	size_t bytes, page;
	_Atomic(unsigned) faults;
	_Atomic(enum guest_fault) seen;
	struct guest_charge *charge; // or NULL
	_Atomic(size_t) unit;        // of what we make, or 0: we are not asked
	bool asked;                  // or we will be, after a pause
	bool copied;                 // zeros are copied: hugetlbfs has no other way
	uint64_t before;             // of the file, when it was mapped
	_Atomic(uint64_t) made;      // bytes of it, that are in the charge
} all[WATCHED_MAX];

static _Atomic(int) used; // of all: those behind were never taken
static _Atomic(int) wake_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // what is registered changes
static _Atomic(int64_t) paused_until_ms;
static _Atomic(uint64_t) pages; // that we have made
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int asked_fd = -1; // userfaultfd
static void *zeros = MAP_FAILED;

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

// Returns 0 or -errno.
static int page_in(const struct watched *it, uintptr_t page, size_t unit)
{
	struct uffdio_zeropage zero = {.range = {page, unit}};
	struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)zeros, .len = unit};

	if (it->copied)
		return ioctl(asked_fd, UFFDIO_COPY, &copy) ? -errno : 0;
	return ioctl(asked_fd, UFFDIO_ZEROPAGE, &zero) ? -errno : 0;
}

static bool is_paused(void)
{
	return clock_now_ms() < atomic_load(&paused_until_ms);
}

// Returns whether the page is there now, by our hand or another's, or the same touch has to ask again.
static bool make_page(struct watched *it, uintptr_t address)
{
	size_t unit = atomic_load(&it->unit);
	int rc;

	if (unit == 0)
		return it->asked && is_paused(); // since the touch: the kernel makes the page now
	if (!guest_charge_take(it->charge, unit)) {
		atomic_store(&it->seen, GUEST_FAULT_CHARGED);
		return false;
	}
	rc = page_in(it, address / unit * unit, unit);
	if (rc == 0) {
		atomic_fetch_add(&it->made, unit);
		atomic_fetch_add(&pages, 1);
	} else {
		guest_charge_return(it->charge, unit);
	}
	return rc == 0 || rc == -EEXIST || rc == -EAGAIN || (rc == -ENOENT && is_paused());
}

static void note_gone(struct watched *it)
{
	enum guest_fault none = GUEST_FAULT_NONE;

	atomic_compare_exchange_strong(&it->seen, &none, GUEST_FAULT_GONE);
}

// *wake: who ends the connection, or -1.
static bool is_guests(uintptr_t address, int *wake)
{
	for (int i = 0; i < atomic_load(&used); i++) {
		uintptr_t at = atomic_load(&all[i].at);

		if (at <= TAKEN || address - at >= all[i].bytes)
			continue;
		if (make_page(&all[i], address))
			return true;
		note_gone(&all[i]);
		*wake = all[i].charge ? all[i].charge->wake_fd : -1;
		if (*wake < 0)
			*wake = atomic_load(&wake_fd);
		return cover(&all[i], at, address);
	}
	return false;
}

// Only what a signal handler may call.
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	const uint64_t one = 1;
	int error = errno, fd = -1;

	if (info->si_code <= 0) { // somebody has sent it
		sigaction(SIGBUS, &before, NULL);
		raise(signal);
	} else if (!is_guests((uintptr_t)info->si_addr, &fd)) {
		sigaction(SIGBUS, &before, NULL); // it comes again at once
	} else if (fd >= 0) {
		(void)!write(fd, &one, sizeof(one));
	}
	errno = error;
}

// A process without rights may ask for faults of its own code alone; Linux before 5.11 does not know the difference.
static int ask(int flags)
{
	struct uffdio_api api = {.api = UFFD_API,
	                         .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM |
	                                     UFFD_FEATURE_MISSING_HUGETLBFS};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags), error;

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

// DPDK's memory is about to grow, and has grown.
static int before_growth(int socket_id, size_t limit, size_t bytes)
{
	guest_fault_pause();
	return 0;
}

static void after_growth(enum rte_mem_event event, const void *at, size_t bytes, void *argument)
{
	if (event == RTE_MEM_EVENT_ALLOC)
		guest_fault_resume();
}

static void begin_asking(void)
{
	for (unsigned i = 0; i < rte_socket_count(); i++)
		rte_mem_alloc_validator_register("guest_fault", before_growth, rte_socket_id_by_idx(i), 1);
	rte_mem_event_callback_register("guest_fault", after_growth, NULL);
	asked_fd = ask(UFFD_USER_MODE_ONLY);
	if (asked_fd < 0 && errno == EINVAL)
		asked_fd = ask(0);
	if (asked_fd < 0)
		LOG_WARN("userfaultfd: %s: all pages that appear in the memory of drivers count as caused by "
		         "their frames",
		         strerror(errno));
	zeros = mmap(NULL, ZEROS_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void guest_fault_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART}, now;

	pthread_once(&once, begin_asking);
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

// With the lock.
static void register_range(struct watched *it)
{
	const uint64_t can_zero = UINT64_C(1) << _UFFDIO_ZEROPAGE, can_copy = UINT64_C(1) << _UFFDIO_COPY;
	struct uffdio_register wanted = {.range = {atomic_load(&it->at), it->bytes},
	                                 .mode = UFFDIO_REGISTER_MODE_MISSING};

	it->asked = asked_fd >= 0 && ioctl(asked_fd, UFFDIO_REGISTER, &wanted) == 0;
	if (!it->asked)
		return;
	it->copied = !(wanted.ioctls & can_zero);
	if (!it->copied)
		atomic_store(&it->unit, (size_t)getpagesize());
	else if (wanted.ioctls & can_copy && it->page <= ZEROS_BYTES && zeros != MAP_FAILED)
		atomic_store(&it->unit, it->page);
	else
		it->asked = ioctl(asked_fd, UFFDIO_UNREGISTER, &wanted.range) != 0;
}

static void begin_counting(struct watched *it)
{
	pthread_mutex_lock(&lock);
	if (is_paused())
		it->asked = asked_fd >= 0; // later
	else
		register_range(it);
	pthread_mutex_unlock(&lock);
}

void guest_fault_charge(int watched, struct guest_charge *charge, uint64_t file_bytes)
{
	all[watched].charge = charge;
	all[watched].before = file_bytes;
	begin_counting(&all[watched]);
}

void guest_fault_pause(void)
{
	pthread_mutex_lock(&lock);
	atomic_store(&paused_until_ms, clock_now_ms() + PAUSE_MS);
	for (int i = 0; i < atomic_load(&used); i++) {
		struct uffdio_range range = {atomic_load(&all[i].at), all[i].bytes};

		if (range.start > TAKEN && atomic_exchange(&all[i].unit, 0))
			ioctl(asked_fd, UFFDIO_UNREGISTER, &range);
	}
	pthread_mutex_unlock(&lock);
}

void guest_fault_resume(void)
{
	atomic_store(&paused_until_ms, 0);
}

void guest_fault_measured(int watched, uint64_t file_bytes)
{
	struct watched *it = &all[watched];
	uint64_t made = atomic_load(&it->made), grown = file_bytes > it->before ? file_bytes - it->before : 0;
	bool counts_growth = it->charge && !it->asked;
	uint64_t most = counts_growth ? grown : file_bytes;

	if (it->asked && atomic_load(&it->unit) == 0)
		begin_counting(it);
	if (made > most) {
		guest_charge_return(it->charge, made - most);
		atomic_fetch_sub(&it->made, made - most);
	} else if (counts_growth && !guest_charge_take(it->charge, grown - made)) {
		atomic_store(&it->seen, GUEST_FAULT_CHARGED);
	} else if (counts_growth) {
		atomic_fetch_add(&it->made, grown - made);
	}
}

uint64_t guest_fault_pages(void)
{
	return atomic_load(&pages);
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
		atomic_store(&all[i].seen, GUEST_FAULT_NONE);
		atomic_store(&all[i].unit, 0);
		atomic_store(&all[i].made, 0);
		all[i].charge = NULL;
		all[i].asked = false;
		atomic_store(&all[i].at, (uintptr_t)at);
		return i;
	}
	return -1;
}

void guest_fault_forget(int watched)
{
	atomic_store(&all[watched].at, 0);
}

enum guest_fault guest_fault_seen(int watched)
{
	return atomic_load(&all[watched].seen);
}
