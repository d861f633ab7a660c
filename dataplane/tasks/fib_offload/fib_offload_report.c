// SPDX-License-Identifier: BSD-3-Clause
// What stats.get says of fib_offload. Control thread, worker parked.
#include "tasks/fib_offload/fib_offload.h"

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static const char *const codes[FIB_CODES] = {
        [FIB_OK] = "ok",
        [FIB_BUSY] = "busy",
        [FIB_SEQUENCE] = "sequence",
        [FIB_MALFORMED] = "malformed",
        [FIB_NO_SESSION] = "no_session",
        [FIB_QUOTA] = "quota",
        [FIB_FULL] = "full",
        [FIB_NO_NEXT_HOP] = "no_next_hop",
        [FIB_EXISTS] = "exists",
        [FIB_ABSENT] = "absent",
        [FIB_BUSY_HOP] = "busy_hop",
        [FIB_VERSION] = "version",
};

static json_t *table_json(const struct cuckoo_stats *stats)
{
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o}", "entries", count(stats->entries), "room",
	                 count(stats->room), "bytes", count(stats->bytes), "pages",
	                 hugepages_name(stats->pages), "moves", count(stats->moves), "longest_path",
	                 count(stats->longest_path));
}

// Answers, by code.
static json_t *codes_json(const struct fib_session *session)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < FIB_CODES; i++)
		json_object_set_new(object, codes[i], count(session->codes[i]));
	return object;
}

static json_t *session_json(const struct fib_session *session)
{
	static const char *const states[] = {
	        [FIB_SESSION_NONE] = "none", [FIB_SESSION_UP] = "up", [FIB_SESSION_STALE] = "stale"};

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", states[session->state],
	                 "number", count(session->number), "messages", count(session->messages), "records",
	                 count(session->records), "malformed", count(session->malformed), "lost_peers",
	                 count(session->lost_peers), "flushed", count(session->flushed), "answers",
	                 codes_json(session));
}

static void add_fib(const struct fib *fib, const struct offload_vnf *v, json_t *object)
{
	struct fib_vnf_stats stats = {0};

	fib_vnf_read(fib, v->number, &stats);
	json_object_set_new(object, "routes4", count(stats.routes4));
	json_object_set_new(object, "routes6", count(stats.routes6));
	json_object_set_new(object, "stale", count(stats.stale));
	json_object_set_new(object, "next_hops", count(stats.hops));
	json_object_set_new(object, "quota_routes", count(stats.quota_routes));
	json_object_set_new(object, "quota_next_hops", count(stats.quota_hops));
	json_object_set_new(object, "session", session_json(&v->session->fib_session));
}

static json_t *vnf_json(const struct offload *o, const struct offload_vnf *v)
{
	json_t *object =
	        json_pack("{s:i, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "vnf", v->number, "port",
	                  o->vnf.task.ports[v->port]->config.name, "offload", v->offload, "forwarded",
	                  count(v->forwarded), "punted", count(v->punted), "punt_limited", count(v->limited),
	                  "no_route", count(v->no_route), "sent", count(v->sent));

	if (v->session)
		add_fib(o->fib->fib, v, object);
	return object;
}

void offload_report(const struct vnf *vnf, json_t *object)
{
	const struct offload *o = (const struct offload *)vnf;
	struct cuckoo_stats narrow = {0}, wide = {0};
	json_t *vnfs = json_array();

	fib_read_stats(o->fib->fib, &narrow, &wide);
	for (unsigned i = 0; i < o->vnf_count; i++)
		json_array_append_new(vnfs, vnf_json(o, &o->vnfs[i]));
	json_object_set_new(object, "fib", json_string(o->settings.fib.name));
	json_object_set_new(object, "table4", table_json(&narrow));
	json_object_set_new(object, "table6", table_json(&wide));
	json_object_set_new(object, "sweeping", json_boolean(fib_is_dirty(o->fib->fib)));
	json_object_set_new(object, "copies", count(o->copies));
	json_object_set_new(object, "copies_lost", count(o->copies_lost));
	json_object_set_new(object, "vnfs", vnfs);
}
