// SPDX-License-Identifier: BSD-3-Clause
// Snapshots: a header, then the buckets in pieces, each with its length and CRC32C. A file is hostile: its
// counts are compared with what is there, an entry that is not where its key belongs is none of ours. What is
// as large as this table is read in place; else each entry is put anew.
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "table/cuckoo_table.h"

enum { VERSION = 1, PIECE_BYTES = 1 << 24, ERROR_BYTES = 256, BUCKET = sizeof(struct cuckoo_bucket) };

static const char magic[8] = {'P', 'L', 'B', 'C', 'U', 'C', 'K', 'O'};

struct header { // in the order of bytes of x86
	char magic[sizeof(magic)];
	uint32_t version, width;
	uint64_t seed, buckets, entries;
	uint32_t reserved; // 0
	uint32_t crc;      // of all before it
};

struct piece {
	uint32_t bytes;
	uint32_t crc; // of the bytes, from where the header's and the piece's number begin it
};

_Static_assert(sizeof(struct header) == 48 && sizeof(struct piece) == 8, "no padding");

__attribute__((format(printf, 3, 4))) static int fail(char *error, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, ERROR_BYTES, format, arguments);
	va_end(arguments);
	return code;
}

static uint32_t header_crc(const struct header *header)
{
	return rte_hash_crc(header, offsetof(struct header, crc), 0);
}

// A piece of another snapshot or from another place of this one has another checksum.
static uint32_t piece_crc(const struct header *header, uint64_t at, const void *bytes, uint32_t length)
{
	return rte_hash_crc(bytes, length, header->crc + (uint32_t)(at / PIECE_BYTES));
}

static uint32_t piece_length(uint64_t at, uint64_t total)
{
	return total - at < PIECE_BYTES ? (uint32_t)(total - at) : PIECE_BYTES;
}

// --- Saving ------------------------------------------------------------------------------------------------

static int write_all(int fd, const void *bytes, size_t length, char *error)
{
	const char *at = bytes;

	while (length) {
		ssize_t done = write(fd, at, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			int code = done ? errno : ENOSPC;

			return fail(error, -code, "the snapshot could not be written: %s", strerror(code));
		}
		at += done;
		length -= (size_t)done;
	}
	return 0;
}

int cuckoo_save(const struct cuckoo *table, int fd, char *error)
{
	uint64_t total = table->bucket_count * BUCKET;
	struct header header = {.version = VERSION,
	                        .width = table->width,
	                        .seed = table->seed,
	                        .buckets = table->bucket_count,
	                        .entries = table->entries};
	int rc;

	memcpy(header.magic, magic, sizeof(magic));
	header.crc = header_crc(&header);
	rc = write_all(fd, &header, sizeof(header), error);
	for (uint64_t at = 0; rc == 0 && at < total; at += PIECE_BYTES) {
		struct piece piece = {.bytes = piece_length(at, total)};

		piece.crc = piece_crc(&header, at, table->bytes + at, piece.bytes);
		rc = write_all(fd, &piece, sizeof(piece), error);
		if (rc == 0)
			rc = write_all(fd, table->bytes + at, piece.bytes, error);
	}
	return rc;
}

// --- Loading -----------------------------------------------------------------------------------------------

