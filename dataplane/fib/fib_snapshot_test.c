// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fib/fib_rig.h"
#include "fib/fib_state.h"

enum { A = 1, B = 2, SESSION = 7 };

static char path[64];

// It takes the lock by itself.
static int save(struct fib *fib, const char *to, char *error)
{
	int rc;

	fib_unlock(fib);
	rc = fib_save(fib, to, error);
	assert_true(fib_trylock(fib));
	return rc;
}

static int path_make(void **state)
{
	snprintf(path, sizeof(path), "/tmp/fib_snapshot_test.%d", (int)getpid());
	return 0;
}

static int path_remove(void **state)
{
	unlink(path);
	return 0;
}

// VNF A has a route of each group and one of a hop that is dead; B has 100 routes.
static struct fib *filled(void)
{
	struct fib *fib = fib_of(1000, 1000);
	char text[32];

	vnf_of(fib, A, 10, 4);
	vnf_of(fib, B, 200, 4);
	assert_int_equal(fib_begin(fib, A, SESSION), 0);
	assert_int_equal(fib_begin(fib, B, SESSION), 0);
	hop_put(fib, A, SESSION, 1, 9);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.9/32", 1), 0);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	assert_int_equal(fib_begin(fib, A, SESSION + 1), 0);
	hop_put(fib, A, SESSION + 1, 1, 2);
	hop_put(fib, A, FIB_OPERATOR, 1, 3);
	assert_int_equal(route_put(fib, A, SESSION + 1, "10.0.0.0/24", 1), 0);
	assert_int_equal(route_put(fib, A, FIB_OPERATOR, "2001:db8::/32", 1), 0);
	hop_put(fib, B, SESSION, 4, 4);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u/32", i);
		assert_int_equal(route_put(fib, B, SESSION, text, 4), 0);
	}
	return fib;
}

static void check_filled(struct fib *fib)
{
	struct fib_vnf_stats a = stats_of(fib, A), b = stats_of(fib, B);

	assert_int_equal(found(fib, A, "10.0.0.1"), 1);
	assert_int_equal(found(fib, A, "10.0.0.9"), 2);
	assert_int_equal(found(fib, A, "2001:db8::1"), 3);
	assert_int_equal(found(fib, B, "10.0.0.99"), 4);
	assert_int_equal(found(fib, B, "10.0.0.100"), 0);
	assert_int_equal(a.routes4, 2);
	assert_int_equal(a.routes6, 1);
	assert_int_equal(a.stale, 2); // all but the operator's
	assert_int_equal(a.hops, 3);
	assert_int_equal(b.routes4, 100);
	assert_int_equal(b.stale, 100);
	assert_int_equal(b.quota_routes, 200);
	assert_false(fib_is_dirty(fib));
}

static void comes_back(void **state)
{
	struct fib *fib = filled();
	char error[256] = "";

	assert_int_equal(save(fib, path, error), 0);
	fib_destroy(fib);
	fib = fib_of(1000, 1000);
	vnf_of(fib, A, 5, 2); // what is configured here holds
	assert_int_equal(fib_load(fib, path, error), 0);
	check_filled(fib);
	assert_int_equal(stats_of(fib, A).quota_routes, 5);
	fib_destroy(fib);
}

// A group comes back with its members, and each flow takes the one that it took.
static void groups_come_back(void **state)
{
	const struct fib_member members[] = {{1, 1}, {3, 2}};
	const uint8_t address[16] = {10, 1, 1, 1};
	struct fib *fib = filled();
	uint8_t marks[64];
	char error[256] = "";
	bool missing;

	hop_put(fib, A, SESSION + 1, 3, 7);
	assert_int_equal(fib_group_set(fib, A, SESSION + 1, 2, members, 2, &missing), 0);
	assert_int_equal(route_put(fib, A, SESSION + 1, "10.1.0.0/16", 2), 0);
	for (uint32_t flow = 0; flow < 64; flow++)
		marks[flow] = fib_hop_of_flow(fib, find(fib, A, address, 4), flow, 0)->port;
	assert_int_equal(save(fib, path, error), 0);
	fib_destroy(fib);
	fib = fib_of(1000, 1000);
	assert_int_equal(fib_load(fib, path, error), 0);
	for (uint32_t flow = 0; flow < 64; flow++)
		assert_int_equal(fib_hop_of_flow(fib, find(fib, A, address, 4), flow, 0)->port, marks[flow]);
	assert_int_equal(stats_of(fib, A).hops, 5);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	sweep_all(fib);
	assert_int_equal(stats_of(fib, A).hops, 0);
	fib_destroy(fib);
}

