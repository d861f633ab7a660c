// SPDX-License-Identifier: BSD-3-Clause
// Snapshots come back as they were, into a table of the same size or another; what is cut off, damaged, mixed
// up or forged is refused with a sentence, and leaves a table that works.
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "table/cuckoo_any.h"
#include "test/unit.h"

enum { ENTRIES = 3000, HEADER = 48, PIECE_HEAD = 8, PIECE = 1 << 24, WIDTHS = 2 };

struct file {
	uint8_t *bytes;
	size_t length;
};

static struct any make(unsigned width, uint64_t entries, uint64_t seed)
{
	struct any any = {.kind = ANY_OWNER_LOW};

	assert_int_equal(any_create(&any, width, entries, seed, PAGES_BEST), 0);
	return any;
}

static uint16_t value_of(uint64_t n)
{
	return (uint16_t)(n % UINT16_MAX + 1);
}

static void put(const struct any *any, uint64_t n)
{
	uint16_t old;

	assert_int_equal(any_put(any, n, value_of(n), &old), 0);
}

static uint16_t find(const struct any *any, uint64_t n)
{
	uint16_t value;

	any_find(any, &n, 1, &value);
	return value;
}

// Exactly keys 0 .. n - 1 are there; and the table works.
static void assert_content(const struct any *any, unsigned n)
{
	assert_int_equal(any_stats(any).entries, n);
	for (unsigned i = 0; i < n + 100; i++)
		assert_int_equal(find(any, i), i < n ? value_of(i) : CUCKOO_NONE);
	put(any, n + 50);
	assert_int_equal(find(any, n + 50), value_of(n + 50));
}

static struct file save(const struct cuckoo *table)
{
	int fd = memfd_create("snapshot", 0);
	struct file file;
	char error[256];
	off_t length;

	assert_int_equal(cuckoo_save(table, fd, error), 0);
	length = lseek(fd, 0, SEEK_CUR);
	file.length = (size_t)length;
	file.bytes = malloc(file.length);
	assert_int_equal(pread(fd, file.bytes, file.length, 0), length);
	close(fd);
	return file;
}

static int load(struct cuckoo *table, const struct file *file, char *error)
{
	int fd = memfd_create("snapshot", 0), rc;

	error[0] = 0;
	assert_int_equal(write(fd, file->bytes, file->length), file->length);
	lseek(fd, 0, SEEK_SET);
	rc = cuckoo_load(table, fd, error);
	if (rc == 0) // no more than it wrote
		assert_int_equal(lseek(fd, 0, SEEK_CUR), file->length);
	close(fd);
	assert_true((rc != 0) == (error[0] != 0));
	return rc;
}

static void refuse(unsigned width, const struct file *file, int code, const char *word)
{
	struct any any = make(width, ENTRIES, 9);
	char error[256];

	assert_int_equal(load(any.table, file, error), code);
	if (strstr(error, word) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", word, error);
	assert_content(&any, 0);
	cuckoo_destroy(any.table);
}

static struct file snapshot(unsigned width)
{
	struct any any = make(width, ENTRIES, 1);
	struct file file;

	for (unsigned n = 0; n < ENTRIES; n++)
		put(&any, n);
	file = save(any.table);
	cuckoo_destroy(any.table);
	return file;
}

static void it_comes_back(void **state)
{
	static const unsigned rooms[] = {ENTRIES, ENTRIES + 1000, 5 * ENTRIES};
	char error[256];

	for (unsigned width = 0; width < WIDTHS; width++) {
		struct file file = snapshot(width);

		assert_int_equal(file.length,
		                 HEADER + PIECE_HEAD + cuckoo_bytes((enum cuckoo_width)width, ENTRIES));
		for (unsigned i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
			struct any any = make(width, rooms[i], 2);

			put(&any, 1000000); // it is replaced, not added to
			assert_int_equal(load(any.table, &file, error), 0);
			assert_content(&any, ENTRIES);
			cuckoo_destroy(any.table);
		}
		free(file.bytes);
	}
}

// Several pieces, the last one shorter; two of them exchanged are not the same snapshot.
static void large_ones_have_pieces(void **state)
{
	enum { ROOM = 5000000 };
	struct any any = make(CUCKOO_NARROW, ROOM, 3);
	size_t bytes = cuckoo_bytes(CUCKOO_NARROW, ROOM);
	struct file file;
	char error[256];
	uint8_t *spare = malloc(PIECE);

	assert_true(bytes > 2 * PIECE && bytes % PIECE);
	for (unsigned n = 0; n < ENTRIES; n++)
		put(&any, n);
	file = save(any.table);
	assert_int_equal(file.length, HEADER + bytes + 3 * PIECE_HEAD);
	cuckoo_clear(any.table);
	assert_int_equal(load(any.table, &file, error), 0);
	assert_content(&any, ENTRIES);
	memcpy(spare, file.bytes + HEADER, PIECE);
	memcpy(file.bytes + HEADER, file.bytes + HEADER + PIECE_HEAD + PIECE, PIECE);
	memcpy(file.bytes + HEADER + PIECE_HEAD + PIECE, spare, PIECE);
	assert_int_equal(load(any.table, &file, error), -EBADMSG);
	assert_content(&any, 0);
	cuckoo_destroy(any.table);
	free(file.bytes);
	free(spare);
}

static void what_is_cut_off_is_refused(void **state)
{
	for (unsigned width = 0; width < WIDTHS; width++) {
		struct file file = snapshot(width);
		const size_t lengths[] = {0,           1,           HEADER - 1,
		                          HEADER,      HEADER + 3,  HEADER + PIECE_HEAD,
		                          HEADER + 99, HEADER + 64, file.length - 1};

		for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			file.length = lengths[i];
			refuse(width, &file, -EBADMSG, "cut off");
		}
		free(file.bytes);
	}
}

