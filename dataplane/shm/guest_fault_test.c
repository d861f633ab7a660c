// SPDX-License-Identifier: BSD-3-Clause
// SIGBUS in a mapping that is watched, and elsewhere.
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "shm/guest_fault.h"
#include "test/unit.h"
#include "test/vhost_peer.h"

enum { PAGE = 4096, BYTES = 8 << 20, HUGE = 2 << 20 };

static uint8_t *map(int fd, size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void a_truncated_file_reads_as_zeros(void **state)
{
	int fd = peer_memory(0, BYTES), bell = eventfd(0, EFD_NONBLOCK);
	uint8_t *at = map(fd, BYTES);
	int watched = guest_fault_watch(at, BYTES, PAGE);
	eventfd_t rung = 0;

	guest_fault_catch(bell);
	memset(at, 1, BYTES);
	assert_false(guest_fault_seen(watched));
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(at[0], 1); // its page is still there
	assert_false(guest_fault_seen(watched));
	assert_int_equal(at[BYTES - 1], 0);
	assert_true(guest_fault_seen(watched));
	memset(at + PAGE, 2, BYTES - PAGE);
	assert_int_equal(at[BYTES / 2], 2);
	assert_int_equal(eventfd_read(bell, &rung), 0);
	assert_in_range(rung, 2, 4); // of 8 MB
	guest_fault_forget(watched);
	guest_fault_catch(-1);
	munmap(at, BYTES);
	close(fd);
	close(bell);
}

static void *write_all(void *at)
{
	memset(at, 3, BYTES);
	return NULL;
}

static void threads_may_fault_at_once(void **state)
{
	int fd = peer_memory(0, BYTES);
	uint8_t *at = map(fd, BYTES);
	int watched = guest_fault_watch(at, BYTES, PAGE);
	pthread_t threads[4];

	guest_fault_catch(-1);
	for (unsigned round = 0; round < 20; round++) {
		assert_ptr_equal(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
		assert_int_equal(ftruncate(fd, BYTES), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, write_all, at), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	guest_fault_forget(watched);
	munmap(at, BYTES);
	close(fd);
}

// The file may be longer than there are pages: they are wanted when they are touched.
static void hugepages_that_there_are_not(void **state)
{
	const size_t bytes = (size_t)1 << 40;
	int fd = peer_memory(MFD_HUGETLB, (off_t)bytes), watched;
	bool seen;
	uint8_t *at = fd < 0 ? NULL : map(fd, bytes);

	if (at == NULL)
		skip();
	guest_fault_catch(-1);
	watched = guest_fault_watch(at, bytes, HUGE);
	for (size_t i = 0; i < 4096 && !guest_fault_seen(watched); i++)
		at[i * HUGE] = 1;
	seen = guest_fault_seen(watched);
	if (seen)
		at[bytes - 1] = 1;
	guest_fault_forget(watched);
	munmap(at, bytes);
	close(fd);
	if (!seen)
		skip(); // there are
}

static void many_mappings_are_watched(void **state)
{
	int numbers[16384], none;

	for (unsigned i = 0; i < 16384; i++)
		assert_true((numbers[i] = guest_fault_watch((void *)(uintptr_t)(PAGE + i), 1, PAGE)) >= 0);
	none = guest_fault_watch((void *)(uintptr_t)PAGE, 1, PAGE);
	assert_int_equal(none, -1);
	for (unsigned i = 0; i < 16384; i++)
		guest_fault_forget(numbers[i]);
}

// How a process ends that does this.
static int ends_by(void (*act)(uint8_t *at))
{
	int fd = peer_memory(0, BYTES), status = 0;
	uint8_t *at = map(fd, BYTES);
	pid_t child;

	assert_int_equal(ftruncate(fd, 0), 0);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGBUS, SIG_DFL); // not a sanitizer's
		guest_fault_catch(-1);
		act(at);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	munmap(at, BYTES);
	close(fd);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_beside(uint8_t *at)
{
	guest_fault_watch(at, BYTES / 2, PAGE);
	(void)*(volatile uint8_t *)at;
	(void)*(volatile uint8_t *)(at + BYTES / 2);
}

static void read_what_is_forgotten(uint8_t *at)
{
	guest_fault_forget(guest_fault_watch(at, BYTES, PAGE));
	(void)*(volatile uint8_t *)at;
}

static void be_sent_one(uint8_t *at)
{
	guest_fault_watch(at, BYTES, PAGE);
	kill(getpid(), SIGBUS);
	sleep(1);
}

static void elsewhere_it_is_what_it_was(void **state)
{
	assert_int_equal(ends_by(read_beside), SIGBUS);
	assert_int_equal(ends_by(read_what_is_forgotten), SIGBUS);
	assert_int_equal(ends_by(be_sent_one), SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(elsewhere_it_is_what_it_was), // first: nothing is caught yet
	        cmocka_unit_test(a_truncated_file_reads_as_zeros),
	        cmocka_unit_test(threads_may_fault_at_once),
	        cmocka_unit_test(hugepages_that_there_are_not),
	        cmocka_unit_test(many_mappings_are_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
