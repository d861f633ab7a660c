// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/generator/generator_way.h"

static const char *const state_names[] = {"idle", "running", "done"};

void generator_report(const struct task *task, json_t *object)
{
	const struct generator *g = (const struct generator *)task;
	uint64_t bytes = g->profile ? g->profile->ledger.bytes : g->offered * g->flow.frame_size_bytes;
	const struct pacer *p = &g->pacer;
	json_t *intended = p->flat_out ? json_null() : json_integer((json_int_t)p->intended);

	json_object_set_new(object, "generator",
	                    json_pack("{si ss si si so sI sI sI sI sI sI sI sI sI sI so*}", "stream",
	                              g->flow.stream, "state", state_names[g->state], "epoch", g->flow.epoch,
	                              "frame_size_bytes", g->flow.frame_size_bytes, "intended_packets",
	                              intended, "offered_packets", (json_int_t)g->offered, "offered_bytes",
	                              (json_int_t)bytes, "unsent_late_packets", (json_int_t)p->late,
	                              "unsent_ring_full_packets",
	                              (json_int_t)(p->flat_out ? 0 : g->ring_full), "attempted_packets",
	                              (json_int_t)g->attempted, "refused_packets", (json_int_t)g->refused,
	                              "no_mbuf", (json_int_t)g->no_mbuf, "probes_sent", (json_int_t)g->probes,
	                              "probes_stamped", (json_int_t)g->probes, // by software: each
	                              "duration_ns", (json_int_t)g->duration_ns, "profile",
	                              g->profile ? profile_report(g->profile) : NULL));
}