// The forwarder goes on: a session takes its routes over, the rest is flushed; hops find free indices.
static void goes_on(void **state)
{
	struct fib *fib = filled();
	char error[256] = "";

	assert_int_equal(save(fib, path, error), 0);
	hop_put(fib, B, SESSION, 9, 99);
	assert_int_equal(route_put(fib, B, SESSION, "10.9.9.9/32", 9), 0);
	assert_int_equal(fib_load(fib, path, error), 0); // in place of what there is
	check_filled(fib);
	assert_int_equal(found(fib, B, "10.9.9.9"), 0);
	assert_int_equal(fib_begin(fib, B, SESSION), 0); // the same number is another session
	assert_int_equal(route_put(fib, B, SESSION, "10.0.0.7/32", 4), -ENOENT);
	for (uint16_t number = 0; number < 4; number++)
		hop_put(fib, B, SESSION, number, (uint8_t)(10 + number));
	assert_int_equal(route_put(fib, B, SESSION, "10.0.0.7/32", 2), 0);
	fib_flush(fib, B, FIB_FLUSH_STALE);
	assert_int_equal(sweep_all(fib), 99);
	assert_int_equal(found(fib, B, "10.0.0.7"), 12);
	assert_int_equal(found(fib, B, "10.0.0.8"), 0);
	assert_int_equal(found(fib, A, "10.0.0.1"), 1);
	hop_put(fib, A, FIB_OPERATOR, 1, 33); // the operator's go on by their numbers
	assert_int_equal(found(fib, A, "2001:db8::1"), 33);
	fib_destroy(fib);
}

// Wherever a byte is changed or the file ends: it is refused, or is as sound as any.
static void damaged(void **state)
{
	struct fib *fib = filled();
	char error[256] = "";
	struct stat info;
	unsigned refused = 0;
	int fd;

	assert_int_equal(save(fib, path, error), 0);
	assert_int_equal(stat(path, &info), 0);
	fd = open(path, O_RDWR);
	for (off_t at = 0; at < info.st_size; at += 1 + at / 64) {
		uint8_t byte, other;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = byte ^ 0x41;
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		error[0] = '\0';
		if (fib_load(fib, path, error)) {
			refused++;
			assert_true(error[0]);
		}
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_true(refused > 100);
	for (off_t length = 0; length < info.st_size; length += 1 + length / 16) {
		int cut = open(path, O_RDONLY), to;
		char part[80];
		uint8_t *data = malloc((size_t)info.st_size);

		snprintf(part, sizeof(part), "%s.part", path);
		to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		assert_int_equal(read(cut, data, (size_t)info.st_size), info.st_size);
		assert_int_equal(write(to, data, (size_t)length), length);
		assert_int_equal(fib_load(fib, part, error), -EBADMSG);
		free(data);
		close(cut);
		close(to);
		unlink(part);
	}
	close(fd);
	assert_int_equal(fib_load(fib, path, error), 0);
	check_filled(fib);
	fib_destroy(fib);
}

// As fib_snapshot.c has it: FNV-1a of all but the sum.
static uint64_t sum_of(const uint8_t *bytes, size_t head, size_t rest)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < head + rest; i++)
		sum = (sum ^ bytes[i < head ? i : i + sizeof(sum)]) * UINT64_C(0x100000001b3);
	return sum;
}

