// SPDX-License-Identifier: BSD-3-Clause
// fib_offload: made, replaced and ended. Control thread.
#include <errno.h>
#include <rte_cycles.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "fib/fib_offload.h"
#include "base/schema.h"

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
	uint64_t hz = clock_hz();

	s->fib = fib;
	s->vnf = settings->vnf;
	s->wires = 0;
	for (uint8_t wire = 0; wire < OFFLOAD_WIRES_MAX; wire++)
		if (settings->wires >> wire & 1)
			s->ports[s->wires++] = wire;
	memcpy(s->mac, settings->mac, sizeof(s->mac));
	memcpy(s->vlans, settings->vlans, sizeof(s->vlans));
	s->grace_tsc = settings->grace_s * hz;
	s->hold_tsc = settings->hold_s * hz;
}

struct revision {
	const struct fib_session *session;
	const uint8_t *mac; // that it had before
};

// What leaves for a VNF has its address, unless the operator gave another, and goes by a wire of its own.
static bool hop_revise(void *context, bool is_operators, struct fib_hop *hop)
{
	const struct revision *revision = context;
	const struct fib_session *s = revision->session;
	uint8_t *source = hop->macs + RTE_ETHER_ADDR_LEN;

	if (!is_operators || memcmp(source, revision->mac, RTE_ETHER_ADDR_LEN) == 0)
		memcpy(source, s->mac, RTE_ETHER_ADDR_LEN);
	return memchr(s->ports, hop->port, s->wires) != NULL;
}

// With the lock.
static void hops_revise(struct offload_session *session, const uint8_t *mac_before)
{
	struct revision revision = {&session->fib_session, mac_before};

	fib_hops_revise(session->fib_session.fib, session->fib_session.vnf, hop_revise, &revision);
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
	hops_revise(session, settings->mac); // a snapshot's
	fib->sessions[settings->vnf] = session;
	return 0;
}

static uint64_t session_changes(const struct offload_session *session)
{
	return session->fib_session.records + session->fib_session.flushed;
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
	fib->edits += 1 + session_changes(fib->sessions[settings->vnf]);
	vnf_flush(fib, settings->vnf);
	free(fib->sessions[settings->vnf]);
	fib->sessions[settings->vnf] = NULL;
}

enum { NEIGHBOURS = 4096, NEIGHBOUR_AGEING_S = 300 };

// --- A FIB -----------------------------------------------------------------------------------------------

// A file that is no good is not worth refusing to forward.
static void snapshot_load(struct offload_fib *fib, const char *task)
{
	const char *path = fib->settings.snapshot;
	char error[CONFIG_ERROR_MAX] = "";
	int status;

	if (!path[0] || access(path, F_OK) != 0)
		return;
	offload_fib_lock(fib->fib);
	status = fib_load(fib->fib, path, error);
	fib_unlock(fib->fib);
	fib->is_foreign = status && status != -EBADMSG;
	if (status)
		LOG_WARN("task %s: snapshot %s: %s; the FIB begins empty%s", task, path, error,
		         fib->is_foreign ? ", and the file stays as it is until it is moved away, or "
		                           "fib_offload.save writes over it"
		                         : "");
}

// Grows with the FIB's changes. A message that is applied at this moment is counted the next time.
static uint64_t changes(const struct offload_fib *fib)
{
	uint64_t count = fib->edits;

	for (unsigned number = 1; number < FIB_VNFS_MAX; number++)
		if (fib->sessions[number])
			count += session_changes(fib->sessions[number]);
	return count;
}

static void snapshot_save(struct offload_fib *fib, const char *task)
{
	char error[CONFIG_ERROR_MAX] = "";
	uint64_t count = changes(fib);

	if (count == fib->kept || (fib->is_foreign && access(fib->settings.snapshot, F_OK) == 0))
		return;
	if (fib_save(fib->fib, fib->settings.snapshot, error) == 0)
		fib->kept = count;
	else if (!fib->keep_failed)
		LOG_WARN("task %s: snapshot %s: %s", task, fib->settings.snapshot, error);
	fib->keep_failed = fib->kept != count;
}

int offload_keep(struct task *task, bool ending)
{
	struct offload_fib *fib = ((struct offload *)task)->fib;
	int64_t now_ms = clock_now_ms();

	if (!fib->settings.snapshot[0] || (fib->keep_ms == 0 && !ending))
		return -1;
	if (now_ms < fib->keep_due_ms && !ending)
		return (int)(fib->keep_due_ms - now_ms);
	fib->keep_due_ms = now_ms + fib->keep_ms;
	snapshot_save(fib, task->name);
	return (int)fib->keep_ms;
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
	for (unsigned number = 1; number < FIB_VNFS_MAX; number++) {
		struct offload_session *session = fib->sessions[number];

		if (!session)
			continue;
		offload_session_forget(session);
		hops_revise(session, session->fib_session.mac);
	}
	strangers_flush(fib);
}