static int read_all(int fd, void *bytes, size_t length, char *error)
{
	char *at = bytes;

	while (length) {
		ssize_t done = read(fd, at, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fail(error, -errno, "the snapshot could not be read: %s", strerror(errno));
		if (done == 0)
			return fail(error, -EBADMSG, "the snapshot is cut off");
		at += done;
		length -= (size_t)done;
	}
	return 0;
}

static int read_header(const struct cuckoo *table, int fd, struct header *header, char *error)
{
	unsigned ways = cuckoo_shape(table)->ways;
	int rc = read_all(fd, header, sizeof(*header), error);

	if (rc)
		return rc;
	if (memcmp(header->magic, magic, sizeof(magic)) != 0)
		return fail(error, -EBADMSG, "this is not a snapshot of a table");
	if (header->version != VERSION)
		return fail(error, -EBADMSG, "the snapshot is of version %" PRIu32 ", this program reads %d",
		            header->version, VERSION);
	if (header->crc != header_crc(header) || header->reserved)
		return fail(error, -EBADMSG, "the head of the snapshot is damaged");
	if (header->width != table->width)
		return fail(error, -EBADMSG, "the snapshot is of a table with keys of another width");
	if (header->buckets == 0 || header->buckets > UINT32_MAX || header->entries > header->buckets * ways)
		return fail(error, -EBADMSG,
		            "the snapshot has %" PRIu64 " entries in %" PRIu64 " buckets: "
		            "that cannot be",
		            header->entries, header->buckets);
	if (header->entries > table->bucket_count * ways)
		return fail(error, -ENOSPC,
		            "the snapshot has %" PRIu64 " entries, the table has room for "
		            "%" PRIu64 ": make it larger",
		            header->entries, table->bucket_count * ways);
	return 0;
}

static int read_piece(const struct header *header, int fd, uint64_t at, void *bytes, char *error)
{
	uint32_t length = piece_length(at, header->buckets * BUCKET);
	struct piece piece;
	int rc = read_all(fd, &piece, sizeof(piece), error);

	if (rc)
		return rc;
	if (piece.bytes != length)
		return fail(error, -EBADMSG,
		            "the snapshot is damaged: a piece of %" PRIu32 " bytes, not %" PRIu32,
		            piece.bytes, length);
	rc = read_all(fd, bytes, length, error);
	if (rc == 0 && piece.crc != piece_crc(header, at, bytes, length))
		return fail(error, -EBADMSG, "the snapshot is damaged at byte %" PRIu64 " of its buckets",
		            at);
	return rc;
}

static int load_in_place(struct cuckoo *table, const struct header *header, int fd, char *error)
{
	const struct cuckoo_shape *shape = cuckoo_shape(table);
	uint64_t total = header->buckets * BUCKET;

	cuckoo_set_seed(table, header->seed);
	for (uint64_t at = 0; at < total; at += PIECE_BYTES) {
		uint32_t length = piece_length(at, total);
		int rc = read_piece(header, fd, at, table->bytes + at, error);
		bool bad = false;

		if (rc)
			return rc;
		for (uint64_t bucket = at / BUCKET; bucket < (at + length) / BUCKET; bucket++)
			cuckoo_count(table, (int64_t)shape->check(table, (uint32_t)bucket, &bad));
		if (bad)
			return fail(error, -EBADMSG,
			            "the snapshot has entries that are not where they belong");
	}
	return 0;
}

static uint64_t put_piece(struct cuckoo *table, const uint8_t *piece, uint32_t length)
{
	enum { AHEAD = 2 * BUCKET };
	const struct cuckoo_shape *shape = cuckoo_shape(table);
	uint64_t lost = 0;

	for (uint32_t at = 0; at < length; at += BUCKET) {
		if (at + AHEAD < length)
			shape->prefetch_all(table, piece + at + AHEAD);
		lost += shape->put_all(table, piece + at);
	}
	return lost;
}

static int load_anew(struct cuckoo *table, const struct header *header, int fd, char *error)
{
	uint64_t total = header->buckets * BUCKET, lost = 0;
	uint8_t *piece = aligned_alloc(BUCKET, PIECE_BYTES);
	int rc = piece ? 0 : fail(error, -ENOMEM, "no memory to read the snapshot");

	for (uint64_t at = 0; rc == 0 && at < total; at += PIECE_BYTES) {
		rc = read_piece(header, fd, at, piece, error);
		if (rc == 0)
			lost += put_piece(table, piece, piece_length(at, total));
	}
	free(piece);
	return rc == 0 && lost ? fail(error, -ENOSPC,
	                              "the table has no room for %" PRIu64 " of %" PRIu64
	                              " entries of the snapshot: make it larger",
	                              lost, header->entries)
	                       : rc;
}

// Nobody looks meanwhile.
static void wipe(struct cuckoo *table)
{
	memset(table->bytes, 0, table->bucket_count * BUCKET);
	atomic_store_explicit(&table->entries, 0, memory_order_relaxed);
}

int cuckoo_load(struct cuckoo *table, int fd, char *error)
{
	struct header header;
	int rc = read_header(table, fd, &header, error);

	if (rc)
		return rc;
	wipe(table);
	rc = header.buckets == table->bucket_count ? load_in_place(table, &header, fd, error)
	                                           : load_anew(table, &header, fd, error);
	if (rc == 0 && header.entries != table->entries)
		rc = fail(error, -EBADMSG, "the snapshot says %" PRIu64 " entries and has %" PRIu64,
		          header.entries, (uint64_t)table->entries);
	if (rc)
		wipe(table);
	return rc;
}