// Nothing of it is damaged, and the hops of A lead into a VNF that it does not have.
static void forged(void **state)
{
	struct fib *fib = filled();
	struct {
		struct fib_snapshot_head head;
		uint8_t rest[2 * sizeof(struct fib_snapshot_vnf) + 4 * sizeof(struct fib_snapshot_hop)];
	} file;
	struct fib_snapshot_hop hop;
	char error[256] = "";
	int fd;

	assert_int_equal(save(fib, path, error), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &file, sizeof(file), 0), sizeof(file));
	assert_int_equal(file.head.hops, 4);
	for (unsigned i = 0; i < 4; i++) {
		uint8_t *at = file.rest + 2 * sizeof(struct fib_snapshot_vnf) + i * sizeof(hop);

		memcpy(&hop, at, sizeof(hop));
		hop.vnf = hop.vnf == A ? 9 : hop.vnf;
		memcpy(at, &hop, sizeof(hop));
	}
	file.head.sum =
	        sum_of((const uint8_t *)&file, offsetof(struct fib_snapshot_head, sum), sizeof(file.rest));
	assert_int_equal(pwrite(fd, &file, sizeof(file), 0), sizeof(file));
	close(fd);
	assert_int_equal(fib_load(fib, path, error), 0);
	assert_int_equal(stats_of(fib, A).routes4 + stats_of(fib, A).routes6 + stats_of(fib, A).hops, 0);
	assert_int_equal(found(fib, A, "10.0.0.1"), 0);
	assert_int_equal(stats_of(fib, B).routes4, 100);
	assert_int_equal(found(fib, B, "10.0.0.99"), 4);
	fib_destroy(fib);
}

// Whatever was loaded, all of it can be flushed and swept, and routes put anew are found.
static void check_goes_on(struct fib *fib)
{
	for (uint16_t vnf = A; vnf <= B; vnf++) {
		found(fib, vnf, "10.0.0.1");
		found(fib, vnf, "2001:db8::1");
		fib_flush(fib, vnf, FIB_FLUSH_ALL);
	}
	for (unsigned i = 0; i < 3 && fib_is_dirty(fib); i++)
		sweep_all(fib);
	assert_false(fib_is_dirty(fib));
	for (uint16_t vnf = A; vnf <= B; vnf++) {
		struct fib_vnf_stats stats = stats_of(fib, vnf);

		assert_int_equal(stats.routes4 + stats.routes6 + stats.stale + stats.hops, 0);
		assert_int_equal(fib_begin(fib, vnf, SESSION + 9), 0);
		hop_put(fib, vnf, SESSION + 9, 5, 7);
		assert_int_equal(route_put(fib, vnf, SESSION + 9, "10.0.0.1/32", 5), 0);
		assert_int_equal(found(fib, vnf, "10.0.0.1"), 7);
	}
}

// Any byte before the tables is any other, and the sum is right: it is refused, or the FIB goes on.
static void forged_anywhere(void **state)
{
	enum { REST = 2 * sizeof(struct fib_snapshot_vnf) + 4 * sizeof(struct fib_snapshot_hop) };
	static const uint8_t values[] = {0, 1, 2, 3, 4, 9, 0x0f, 0x10, 0x7f, 0x80, 0xff};
	struct fib *fib = filled();
	uint8_t file[sizeof(struct fib_snapshot_head) + REST], was[sizeof(file)];
	const size_t sum_at = offsetof(struct fib_snapshot_head, sum);
	char error[256] = "";
	unsigned loaded = 0, refused = 0;
	uint64_t sum;
	int fd;

	assert_int_equal(save(fib, path, error), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, was, sizeof(was), 0), sizeof(was));
	for (size_t at = 0; at < sizeof(file); at++)
		for (size_t i = 0; i < RTE_DIM(values); i++) {
			memcpy(file, was, sizeof(file));
			file[at] = values[i];
			sum = sum_of(file, sum_at, REST);
			memcpy(&file[sum_at], &sum, sizeof(sum));
			assert_int_equal(pwrite(fd, file, sizeof(file), 0), sizeof(file));
			*(fib_load(fib, path, error) ? &refused : &loaded) += 1;
			check_goes_on(fib);
		}
	close(fd);
	fib_destroy(fib);
	assert_true(loaded > 100 && refused > 100);
}

