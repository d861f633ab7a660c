// SPDX-License-Identifier: BSD-3-Clause
// Making it, VNFs and their sessions, readers, what is seen of it.
#include "fib/fib.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#include "fib/fib_state.h"
#include "base/log.h"

static int table_create(struct fib *fib, const struct fib_config *config, unsigned family)
{
	const struct cuckoo_config table = {
	        .width = family == FIB_V4 ? CUCKOO_NARROW : CUCKOO_WIDE,
	        .entries = family == FIB_V4 ? config->routes4 : config->routes6,
	        .seed = config->seed,
	        .pages = config->pages,
	};
	int rc = table.entries ? cuckoo_create(&table, &fib->tables[family]) : 0;

	if (rc == -ENOMEM)
		LOG_ERROR("fib: no memory for a table of %" PRIu64 " entries: %" PRIu64 " MB on pages \"%s\"",
		          table.entries, cuckoo_bytes(table.width, table.entries) >> 20,
		          hugepages_name(table.pages));
	atomic_init(&fib->found_in[family], fib->tables[family]);
	return rc;
}

static int readers_create(struct fib *fib)
{
	size_t size = rte_rcu_qsbr_get_memsize(FIB_READERS_MAX);

	fib->readers = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE));
	return fib->readers && rte_rcu_qsbr_init(fib->readers, FIB_READERS_MAX) == 0 ? 0 : -ENOMEM;
}

static int prefixes_create(struct fib *fib, const struct fib_config *config)
{
	uint64_t blocks;

	fib->routes = config->routes4 + config->routes6;
	blocks = FIB_BLOCKS_PER_ROUTE * fib->routes + 64 * FIB_BLOCKS_FREE;
	fib->prefixes = prefix_tree_create(blocks * PREFIX_BLOCK_BYTES, fib->readers);
	return fib->prefixes ? 0 : -ENOMEM;
}

static int hops_create(struct fib *fib)
{
	fib->records = aligned_alloc(sizeof(*fib->records), (FIB_RECORDS + 1) * sizeof(*fib->records));
	fib->spreads = aligned_alloc(alignof(struct fib_spread), (FIB_SPREADS + 1) * sizeof(*fib->spreads));
	for (unsigned i = 0; i <= FIB_NEXT_HOPS_MAX; i++)
		atomic_init(&fib->slots[i], &fib->none);
	return fib->records && fib->spreads && fib_pool_open(&fib->spreads_free, FIB_SPREADS) == 0 &&
	                       fib_pool_open(&fib->indices_free, FIB_NEXT_HOPS_MAX) == 0 &&
	                       fib_pool_open(&fib->records_free, FIB_RECORDS) == 0
	               ? 0
	               : -ENOMEM;
}

int fib_create(const struct fib_config *config, struct fib **out)
{
	struct fib *fib = calloc(1, sizeof(*fib));
	int rc = fib ? 0 : -ENOMEM;

	*out = NULL;
	if (rc == 0)
		rc = readers_create(fib);
	if (rc == 0)
		rc = hops_create(fib);
	if (rc == 0)
		rc = prefixes_create(fib, config);
	if (rc) {
		LOG_ERROR("fib: no memory for next hops and prefixes");
		fib_destroy(fib);
		return rc;
	}
	fib->port_count = RTE_MIN(config->port_count, (unsigned)FIB_PORTS_MAX);
	for (unsigned port = 0; port < fib->port_count; port++)
		snprintf(fib->ports[port], FIB_NAME_MAX, "%s", config->ports[port]);
	for (unsigned family = 0; family < FIB_FAMILIES && rc == 0; family++)
		rc = table_create(fib, config, family);
	if (rc) {
		fib_destroy(fib);
		return rc;
	}
	*out = fib;
	return 0;
}

static void vnf_destroy(struct fib_vnf *vnf)
{
	if (vnf == NULL)
		return;
	free(vnf->numbers[GROUP_OPERATOR]);
	free(vnf->numbers[GROUP_SESSION]);
	free(vnf);
}