static void every_flipped_bit_is_seen(void **state)
{
	for (unsigned width = 0; width < WIDTHS; width++) {
		struct file file = snapshot(width);

		for (size_t bit = 0; bit < file.length * 8; bit += bit / 8 < HEADER + PIECE_HEAD ? 1 : 5003) {
			file.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			refuse(width, &file, -EBADMSG, "snapshot");
			file.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		free(file.bytes);
	}
}

// --- Forged: with checksums that are right -----------------------------------------------------------------

static void set64(struct file *file, size_t at, uint64_t value)
{
	memcpy(file->bytes + at, &value, sizeof(value));
}

static void sign(struct file *file)
{
	uint32_t crc = rte_hash_crc(file->bytes, HEADER - 4, 0), piece;

	memcpy(file->bytes + HEADER - 4, &crc, 4);
	piece = rte_hash_crc(file->bytes + HEADER + PIECE_HEAD,
	                     (uint32_t)(file->length - HEADER - PIECE_HEAD), crc);
	memcpy(file->bytes + HEADER + 4, &piece, 4);
}

static void forge(unsigned width, size_t at, uint64_t value, int code, const char *word)
{
	struct file file = snapshot(width);

	set64(&file, at, value);
	sign(&file);
	refuse(width, &file, code, word);
	free(file.bytes);
}

static void counts_are_not_believed(void **state)
{
	enum { SEED = 16, BUCKETS = 24, COUNT = 32, RESERVED = 40, DATA = HEADER + PIECE_HEAD };
	static const uint64_t buckets[] = {0, UINT64_C(1) << 32, UINT64_MAX, UINT64_MAX / 64 + 2};

	for (unsigned width = 0; width < WIDTHS; width++) {

		for (unsigned i = 0; i < sizeof(buckets) / sizeof(*buckets); i++)
			forge(width, BUCKETS, buckets[i], -EBADMSG, "cannot be");
		forge(width, BUCKETS, UINT32_MAX, -EBADMSG, "a piece of");
		forge(width, BUCKETS, ENTRIES, -EBADMSG, "a piece of");
		forge(width, COUNT, ENTRIES - 1, -EBADMSG, "says 2999 entries and has 3000");
		forge(width, COUNT, 0, -EBADMSG, "says 0 entries");
		forge(width, COUNT, UINT64_MAX, -EBADMSG, "cannot be");
		forge(width, RESERVED, 1, -EBADMSG, "head");
		forge(width, SEED, 7, -EBADMSG, "not where they belong");
	}
	// A key that belongs elsewhere; an entry without a value; a bucket that is being written for ever.
	forge(CUCKOO_NARROW, DATA, UINT64_C(0x123456789abc0001), -EBADMSG, "not where they belong");
	forge(CUCKOO_NARROW, DATA, UINT64_C(0x123456789abc0000), -EBADMSG, "not where they belong");
	forge(CUCKOO_WIDE, DATA, UINT64_C(0x123456789abcdef), -EBADMSG, "not where they belong");
	forge(CUCKOO_WIDE, DATA + 56, UINT64_C(0x100000000), -EBADMSG, "belong");
}

// Which of its values an entry has would depend on the instruction set that looks.
static void a_key_that_is_twice_in_a_bucket_is_refused(void **state)
{
	static const struct {
		unsigned ways;
		size_t bytes[4], at[4]; // of the fields of an entry, the one with its value last
	} shapes[WIDTHS] = {
	        [CUCKOO_NARROW] = {CUCKOO_WAYS, {8}, {0}},
	        [CUCKOO_WIDE] = {CUCKOO_WIDE_WAYS,
	                         {8, 8, 2, 2},
	                         {0, 8 * CUCKOO_WIDE_WAYS, 16 * CUCKOO_WIDE_WAYS, 18 * CUCKOO_WIDE_WAYS}},
	};

	for (unsigned width = 0; width < WIDTHS; width++) {
		unsigned value_field = width == CUCKOO_WIDE ? 3 : 0, last = shapes[width].ways - 1;
		size_t value_at = shapes[width].at[value_field], bytes = shapes[width].bytes[value_field];
		struct file file = snapshot(width);
		uint8_t *bucket = file.bytes + HEADER + PIECE_HEAD;
		uint16_t first, filled;

		for (;; bucket += 64) { // to one with an entry at its beginning and none at its end
			assert_true(bucket < file.bytes + file.length);
			memcpy(&first, bucket + value_at, 2);
			memcpy(&filled, bucket + value_at + last * bytes, 2);
			if (first && !filled)
				break;
		}
		for (unsigned field = 0; field <= value_field; field++) {
			size_t size = shapes[width].bytes[field];
			uint8_t *from = bucket + shapes[width].at[field];

			memcpy(from + last * size, from, size);
		}
		bucket[value_at + last * bytes] ^= 1;
		set64(&file, 32, ENTRIES + 1);
		sign(&file);
		refuse(width, &file, -EBADMSG, "not where they belong");
		free(file.bytes);
	}
}

static void another_width_is_refused(void **state)
{
	struct file narrow = snapshot(CUCKOO_NARROW), wide = snapshot(CUCKOO_WIDE);

	refuse(CUCKOO_WIDE, &narrow, -EBADMSG, "another width");
	refuse(CUCKOO_NARROW, &wide, -EBADMSG, "another width");
	free(narrow.bytes);
	free(wide.bytes);
}

// Refused by its head, or after some of it: the sentence says what to do.
static void what_does_not_fit_is_refused(void **state)
{
	for (unsigned width = 0; width < WIDTHS; width++) {
		struct file file = snapshot(width);
		struct any any = make(width, 100, 1);
		char error[256];

		put(&any, 0);
		assert_int_equal(load(any.table, &file, error), -ENOSPC);
		assert_non_null(strstr(error, "make it larger"));
		assert_content(&any, 1);
		cuckoo_destroy(any.table);
		free(file.bytes);
	}
}

static void files_that_fail_are_reported(void **state)
{
	struct any any = make(CUCKOO_NARROW, ENTRIES, 1);
	char error[256] = "";

	assert_int_equal(cuckoo_save(any.table, -1, error), -EBADF);
	assert_non_null(strstr(error, "written"));
	assert_int_equal(cuckoo_load(any.table, -1, error), -EBADF);
	assert_non_null(strstr(error, "read"));
	assert_content(&any, 0);
	cuckoo_destroy(any.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_comes_back),
	        cmocka_unit_test(large_ones_have_pieces),
	        cmocka_unit_test(what_is_cut_off_is_refused),
	        cmocka_unit_test(every_flipped_bit_is_seen),
	        cmocka_unit_test(counts_are_not_believed),
	        cmocka_unit_test(a_key_that_is_twice_in_a_bucket_is_refused),
	        cmocka_unit_test(another_width_is_refused),
	        cmocka_unit_test(what_does_not_fit_is_refused),
	        cmocka_unit_test(files_that_fail_are_reported),
	};

	return cmocka_run_group_tests_name("cuckoo_snapshot", tests, NULL, NULL);
}