// Opening a FIFO that nobody writes to would block.
static void a_fifo(void **state)
{
	struct fib *fib = fib_of(1000, 1000);
	char error[256] = "";

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(5);
	assert_int_equal(fib_load(fib, path, error), -EINVAL);
	alarm(0);
	assert_string_equal(error, "is not a regular file");
	unlink(path);
	fib_destroy(fib);
}

// So would opening one to write to.
static void a_fifo_beside(void **state)
{
	struct fib *fib = fib_of(1000, 1000);
	char error[256] = "", beside[sizeof(path) + 8];

	snprintf(beside, sizeof(beside), "%s.new", path);
	assert_int_equal(mkfifo(beside, 0600), 0);
	alarm(5);
	assert_int_equal(save(fib, path, error), 0);
	assert_int_equal(fib_load(fib, path, error), 0);
	alarm(0);
	assert_int_not_equal(access(beside, F_OK), 0);
	unlink(path);
	fib_destroy(fib);
}

static struct fib *with_ports(const char (*ports)[FIB_NAME_MAX], unsigned count)
{
	const struct fib_config config = {
	        .routes4 = 1000, .seed = 42, .pages = PAGES_4K, .port_count = count, .ports = ports};
	struct fib *fib = NULL;

	assert_int_equal(fib_create(&config, &fib), 0);
	assert_true(fib_trylock(fib));
	return fib;
}

// Members 1 and 2 by ports 0 and 1.
static void group_by_ports(struct fib *fib, uint32_t session)
{
	const struct fib_member members[] = {{1, 1}, {2, 1}}, second = {2, 1};
	bool missing;

	for (uint16_t number = 1; number <= 3; number++) {
		const struct fib_hop hop = {.kind = number < 3 ? FIB_HOP_FORWARD : FIB_HOP_LOCAL,
		                            .port = (uint8_t)(number - 1)};

		assert_int_equal(fib_hop_set(fib, A, session, number, &hop), 0);
	}
	assert_int_equal(fib_group_set(fib, A, session, 4, members, 2, &missing), 0);
	assert_int_equal(fib_group_set(fib, A, session, 5, &second, 1, &missing), 0);
}

// Wires are [a, b] when it is saved, and [x, a] or [b, a] or none with a name when it is loaded.
static void ports_have_names(void **state)
{
	static const char before[][FIB_NAME_MAX] = {"a", "b"},
	                  after[][2][FIB_NAME_MAX] = {{"x", "a"}, {"b", "a"}, {"ab", ""}};
	static const uint8_t at_a[] = {1, 1, 0xff}, at_b[] = {0xff, 0, 0xff};
	const uint8_t one[16] = {10, 0, 0, 1}, two[16] = {10, 0, 0, 2}, three[16] = {10, 0, 0, 3},
	              four[16] = {10, 0, 0, 4}, five[16] = {10, 0, 0, 5};
	char error[256] = "";

	for (unsigned turn = 0; turn < 6; turn++) {
		uint32_t session = turn % 2 ? SESSION : FIB_OPERATOR;
		struct fib *fib = with_ports(before, 2);
		unsigned to = turn / 2, ports = 0;
		const struct fib_hop *hop;

		vnf_of(fib, A, 10, 10);
		assert_int_equal(fib_begin(fib, A, SESSION), 0);
		group_by_ports(fib, session);
		assert_int_equal(route_put(fib, A, session, "10.0.0.1/32", 1), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.2/32", 2), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.3/32", 3), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.4/32", 4), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.5/32", 5), 0);
		assert_int_equal(save(fib, path, error), 0);
		fib_destroy(fib);
		fib = with_ports(after[to], to < 2 ? 2 : 0);
		assert_int_equal(fib_load(fib, path, error), 0);
		hop = find(fib, A, one, 4);
		assert_int_equal(hop->kind == FIB_HOP_FORWARD ? hop->port : 0xff, at_a[to]);
		hop = find(fib, A, two, 4);
		assert_int_equal(hop->kind == FIB_HOP_FORWARD ? hop->port : 0xff, at_b[to]);
		assert_int_equal(find(fib, A, three, 4)->kind, FIB_HOP_LOCAL);
		hop = find(fib, A, four, 4);
		assert_int_equal(hop->kind, to < 2 ? FIB_HOP_GROUP : FIB_HOP_NONE);
		for (uint32_t flow = 0; flow < 64 && to < 2; flow++) {
			assert_int_equal(fib_hop_of_flow(fib, hop, flow, 0)->kind, FIB_HOP_FORWARD);
			ports |= 1u << fib_hop_of_flow(fib, hop, flow, 0)->port;
		}
		assert_int_equal(ports, to == 0 ? 2 : to == 1 ? 3 : 0);
		assert_int_equal(find(fib, A, five, 4)->kind, to == 1 ? FIB_HOP_GROUP : FIB_HOP_NONE);
		assert_int_equal(stats_of(fib, A).routes4, to == 0 ? 3 : to == 1 ? 5 : 1);
		assert_int_equal(stats_of(fib, A).hops, to == 0 ? 3 : to == 1 ? 5 : 1);
		assert_int_equal(sweep_all(fib), to == 0 ? 2 : to == 1 ? 0 : 4);
		fib_flush(fib, A, FIB_FLUSH_ALL);
		sweep_all(fib);
		assert_int_equal(stats_of(fib, A).hops + stats_of(fib, A).routes4, 0);
		fib_destroy(fib);
	}
}