static struct offload_fib *create(const struct offload_fib_settings *settings, const char *task)
{
	const struct fib_config config = {
	        .routes4 = settings->routes4,
	        .routes6 = settings->routes6,
	        .seed = random_secret(),
	        .pages = settings->pages,
	        .port_count = settings->wire_count,
	        .ports = settings->wires,
	};
	struct offload_fib *fib = calloc(1, sizeof(*fib));
	uint64_t hz = clock_hz();

	if (!fib)
		return NULL;
	fib->neighbours = mac_table_create(NEIGHBOURS, NEIGHBOUR_AGEING_S * hz, hz, random_secret() | 1);
	if (!fib->neighbours || fib_create(&config, &fib->fib) != 0) {
		mac_table_destroy(fib->neighbours);
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
	mac_table_destroy(fib->neighbours);
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

// With other wires, or another address, it has to announce everything again; what it announced is stale until then, but for
// what it may not do any more. With the lock.
static void session_change(struct offload_fib *fib, struct offload_session *session,
                           const struct offload_vnf_settings *settings)
{
	struct fib_session *s = &session->fib_session, before = *s;

	session_set(session, fib->fib, settings);
	if (s->wires == before.wires && memcmp(s->ports, before.ports, s->wires) == 0 &&
	    memcmp(s->mac, before.mac, sizeof(s->mac)) == 0)
		return;
	hops_revise(session, before.mac);
	if (s->number)
		fib_begin(fib->fib, s->vnf, s->number);
	offload_session_forget(session);
	fib->edits++;
}

void offload_fib_set(struct offload_fib *fib, const struct offload_settings *settings)
{
	fib->keep_ms = (int64_t)settings->snapshot_s * MS_PER_S;
	offload_fib_lock(fib->fib);
	for (unsigned i = 0; i < settings->vnf_count; i++) {
		const struct offload_vnf_settings *vnf = &settings->vnfs[i];

		if (vnf->offload && quota_set(fib->fib, vnf) == 0)
			session_change(fib, fib->sessions[vnf->vnf], vnf);
	}
	fib_unlock(fib->fib);
}

// --- Tasks: made, replaced and ended ---------------------------------------------------------------------

enum { MAC_TRIES = 100000 }; // one in eight does for 63 VNFs

// Tasks with one FIB are the same switch on several queues.
int offload_agree(const struct config_task *a, const struct config_task *b, char *error)
{
	const struct offload_settings *of_a = a->settings, *of_b = b->settings;

	if (strcmp(of_a->fib.name, of_b->fib.name) != 0 && of_a->fib.snapshot[0] &&
	    strcmp(of_a->fib.snapshot, of_b->fib.snapshot) == 0)
		return config_error(error, "tasks %s and %s have the same \"snapshot\"; give each its own",
		                    a->name, b->name);
	if (strcmp(of_a->fib.name, of_b->fib.name) != 0 ||
	    (memcmp(of_a, of_b, sizeof(*of_a)) == 0 && memcmp(a->ports, b->ports, sizeof(a->ports)) == 0))
		return 0;
	return config_error(
	        error,
	        "tasks %s and %s share the FIB \"%s\": their \"ports\" and \"settings\" must be the same; "
	        "give one of them another \"fib\"",
	        a->name, b->name, of_a->fib.name);
}

static uint64_t mac_word(const uint8_t mac[RTE_ETHER_ADDR_LEN])
{
	uint64_t word = 0;

	memcpy(&word, mac, RTE_ETHER_ADDR_LEN);
	return word << 16;
}

// With this factor each address has a slot to itself, or it has not.
static bool macs_fit(struct offload *o, uint64_t factor)
{
	memset(o->macs, 0, sizeof(o->macs));
	o->mac_factor = factor;
	for (unsigned i = 0; i < o->vnf_count; i++) {
		uint64_t mac = mac_word(o->vnfs[i].mac), *slot = &o->macs[offload_slot(factor, mac)];

		if (*slot)
			return false;
		*slot = mac | i;
	}
	return true;
}

static int macs_set(struct offload *o, const char *task)
{
	uint64_t factor = random_secret() | 1;

	for (unsigned i = 0; i < MAC_TRIES; i++, factor += RANDOM_GOLDEN - 1)
		if (macs_fit(o, factor))
			return 0;
	LOG_ERROR("task %s: no place for the MAC addresses of %u VNFs", task, o->vnf_count);
	return -ENOSPC;
}

static void rules_set(struct offload *o)
{
	for (unsigned i = 0; i < o->settings.rule_count; i++) {
		const struct offload_rule *rule = &o->settings.rules[i];
		uint8_t bit = rule->protocol == IPPROTO_TCP ? 1 : rule->protocol == IPPROTO_UDP ? 2 : 0;

		for (unsigned low = 0; low < RTE_DIM(o->doubt); low++)
			if (rule->port == 0 || low == (rte_be_to_cpu_16(rule->port) & 0xff))
				o->doubt[low] |= bit;
	}
}

static void vnf_set(struct offload *o, unsigned i)
{
	const struct offload_vnf_settings *settings = &o->settings.vnfs[i];

	o->vnfs[i] = (struct offload_vnf){
	        .number = settings->vnf,
	        .routes_of = settings->routes_of,
	        .port = settings->port,
	        .out = o->wire_ports[settings->out],
	        .wires = settings->wires,
	        .offload = settings->offload,
	        .punts_misses = settings->punts_misses,
	        .session = settings->offload ? o->fib->sessions[settings->vnf] : NULL,
	        .punts = bucket_full(o->settings.punt_burst, o->settings.punt_pps, clock_hz(), 0),
	};
	memcpy(o->vnfs[i].mac, settings->mac, sizeof(settings->mac));
	o->vnfs[i].reflects = mac_word(settings->reflect) != 0;
	if (settings->offload || o->vnfs[i].reflects || !(settings->wires & (settings->wires - 1)))
		o->vnfs[i].direct = settings->wires;
	memcpy(o->vnfs[i].macs, settings->reflect, RTE_ETHER_ADDR_LEN);
	memcpy(o->vnfs[i].macs + RTE_ETHER_ADDR_LEN, settings->mac, RTE_ETHER_ADDR_LEN);
	o->vnf_of[settings->port] = (uint8_t)i;
	o->shares |= settings->routes_of != 0;
	o->vnf.moves_starts |= settings->offload && vlans_have(settings->vlans, 0);
	if (settings->offload)
		vnf_side_slow(&o->vnf, settings->port);
}

static void sides_set(struct offload *o)
{
	const struct offload_settings *settings = &o->settings;

	memset(o->wire_of, OFFLOAD_NONE, sizeof(o->wire_of));
	memset(o->vnf_of, OFFLOAD_NONE, sizeof(o->vnf_of));
	memset(o->wire_ports, VNF_DROP | OFFLOAD_NO_ROUTE, sizeof(o->wire_ports));
	for (unsigned i = 0; i < settings->fib.wire_count; i++) {
		o->wire_ports[i] = settings->wire_ports[i];
		o->wire_of[settings->wire_ports[i]] = (uint8_t)i;
	}
	memset(o->frame_max, 0xff, sizeof(o->frame_max));
	for (unsigned i = 0; i < settings->mtu_count; i++)
		for (unsigned wire = 0; wire < settings->fib.wire_count; wire++)
			if (strcmp(settings->fib.wires[wire], settings->mtus[i].wire) == 0)
				o->frame_max[wire] = RTE_ETHER_HDR_LEN + settings->mtus[i].mtu;
	o->has_mtus = o->careful = settings->mtu_count > 0;
	o->vnf_count = settings->vnf_count;
	for (unsigned i = 0; i < o->vnf_count; i++)
		vnf_set(o, i);
	rules_set(o);
}

int offload_open(struct vnf *vnf, const struct config_task *config)
{
	struct offload *o = (struct offload *)vnf;
	int status;

	o->reader = -1;
	memcpy(&o->settings, config->settings, sizeof(o->settings)); // with what is between its members
	status = offload_fib_get(&o->settings, config->name, &o->fib);
	if (status)
		return status;
	o->reader = fib_reader_add(o->fib->fib);
	if (o->reader < 0) {
		LOG_ERROR("task %s: too many tasks share the FIB \"%s\"", config->name, o->settings.fib.name);
		return o->reader;
	}
	fib_reader_online(o->fib->fib, o->reader);
	sides_set(o);
	return macs_set(o, config->name);
}

void offload_close(struct vnf *vnf)
{
	struct offload *o = (struct offload *)vnf;

	if (o->fib && o->reader >= 0)
		fib_reader_remove(o->fib->fib, o->reader);
	offload_fib_put(o->fib, &o->settings);
}

// Sessions that go on, whatever the tasks are called, have the new settings.
void offload_take_effect(struct task *task)
{
	struct offload *o = (struct offload *)task;

	offload_fib_set(o->fib, &o->settings);
}