void fib_destroy(struct fib *fib)
{
	if (fib == NULL)
		return;
	for (unsigned i = 0; i < FIB_VNFS_MAX; i++)
		vnf_destroy(atomic_load(&fib->vnfs[i]));
	for (unsigned family = 0; family < FIB_FAMILIES; family++) {
		cuckoo_destroy(fib->tables[family]);
		for (unsigned vnf = 0; vnf < FIB_VNFS_MAX; vnf++)
			prefix_space_close(&fib->spaces[vnf][family]);
	}
	fib_pool_close(&fib->indices_free);
	fib_pool_close(&fib->records_free);
	fib_pool_close(&fib->spreads_free);
	prefix_tree_destroy(fib->prefixes);
	free(fib->records);
	free(fib->spreads);
	free(fib->readers);
	free(fib);
}

// --- VNFs and their sessions ----------------------------------------------------------------------------

static struct fib_vnf *vnf_create(void)
{
	struct fib_vnf *vnf = calloc(1, sizeof(*vnf));

	if (vnf == NULL)
		return NULL;
	vnf->generation = 1; // 0: hops of a snapshot, which are stale
	for (unsigned map = 0; map < 2; map++)
		vnf->numbers[map] = calloc(FIB_HOP_NUMBERS, sizeof(*vnf->numbers[map]));
	if (vnf->numbers[GROUP_OPERATOR] && vnf->numbers[GROUP_SESSION])
		return vnf;
	vnf_destroy(vnf);
	return NULL;
}

static int spaces_open(struct prefix_space *spaces)
{
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		if (prefix_space_open(&spaces[family]))
			return -ENOMEM;
	return 0;
}

int fib_vnf_set(struct fib *fib, const struct fib_vnf_config *config)
{
	struct fib_vnf *vnf = fib_vnf_of(fib, config->vnf), *new = NULL;

	if (config->vnf == 0 || config->vnf >= FIB_VNFS_MAX)
		return -EINVAL;
	if (vnf == NULL && spaces_open(fib->spaces[config->vnf]) == 0)
		vnf = new = vnf_create();
	if (vnf == NULL)
		return -ENOMEM;
	atomic_store_explicit(&vnf->quota_routes, config->quota_routes, memory_order_relaxed);
	atomic_store_explicit(&vnf->quota_hops, config->quota_hops, memory_order_relaxed);
	if (new)
		atomic_store_explicit(&fib->vnfs[config->vnf], new, memory_order_release);
	return 0;
}

// Hops that nothing leads to are not worth keeping: nobody can name them any more.
static void drop_unused_hops(struct fib *fib, struct fib_vnf *vnf)
{
	uint16_t next;

	for (uint16_t index = vnf->groups[GROUP_SESSION].first; index; index = next) {
		const struct fib_entry *entry = &fib->entries[index];

		next = entry->next;
		if (fib_hop_is_idle(entry))
			fib_hop_free(fib, vnf, index);
	}
}

static void lists_join(struct fib *fib, struct fib_group *from, struct fib_group *to)
{
	if (from->first == 0)
		return;
	fib->entries[from->last].next = to->first;
	if (to->first)
		fib->entries[to->first].previous = from->last;
	else
		to->last = from->last;
	to->first = from->first;
	from->first = from->last = 0;
}

static void counts_join(struct fib_group *from, struct fib_group *to)
{
	uint32_t hops = atomic_load_explicit(&from->hops, memory_order_relaxed) +
	                atomic_load_explicit(&to->hops, memory_order_relaxed);

	for (unsigned family = 0; family < FIB_FAMILIES; family++) {
		fib_add(&to->routes[family], (int64_t)fib_get(&from->routes[family]));
		atomic_store_explicit(&from->routes[family], 0, memory_order_relaxed);
	}
	atomic_store_explicit(&to->hops, hops, memory_order_relaxed);
	atomic_store_explicit(&from->hops, 0, memory_order_relaxed);
}