// Tables that it has not are empty.
static void of_fewer_tables(void **state)
{
	struct fib *fib = fib_of(1000, 0), *both = filled();
	char error[256] = "";

	vnf_of(fib, A, 10, 4);
	hop_put(fib, A, FIB_OPERATOR, 1, 3);
	assert_int_equal(route_put(fib, A, FIB_OPERATOR, "10.0.0.0/24", 1), 0);
	assert_int_equal(save(fib, path, error), 0);
	assert_int_equal(fib_load(both, path, error), 0);
	assert_int_equal(found(both, A, "10.0.0.1"), 3);
	assert_int_equal(found(both, A, "2001:db8::1"), 0);
	assert_int_equal(stats_of(both, A).routes6, 0);
	assert_int_equal(stats_of(both, B).routes4, 0);
	assert_int_equal(route_put(both, A, FIB_OPERATOR, "2001:db8::/32", 1), 0);
	assert_int_equal(found(both, A, "2001:db8::1"), 3);
	fib_destroy(fib);
	fib_destroy(both);
}

static void of_another_version(void **state)
{
	struct fib *fib = filled();
	char error[256] = "";
	uint32_t version = 2;
	int fd;

	assert_int_equal(save(fib, path, error), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &version, sizeof(version), offsetof(struct fib_snapshot_head, version)),
	                 sizeof(version));
	close(fd);
	assert_int_equal(fib_load(fib, path, error), -EPROTO);
	assert_string_equal(error, "it is of version 2, this program reads version 3");
	assert_int_equal(found(fib, A, "10.0.0.1"), 1);
	fib_destroy(fib);
}

static void of_another_kind(void **state)
{
	struct fib *fib = filled(), *narrow = fib_of(1000, 0);
	char error[256] = "";

	assert_int_equal(save(fib, path, error), 0);
	assert_int_equal(fib_load(narrow, path, error), -EINVAL);
	assert_string_equal(error, "it has a table of IPv6, this FIB has none");
	assert_int_equal(fib_load(narrow, "/nonexistent", error), -ENOENT);
	assert_int_equal(save(narrow, "/nonexistent/file", error), -ENOENT);
	fib_destroy(fib);
	fib_destroy(narrow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(comes_back),       cmocka_unit_test(goes_on),
	        cmocka_unit_test(damaged),          cmocka_unit_test(forged),
	        cmocka_unit_test(a_fifo),           cmocka_unit_test(a_fifo_beside),
	        cmocka_unit_test(of_another_kind),  cmocka_unit_test(forged_anywhere),
	        cmocka_unit_test(groups_come_back), cmocka_unit_test(ports_have_names),
	        cmocka_unit_test(of_fewer_tables),  cmocka_unit_test(of_another_version),
	};

	return cmocka_run_group_tests(tests, path_make, path_remove);
}
