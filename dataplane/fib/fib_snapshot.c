// SPDX-License-Identifier: BSD-3-Clause
// Snapshot of a FIB: a head, VNFs, hops, groups, names of ports, then the tables as cuckoo_save() writes them.
// Numbers as the machine has them: a snapshot is for this machine to start anew. Entries say by an index which
// hop they lead to, so hops come back to the indices that they had.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fib/fib_state.h"
#include "base/input_file.h"
#include "base/log.h"

enum { ERROR_MAX = 256 };

#define FAIL(error, fmt, ...) snprintf(error, ERROR_MAX, fmt, ##__VA_ARGS__)

// FNV-1a (Fowler, Noll, Vo): against damage, not against forgery; what is read is checked all the same.
static uint64_t sum_of(const struct fib_snapshot *s)
{
	const struct {
		const void *data;
		size_t size;
	} parts[] = {
	        {&s->head, offsetof(struct fib_snapshot_head, sum)},
	        {s->vnfs, s->head.vnfs * sizeof(*s->vnfs)},
	        {s->hops, s->head.hops * sizeof(*s->hops)},
	        {s->spreads, s->head.spreads * sizeof(*s->spreads)},
	        {s->ports, s->head.ports * sizeof(*s->ports)},
	};
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (unsigned part = 0; part < RTE_DIM(parts); part++)
		for (size_t i = 0; i < parts[part].size; i++)
			sum = (sum ^ ((const uint8_t *)parts[part].data)[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static int write_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		data = (const uint8_t *)data + done;
		size -= (size_t)done;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t size)
{
	while (size) {
		ssize_t done = read(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EBADMSG;
		data = (uint8_t *)data + done;
		size -= (size_t)done;
	}
	return 0;
}

static int snapshot_alloc(struct fib_snapshot *s)
{
	s->vnfs = calloc(FIB_VNFS_MAX, sizeof(*s->vnfs));
	s->hops = calloc(FIB_NEXT_HOPS_MAX, sizeof(*s->hops));
	s->spreads = aligned_alloc(alignof(struct fib_spread), FIB_SPREADS * sizeof(*s->spreads));
	return s->vnfs && s->hops && s->spreads ? 0 : -ENOMEM;
}

static void snapshot_free(struct fib_snapshot *s)
{
	free(s->vnfs);
	free(s->hops);
	free(s->spreads);
}

// --- Save -----------------------------------------------------------------------------------------------

static void collect(const struct fib *fib, struct fib_snapshot *s)
{
	struct fib_vnf_stats stats;

	s->head = (struct fib_snapshot_head){
	        .magic = FIB_SNAPSHOT_MAGIC, .version = FIB_SNAPSHOT_VERSION, .ports = fib->port_count};
	memcpy(s->ports, fib->ports, sizeof(s->ports));
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		s->head.tables |= (fib->tables[family] != NULL) << family;
	for (uint16_t vnf = 1; vnf < FIB_VNFS_MAX; vnf++)
		if (fib_vnf_read(fib, vnf, &stats))
			s->vnfs[s->head.vnfs++] = (struct fib_snapshot_vnf){
			        .quota_routes = stats.quota_routes,
			        .quota_hops = stats.quota_hops,
			        .vnf = vnf,
			};
	for (uint32_t index = 1; index <= FIB_NEXT_HOPS_MAX; index++) {
		const struct fib_entry *entry = &fib->entries[index];
		struct fib_snapshot_hop *hop = &s->hops[s->head.hops];

		if (!entry->used || entry->dead)
			continue;
		s->head.hops++;
		*hop = (struct fib_snapshot_hop){
		        .hop = fib->records[entry->record],
		        .session = entry->session,
		        .index = (uint16_t)index,
		        .vnf = entry->vnf,
		        .number = entry->number,
		};
		if (hop->hop.kind == FIB_HOP_GROUP) {
			s->spreads[s->head.spreads] = fib->spreads[hop->hop.spread];
			hop->hop.spread = s->head.spreads++;
		}
	}
	s->head.sum = sum_of(s);
}

static int write_parts(const struct fib *fib, const struct fib_snapshot *s, int fd, char *error)
{
	int rc = write_all(fd, &s->head, sizeof(s->head));

	if (rc == 0)
		rc = write_all(fd, s->vnfs, s->head.vnfs * sizeof(*s->vnfs));
	if (rc == 0)
		rc = write_all(fd, s->hops, s->head.hops * sizeof(*s->hops));
	if (rc == 0)
		rc = write_all(fd, s->spreads, s->head.spreads * sizeof(*s->spreads));
	if (rc == 0)
		rc = write_all(fd, s->ports, s->head.ports * sizeof(*s->ports));
	if (rc)
		FAIL(error, "%s", strerror(-rc));
	for (unsigned family = 0; family < FIB_FAMILIES && rc == 0; family++)
		if (fib->tables[family])
			rc = cuckoo_save(fib->tables[family], fd, error);
	return rc;
}

// With the lock for as long as the file system takes the bytes, not until they are on a disk.
static int write_locked(struct fib *fib, struct fib_snapshot *s, int fd, char *error)
{
	int rc;

	while (!fib_trylock(fib))
		sched_yield();
	collect(fib, s);
	rc = write_parts(fib, s, fd, error);
	fib_unlock(fib);
	return rc;
}

// Whole or not at all: written beside it, then put in its place.
static int write_file(struct fib *fib, struct fib_snapshot *s, const char *path, char *error)
{
	char beside[PATH_MAX];
	int fd, rc;

	if ((size_t)snprintf(beside, sizeof(beside), "%s.new", path) >= sizeof(beside)) {
		FAIL(error, "the path is too long");
		return -ENAMETOOLONG;
	}
	unlink(beside); // of a process that was killed; opening what somebody else has put there could block
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		FAIL(error, "cannot write '%.180s': %s", beside, strerror(errno));
		return -errno;
	}
	rc = write_locked(fib, s, fd, error);
	if ((rc == 0 && fsync(fd)) | close(fd) || (rc == 0 && rename(beside, path))) {
		rc = -errno;
		FAIL(error, "cannot write '%.180s': %s", path, strerror(-rc));
	}
	if (rc)
		unlink(beside);
	return rc;
}

int fib_save(struct fib *fib, const char *path, char *error)
{
	struct fib_snapshot s = {0};
	int rc = snapshot_alloc(&s);

	if (rc)
		FAIL(error, "no memory for the snapshot's head");
	if (rc == 0)
		rc = write_file(fib, &s, path, error);
	snapshot_free(&s);
	return rc;
}

// --- Load: the head -------------------------------------------------------------------------------------

static int compare_hops(const void *key, const void *hop)
{
	return *(const uint16_t *)key - ((const struct fib_snapshot_hop *)hop)->index;
}

// Its members are hops of the same session.
static bool spread_is_sound(const struct fib_snapshot *s, const struct fib_snapshot_hop *group)
{
	const struct fib_spread *spread = &s->spreads[group->hop.spread];

	for (unsigned slot = 0; slot < FIB_SPREAD_SLOTS; slot++)
		if (spread->slots[slot] >= spread->count)
			return false;
	for (unsigned i = 0; i < spread->count && i < FIB_MEMBERS_MAX; i++) {
		const struct fib_snapshot_hop *member =
		        bsearch(&spread->members[i], s->hops, s->head.hops, sizeof(*s->hops), compare_hops);

		if (!member || member->vnf != group->vnf || member->session != group->session ||
		    member->hop.kind == FIB_HOP_GROUP || !spread->weights[i])
			return false;
	}
	return spread->count <= FIB_MEMBERS_MAX;
}

static bool is_sound(const struct fib_snapshot *s)
{
	static const uint8_t kinds = FIB_HOP_GROUP;
	uint32_t before = 0, spreads = 0;

	for (uint32_t i = 0; i < s->head.vnfs; i++)
		if (s->vnfs[i].vnf == 0 || s->vnfs[i].vnf >= FIB_VNFS_MAX)
			return false;
	for (uint32_t i = 0; i < s->head.ports; i++)
		if (s->ports[i][FIB_NAME_MAX - 1])
			return false;
	for (uint32_t i = 0; i < s->head.hops; i++) { // in the order of their indices, which are not 0
		const struct fib_snapshot_hop *hop = &s->hops[i];

		if (hop->index <= before || hop->vnf == 0 || hop->vnf >= FIB_VNFS_MAX ||
		    hop->number >= FIB_HOP_NUMBERS || hop->hop.kind == FIB_HOP_NONE || hop->hop.kind > kinds)
			return false;
		if (hop->hop.kind == FIB_HOP_GROUP && hop->hop.spread != spreads++)
			return false;
		before = hop->index;
	}
	if (spreads != s->head.spreads)
		return false;
	for (uint32_t i = 0; i < s->head.hops; i++)
		if (s->hops[i].hop.kind == FIB_HOP_GROUP && !spread_is_sound(s, &s->hops[i]))
			return false;
	return true;
}

static int read_head(struct fib_snapshot *s, int fd, char *error)
{
	int rc = read_all(fd, &s->head, sizeof(s->head));

	if (rc == 0 && s->head.magic == FIB_SNAPSHOT_MAGIC && s->head.version != FIB_SNAPSHOT_VERSION) {
		FAIL(error, "it is of version %u, this program reads version %u", s->head.version,
		     FIB_SNAPSHOT_VERSION);
		return -EPROTO;
	}
	if (rc == 0 && (s->head.magic != FIB_SNAPSHOT_MAGIC || s->head.vnfs >= FIB_VNFS_MAX ||
	                s->head.hops > FIB_NEXT_HOPS_MAX || s->head.spreads > FIB_SPREADS ||
	                s->head.ports > FIB_PORTS_MAX)) {
		FAIL(error, "it is not a snapshot of a FIB");
		return -EBADMSG;
	}
	if (rc == 0)
		rc = read_all(fd, s->vnfs, s->head.vnfs * sizeof(*s->vnfs));
	if (rc == 0)
		rc = read_all(fd, s->hops, s->head.hops * sizeof(*s->hops));
	if (rc == 0)
		rc = read_all(fd, s->spreads, s->head.spreads * sizeof(*s->spreads));
	if (rc == 0)
		rc = read_all(fd, s->ports, s->head.ports * sizeof(*s->ports));
	if (rc == 0 && (sum_of(s) != s->head.sum || !is_sound(s)))
		rc = -EBADMSG;
	if (rc)
		FAIL(error, "%s", rc == -EBADMSG ? "it is cut off or damaged" : strerror(-rc));
	return rc;
}

static bool has_table(const struct fib_snapshot *s, unsigned family)
{
	return s->head.tables >> family & 1;
}

static int tables_fit(const struct fib *fib, const struct fib_snapshot *s, char *error)
{
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		if (has_table(s, family) && !fib->tables[family]) {
			FAIL(error, "it has a table of IPv%u, this FIB has none", family == FIB_V4 ? 4 : 6);
			return -EINVAL;
		}
	return 0;
}

// --- Load: in place of what there was -------------------------------------------------------------------

// Readers find no table from now on, and none is in one.
static void readers_out(struct fib *fib)
{
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		atomic_store_explicit(&fib->found_in[family], NULL, memory_order_release);
	rte_rcu_qsbr_synchronize(fib->readers, RTE_QSBR_THRID_INVALID);
}

static void readers_in(struct fib *fib)
{
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		atomic_store_explicit(&fib->found_in[family], fib->tables[family], memory_order_release);
}

// Nothing is left of hops and routes; VNFs stay. No reader is in the tables.
static void forget(struct fib *fib)
{
	fib->forgotten++;
	for (uint16_t vnf = 1; vnf < FIB_VNFS_MAX; vnf++) {
		struct fib_vnf *v = fib_vnf_of(fib, vnf);

		if (v == NULL)
			continue;
		fib_flush(fib, vnf, FIB_FLUSH_ALL);
		v->entries = v->indices = 0;
		v->generation++;
		atomic_store_explicit(&v->session, 0, memory_order_relaxed);
	}
	for (unsigned family = 0; family < FIB_FAMILIES; family++) {
		if (fib->tables[family])
			cuckoo_clear(fib->tables[family]);
		fib_add(&fib->dead[family], -(int64_t)fib_get(&fib->dead[family]));
		fib->cursors[family] = 0;
	}
	memset(fib->entries, 0, sizeof(fib->entries));
	for (unsigned i = 0; i <= FIB_NEXT_HOPS_MAX; i++)
		atomic_store_explicit(&fib->slots[i], &fib->none, memory_order_relaxed);
	fib_index_clear(fib);
	fib_pool_reset(&fib->indices_free);
	fib_pool_reset(&fib->records_free);
	fib_pool_reset(&fib->spreads_free);
}

static int vnfs_take(struct fib *fib, const struct fib_snapshot *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->head.vnfs && rc == 0; i++) {
		const struct fib_vnf_config config = {
		        .vnf = s->vnfs[i].vnf,
		        .quota_routes = s->vnfs[i].quota_routes,
		        .quota_hops = s->vnfs[i].quota_hops,
		};

		if (fib_vnf_of(fib, config.vnf) == NULL)
			rc = fib_vnf_set(fib, &config);
	}
	return rc;
}

// Its members may come later.
static void spread_take(struct fib *fib, struct fib_hop *group, const struct fib_snapshot *s)
{
	const struct fib_spread *spread = &s->spreads[group->spread];

	group->spread = fib_pool_take(&fib->spreads_free, fib->readers);
	fib->spreads[group->spread] = *spread;
	for (unsigned i = 0; i < spread->count; i++)
		fib->entries[spread->members[i]].groups++;
}

// Indices come in order; those between them are free.
static void hops_take(struct fib *fib, const struct fib_snapshot *s)
{
	for (uint32_t i = 0; i < s->head.hops; i++) {
		const struct fib_snapshot_hop *hop = &s->hops[i];
		struct fib_vnf *vnf = fib_vnf_of(fib, hop->vnf);
		struct fib_entry *entry = &fib->entries[hop->index];
		unsigned group = hop->session == FIB_OPERATOR ? GROUP_OPERATOR : GROUP_STALE;

		if (vnf == NULL) // of none that the file or this FIB has
			continue;
		while (fib->indices_free.fresh < hop->index)
			fib_pool_give(&fib->indices_free, fib->readers, fib->indices_free.fresh++);
		fib->indices_free.fresh = hop->index + 1u;
		*entry = (struct fib_entry){
		        .session = hop->session,
		        .record = fib_pool_take(&fib->records_free, fib->readers),
		        .groups = entry->groups, // that came before
		        .vnf = hop->vnf,
		        .number = hop->number,
		        .used = true,
		};
		fib->records[entry->record] = hop->hop;
		if (hop->hop.kind == FIB_HOP_GROUP)
			spread_take(fib, &fib->records[entry->record], s);
		if (group == GROUP_OPERATOR)
			vnf->numbers[GROUP_OPERATOR][hop->number] = hop->index;
		vnf->indices++;
		fib_hop_link(fib, &vnf->groups[group], hop->index);
		atomic_store_explicit(&fib->slots[hop->index], &fib->records[entry->record],
		                      memory_order_release);
	}
}

struct taking {
	struct fib *fib;
	uint64_t no_room; // prefixes that the index has no room for
};

// A route counts if it leads to a hop of its own VNF, and has room.
static bool count_entry(void *context, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index)
{
	struct taking *taking = context;
	struct fib *fib = taking->fib;
	struct fib_entry *entry = &fib->entries[index];
	struct fib_vnf *v = vnf ? fib_vnf_of(fib, vnf) : NULL;
	unsigned family = prefix->family == 4 ? FIB_V4 : FIB_V6;

	if (v == NULL || !entry->used || entry->vnf != vnf)
		return false;
	if (fib_index_add(fib, vnf, prefix, index, true)) {
		taking->no_room++;
		return false;
	}
	entry->routes[family]++;
	v->entries++;
	fib_add(&v->groups[fib_group_of(v, entry)].routes[family], 1);
	return true;
}

static int tables_take(struct fib *fib, const struct fib_snapshot *s, int fd, char *error)
{
	struct taking taking = {.fib = fib};

	for (unsigned family = 0; family < FIB_FAMILIES; family++) {
		uint64_t cursor = 0;
		int rc;

		if (!has_table(s, family))
			continue;
		rc = cuckoo_load(fib->tables[family], fd, error);
		if (rc)
			return rc;
		do
			fib_visit(fib, family, &cursor, UINT64_MAX, count_entry, &taking);
		while (cursor);
	}
	if (taking.no_room)
		LOG_WARN("snapshot: %" PRIu64
		         " prefixes have no room in the index and are left out; raise routes4 or routes6",
		         taking.no_room);
	return 0;
}

struct renaming {
	const struct fib *fib;
	const struct fib_snapshot *s;
};

// The port of this name, whatever its number was in the file.
static bool port_find(void *context, bool is_operators, struct fib_hop *hop)
{
	const struct renaming *renaming = context;
	unsigned port = 0;

	if (hop->port >= renaming->s->head.ports)
		return false;
	while (port < renaming->fib->port_count &&
	       strcmp(renaming->fib->ports[port], renaming->s->ports[hop->port]) != 0)
		port++;
	hop->port = (uint8_t)port;
	return port < renaming->fib->port_count;
}

static void ports_take(struct fib *fib, const struct fib_snapshot *s)
{
	struct renaming renaming = {fib, s};

	for (uint16_t vnf = 1; vnf < FIB_VNFS_MAX && (fib->port_count || s->head.ports); vnf++)
		fib_hops_revise(fib, vnf, port_find, &renaming);
}

static int take(struct fib *fib, const struct fib_snapshot *s, int fd, char *error)
{
	int rc;

	readers_out(fib);
	forget(fib);
	rc = vnfs_take(fib, s);
	if (rc)
		FAIL(error, "no memory for its VNFs");
	if (rc == 0) {
		hops_take(fib, s);
		rc = tables_take(fib, s, fd, error);
	}
	if (rc == 0)
		ports_take(fib, s);
	if (rc)
		forget(fib);
	readers_in(fib);
	return rc;
}

int fib_load(struct fib *fib, const char *path, char *error)
{
	struct fib_snapshot s = {0};
	struct stat stat;
	const char *why;
	int fd = input_file_open(path, &stat, &why), rc = 0;

	if (fd < 0) {
		FAIL(error, "%s", why);
		return fd;
	}
	rc = snapshot_alloc(&s);
	if (rc)
		FAIL(error, "no memory for the head of the snapshot");
	if (rc == 0)
		rc = read_head(&s, fd, error);
	if (rc == 0)
		rc = tables_fit(fib, &s, error);
	if (rc == 0)
		rc = take(fib, &s, fd, error);
	close(fd);
	snapshot_free(&s);
	return rc;
}

uint32_t fib_forgotten(const struct fib *fib)
{
	return fib->forgotten;
}