int fib_begin(struct fib *fib, uint16_t vnf, uint32_t session)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);

	if (v == NULL || session == FIB_OPERATOR)
		return -EINVAL;
	drop_unused_hops(fib, v);
	lists_join(fib, &v->groups[GROUP_SESSION], &v->groups[GROUP_STALE]);
	counts_join(&v->groups[GROUP_SESSION], &v->groups[GROUP_STALE]);
	v->generation++;
	atomic_store_explicit(&v->session, session, memory_order_relaxed);
	return 0;
}

// --- Readers and the writer -----------------------------------------------------------------------------

int fib_reader_add(struct fib *fib)
{
	for (int reader = 0; reader < FIB_READERS_MAX; reader++)
		if (!atomic_exchange(&fib->reader_used[reader], true))
			return rte_rcu_qsbr_thread_register(fib->readers, (unsigned)reader) ? -ENOSPC
			                                                                    : reader;
	return -ENOSPC;
}

void fib_reader_remove(struct fib *fib, int reader)
{
	rte_rcu_qsbr_thread_offline(fib->readers, (unsigned)reader);
	rte_rcu_qsbr_thread_unregister(fib->readers, (unsigned)reader);
	atomic_store(&fib->reader_used[reader], false);
}

void fib_reader_online(struct fib *fib, int reader)
{
	rte_rcu_qsbr_thread_online(fib->readers, (unsigned)reader);
}

void fib_reader_offline(struct fib *fib, int reader)
{
	rte_rcu_qsbr_thread_offline(fib->readers, (unsigned)reader);
}

void fib_reader_quiet(struct fib *fib, int reader)
{
	rte_rcu_qsbr_quiescent(fib->readers, (unsigned)reader);
}

bool fib_trylock(struct fib *fib)
{
	return !atomic_exchange_explicit(&fib->locked, true, memory_order_acquire);
}

void fib_unlock(struct fib *fib)
{
	atomic_store_explicit(&fib->locked, false, memory_order_release);
}

// --- What is seen of it ---------------------------------------------------------------------------------

bool fib_vnf_read(const struct fib *fib, uint16_t vnf, struct fib_vnf_stats *stats)
{
	const struct fib_vnf *v = fib_vnf_of(fib, vnf);

	*stats = (struct fib_vnf_stats){0};
	if (v == NULL)
		return false;
	for (unsigned group = 0; group < FIB_GROUPS; group++) {
		stats->routes4 += fib_get(&v->groups[group].routes[FIB_V4]);
		stats->routes6 += fib_get(&v->groups[group].routes[FIB_V6]);
		stats->hops += atomic_load_explicit(&v->groups[group].hops, memory_order_relaxed);
	}
	stats->stale = fib_get(&v->groups[GROUP_STALE].routes[FIB_V4]) +
	               fib_get(&v->groups[GROUP_STALE].routes[FIB_V6]);
	stats->announced = stats->stale + fib_get(&v->groups[GROUP_SESSION].routes[FIB_V4]) +
	                   fib_get(&v->groups[GROUP_SESSION].routes[FIB_V6]);
	stats->session = atomic_load_explicit(&v->session, memory_order_relaxed);
	stats->quota_routes = fib_get(&v->quota_routes);
	stats->quota_hops = atomic_load_explicit(&v->quota_hops, memory_order_relaxed);
	return true;
}

void fib_read_stats(const struct fib *fib, struct cuckoo_stats *narrow, struct cuckoo_stats *wide)
{
	struct cuckoo_stats *stats[FIB_FAMILIES] = {narrow, wide};

	for (unsigned family = 0; family < FIB_FAMILIES; family++) {
		*stats[family] = (struct cuckoo_stats){0};
		if (fib->tables[family])
			cuckoo_read_stats(fib->tables[family], stats[family]);
	}
}
