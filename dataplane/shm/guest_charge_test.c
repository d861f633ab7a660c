// SPDX-License-Identifier: BSD-3-Clause
// Pages that we make in another end's memory are counted, exactly, and there is an end to them.
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shm/guest_fault.h"
#include "test/unit.h"
#include "test/vhost_peer.h"

enum { PAGE = 4096, BYTES = 8 << 20, MB = 1 << 20 };

static struct rig {
	struct guest_charge charge;
	int fd, watched;
	uint8_t *at;
} r;

static uint64_t file_bytes(void)
{
	struct stat file;

	fstat(r.fd, &file);
	return (uint64_t)file.st_blocks * 512;
}

static void map(void)
{
	r.at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, r.fd, 0);
	r.watched = guest_fault_watch(r.at, BYTES, PAGE);
	guest_fault_charge(r.watched, &r.charge, file_bytes());
}

static void unmap(void)
{
	guest_fault_forget(r.watched);
	munmap(r.at, BYTES);
}

static int begin(void **state)
{
	r = (struct rig){.fd = peer_memory(0, BYTES)};
	guest_fault_begin();
	guest_charge_open(&r.charge, 1, -1);
	map();
	return 0;
}

static int end(void **state)
{
	unmap();
	guest_charge_close(&r.charge);
	close(r.fd);
	return 0;
}

// Of the other end, in its own mapping.
static void touch_as_guest(size_t from, size_t bytes)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);

	memset(at + from, 7, bytes);
	munmap(at, BYTES);
}

static int bell = -1;

static void touch(size_t from, size_t bytes)
{
	guest_fault_catch(bell); // cmocka takes the signal at the beginning of each test
	for (size_t at = from; at < from + bytes; at += PAGE)
		r.at[at] = 1;
	guest_fault_measured(r.watched, file_bytes()); // where there is no userfaultfd
}

static void what_the_other_end_has_touched_is_its_own(void **state)
{
	touch_as_guest(0, BYTES);
	touch(0, BYTES);
	assert_int_equal(r.charge.made, 0);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_NONE);
	assert_int_equal(r.at[1], 7);
}

static void each_page_counts_once(void **state)
{
	uint64_t pages = guest_fault_pages();

	touch_as_guest(0, PAGE);
	touch(0, 8 * PAGE);
	touch(0, 8 * PAGE);
	assert_int_equal(r.at[20 * PAGE], 0); // reading makes one, too
	guest_fault_measured(r.watched, file_bytes());
	assert_int_equal(r.charge.made, 8 * PAGE);
	assert_in_range(guest_fault_pages() - pages, 0, 8); // 0: without userfaultfd
	assert_int_equal(file_bytes(), 9 * PAGE);
}

static void at_the_limit_no_page_is_made(void **state)
{
	eventfd_t rung = 0;

	bell = eventfd(0, EFD_NONBLOCK);
	touch(0, MB);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_NONE);
	assert_int_equal(eventfd_read(bell, &rung), -1);
	touch(MB, BYTES - MB);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_CHARGED);
	assert_int_equal(file_bytes(), MB);
	assert_int_equal(r.charge.made, MB);
	assert_int_equal(eventfd_read(bell, &rung), 0);
	assert_in_range(rung, 1, 4);
	close(bell);
	bell = -1;
}

// The file may be kept by a peer that maps it anew, or connects again while another connection is there.
static void the_account_outlives_mappings(void **state)
{
	touch(0, MB / 2);
	unmap();
	map();
	guest_charge_begin(&r.charge, false);
	assert_int_equal(r.charge.made, MB / 2);
	touch(0, MB);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_NONE);
	touch(MB, PAGE);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_CHARGED);
}

// A balloon: the page is made again, and is no page more.
static void pages_that_are_gone_do_not_count(void **state)
{
	for (unsigned round = 0; round < 4; round++) {
		touch(0, MB);
		fallocate(r.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, MB / 2);
		guest_fault_measured(r.watched, file_bytes());
		assert_int_equal(r.charge.made, MB / 2);
	}
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_NONE);
}

