// SPDX-License-Identifier: BSD-3-Clause
// FIBs by name, and the sessions of the VNFs in each: tasks come and go by config.apply, routes stay.
#include <errno.h>
#include <rte_cycles.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tasks/fib_offload/fib_offload.h"
#include "lib/log.h"

static struct offload_fib *all;

void offload_fib_lock(struct fib *fib)
{
	while (!fib_trylock(fib))
		sched_yield();
}

// --- One VNF ---------------------------------------------------------------------------------------------

static void session_set(struct offload_session *session, struct fib *fib,
                        const struct offload_vnf_settings *settings)
{
	struct fib_session *s = &session->fib_session;
	uint64_t hz = rte_get_tsc_hz();

	s->fib = fib;
	s->vnf = settings->vnf;
	s->wires = 0;
	for (uint8_t wire = 0; wire < OFFLOAD_WIRES_MAX; wire++)
		if (settings->wires >> wire & 1)
			s->ports[s->wires++] = wire;
	memcpy(s->mac, settings->mac, sizeof(s->mac));
	s->grace_tsc = settings->grace_s * hz;
	s->hold_tsc = settings->hold_s * hz;
}

static int quota_set(struct fib *fib, const struct offload_vnf_settings *settings)
{
	const struct fib_vnf_config config = {settings->vnf, settings->quota_routes, settings->quota_hops};

	return fib_vnf_set(fib, &config);
}

// With the lock.
static int vnf_get(struct offload_fib *fib, const struct offload_vnf_settings *settings)
{
	struct offload_session *session = fib->sessions[settings->vnf];
	int status;

	if (session) {
		session->users++;
		return 0;
	}
	session = calloc(1, sizeof(*session));
	status = session ? quota_set(fib->fib, settings) : -ENOMEM;
	if (status) {
		free(session);
		return status;
	}
	session->users = 1;
	session_set(session, fib->fib, settings);
	fib->sessions[settings->vnf] = session;
	return 0;
}

static void vnf_flush(struct offload_fib *fib, uint16_t number)
{
	const struct fib_vnf_config nothing = {.vnf = number};

	fib_flush(fib->fib, number, FIB_FLUSH_ALL);
	fib_vnf_set(fib->fib, &nothing);
}

// With the lock.
static void vnf_put(struct offload_fib *fib, const struct offload_vnf_settings *settings)
{
	if (--fib->sessions[settings->vnf]->users > 0)
		return;
	vnf_flush(fib, settings->vnf);
	free(fib->sessions[settings->vnf]);
	fib->sessions[settings->vnf] = NULL;
}

// --- A FIB -----------------------------------------------------------------------------------------------

static uint64_t any_seed(void)
{
	uint64_t seed = rte_rdtsc();

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed *= UINT64_C(0x9e3779b97f4a7c15); // early in the life of a machine
	return seed;
}

// A file that is no good is not worth refusing to forward.
static void snapshot_load(struct offload_fib *fib, const char *task)
{
	const char *path = fib->settings.snapshot;
	char error[CONFIG_ERROR_MAX] = "";

	if (!path[0] || access(path, F_OK) != 0)
		return;
	offload_fib_lock(fib->fib);
	if (fib_load(fib->fib, path, error) != 0)
		LOG_WARN("task %s: snapshot %s: %s; the FIB begins empty", task, path, error);
	fib_unlock(fib->fib);
}

// What a snapshot has of VNFs that nobody offloads here. With the lock.
static void strangers_flush(struct offload_fib *fib)
{
	struct fib_vnf_stats stats;

	for (uint16_t number = 1; number < FIB_VNFS_MAX; number++)
		if (!fib->sessions[number] && fib_vnf_read(fib->fib, number, &stats))
			vnf_flush(fib, number);
}

// Whoever has the session's lock never waits for the FIB's, which we have.
void offload_session_forget(struct offload_session *session)
{
	rte_spinlock_lock(&session->lock);
	session->fib_session.state = FIB_SESSION_NONE;
	session->fib_session.has_stale = false;
	rte_spinlock_unlock(&session->lock);
}

void offload_fib_loaded(struct offload_fib *fib)
{
	for (unsigned number = 1; number < FIB_VNFS_MAX; number++)
		if (fib->sessions[number])
			offload_session_forget(fib->sessions[number]);
	strangers_flush(fib);
}

static struct offload_fib *create(const struct offload_fib_settings *settings, const char *task)
{
	const struct fib_config config = {
	        .routes4 = settings->routes4,
	        .routes6 = settings->routes6,
	        .seed = any_seed(),
	        .pages = settings->pages,
	};
	struct offload_fib *fib = calloc(1, sizeof(*fib));

	if (!fib || fib_create(&config, &fib->fib) != 0) {
		free(fib);
		return NULL;
	}
	fib->settings = *settings;
	snapshot_load(fib, task);
	fib->next = all;
	all = fib;
	return fib;
}

static void destroy(struct offload_fib *fib)
{
	struct offload_fib **at = &all;

	while (*at != fib)
		at = &(*at)->next;
	*at = fib->next;
	fib_destroy(fib->fib);
	free(fib);
}

static void sessions_put(struct offload_fib *fib, const struct offload_settings *settings, unsigned count)
{
	offload_fib_lock(fib->fib);
	for (unsigned i = 0; i < count; i++)
		if (settings->vnfs[i].offload)
			vnf_put(fib, &settings->vnfs[i]);
	fib_unlock(fib->fib);
	if (--fib->users == 0)
		destroy(fib);
}

int offload_fib_get(const struct offload_settings *settings, const char *task, struct offload_fib **out)
{
	struct offload_fib *fib = all;
	unsigned i = 0;
	int status = 0;

	while (fib && memcmp(&fib->settings, &settings->fib, sizeof(fib->settings)) != 0)
		fib = fib->next;
	if (!fib)
		fib = create(&settings->fib, task);
	if (!fib)
		return -ENOMEM;
	fib->users++;
	offload_fib_lock(fib->fib);
	for (; i < settings->vnf_count && status == 0; i++)
		if (settings->vnfs[i].offload)
			status = vnf_get(fib, &settings->vnfs[i]);
	if (fib->users == 1)
		strangers_flush(fib);
	fib_unlock(fib->fib);
	if (status) {
		LOG_ERROR("task %s: VNF %u: no session in the FIB: %s", task, settings->vnfs[i - 1].vnf,
		          strerror(-status));
		sessions_put(fib, settings, i - 1);
		return status;
	}
	*out = fib;
	return 0;
}

void offload_fib_put(struct offload_fib *fib, const struct offload_settings *settings)
{
	if (fib)
		sessions_put(fib, settings, settings->vnf_count);
}

void offload_fib_set(struct offload_fib *fib, const struct offload_settings *settings)
{
	offload_fib_lock(fib->fib);
	for (unsigned i = 0; i < settings->vnf_count; i++) {
		const struct offload_vnf_settings *vnf = &settings->vnfs[i];

		if (vnf->offload && quota_set(fib->fib, vnf) == 0)
			session_set(fib->sessions[vnf->vnf], fib->fib, vnf);
	}
	fib_unlock(fib->fib);
}