static void a_file_that_has_become_shorter_is_another_fault(void **state)
{
	assert_int_equal(ftruncate(r.fd, 0), 0);
	touch(0, PAGE);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_GONE);
	assert_int_equal(r.charge.made, 0);
}

static void a_pause_counts_nothing_and_ends(void **state)
{
	touch(0, PAGE);
	guest_fault_pause();
	touch(0, BYTES / 2);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_NONE);
	assert_int_equal(r.charge.made, PAGE);
	guest_fault_resume();
	touch(0, PAGE); // measured: what is touched from here on counts
	touch(BYTES / 2, MB);
	assert_int_equal(r.charge.made, MB);
	assert_int_equal(guest_fault_seen(r.watched), GUEST_FAULT_CHARGED);
}

static void hugepages_count_as_large_as_they_are(void **state)
{
	const size_t huge = 2 << 20;
	int fd = peer_memory(MFD_HUGETLB, (off_t)(2 * huge)), watched;
	uint8_t *at = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) // there are none
		skip();
	watched = guest_fault_watch(at, 2 * huge, huge);
	guest_charge_close(&r.charge);
	guest_charge_open(&r.charge, 2, -1);
	guest_fault_charge(watched, &r.charge, 0);
	guest_fault_catch(-1);
	at[5] = 1;
	assert_int_equal(at[6], 0);
	assert_int_equal(r.charge.made, huge);
	at[huge] = 1;
	assert_int_equal(guest_fault_seen(watched), GUEST_FAULT_CHARGED);
	guest_fault_forget(watched);
	munmap(at, 2 * huge);
	close(fd);
}

static void ports_share_what_nobody_has_chosen(void **state)
{
	struct guest_charge alone, other;
	uint64_t half;

	guest_charge_open(&alone, 0, -1); // beside that of the rig
	half = alone.most;
	assert_true(half > 0);
	guest_charge_open(&other, 0, -1);
	assert_int_equal(other.most, half * 2 / 3);
	guest_charge_begin(&alone, false);
	assert_int_equal(alone.most, other.most);
	guest_charge_close(&other);
	guest_charge_close(&alone);
}

// Of a container that forbids it; here it has no descriptor left. Returns 0 if all is right.
static int measure_growth(void)
{
	bool right;

	r = (struct rig){.fd = peer_memory(0, BYTES)};
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0});
	guest_fault_begin();
	guest_charge_open(&r.charge, 1, -1);
	touch_as_guest(0, MB); // before
	map();
	touch(2 * MB, MB / 2);
	right = r.charge.made == MB / 2 && guest_fault_seen(r.watched) == GUEST_FAULT_NONE;
	touch_as_guest(4 * MB, MB / 4);
	touch(2 * MB, MB / 2);
	right &= r.charge.made == MB / 2 + MB / 4 && guest_fault_seen(r.watched) == GUEST_FAULT_NONE;
	touch(3 * MB, MB);
	right &= guest_fault_seen(r.watched) == GUEST_FAULT_CHARGED;
	return right ? 0 : 1;
}

static void without_userfaultfd_all_growth_counts(void **state)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(measure_growth());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_userfaultfd_all_growth_counts), // first: nobody has asked for it yet
	        TEST(what_the_other_end_has_touched_is_its_own),
	        TEST(each_page_counts_once),
	        TEST(at_the_limit_no_page_is_made),
	        TEST(the_account_outlives_mappings),
	        TEST(pages_that_are_gone_do_not_count),
	        TEST(a_file_that_has_become_shorter_is_another_fault),
	        TEST(a_pause_counts_nothing_and_ends),
	        TEST(hugepages_count_as_large_as_they_are),
	        TEST(ports_share_what_nobody_has_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
