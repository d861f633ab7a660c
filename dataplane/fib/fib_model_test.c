// SPDX-License-Identifier: BSD-3-Clause
// Random updates against plain lists: three VNFs in the same small address space, both families, sessions
// that come and go, sweeps now and then. Every answer, every count and every lookup is as the lists have it.
#include <stdio.h>

#include "fib/fib_rig.h"

enum {
	VNFS = 3,
	ROUTES_MAX = 400,
	HOPS_MAX = 64,
	NUMBERS = 6,
	QUOTA_HOPS = 8,
	QUOTA_ROUTES = 300,
	STEPS = 60000
};
enum group { OPERATOR, SESSION, STALE };

struct model_hop {
	enum group group;
	uint16_t number;
	uint8_t mark;
	unsigned id; // of all time
};

struct model_route {
	struct fib_prefix prefix;
	unsigned hop;
};

static struct model {
	uint32_t session;
	struct model_hop hops[HOPS_MAX];
	struct model_route routes[ROUTES_MAX];
	unsigned hop_count, route_count;
} models[VNFS + 1];

static struct fib *fib;
static unsigned ids;
static uint64_t random_state = 88172645463325252;

static unsigned draw(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 33) % n;
}

// --- The lists ------------------------------------------------------------------------------------------

static struct model_hop *hop_named(struct model *m, uint32_t session, uint16_t number)
{
	enum group group = session == FIB_OPERATOR ? OPERATOR : SESSION;

	if (group == SESSION && session != m->session)
		return NULL;
	for (unsigned i = 0; i < m->hop_count; i++)
		if (m->hops[i].group == group && m->hops[i].number == number)
			return &m->hops[i];
	return NULL;
}

static struct model_hop *hop_with(struct model *m, unsigned id)
{
	for (unsigned i = 0; i < m->hop_count; i++)
		if (m->hops[i].id == id)
			return &m->hops[i];
	fail();
	return NULL;
}

static struct model_route *route_of(struct model *m, const struct fib_prefix *prefix)
{
	for (unsigned i = 0; i < m->route_count; i++)
		if (memcmp(&m->routes[i].prefix, prefix, sizeof(*prefix)) == 0)
			return &m->routes[i];
	return NULL;
}

static unsigned routes_by(const struct model *m, unsigned id)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->route_count; i++)
		count += m->routes[i].hop == id;
	return count;
}

static void hop_remove(struct model *m, struct model_hop *hop)
{
	*hop = m->hops[--m->hop_count];
}

static void route_remove(struct model *m, struct model_route *route)
{
	*route = m->routes[--m->route_count];
}

// Stale hops are gone with their last route.
static void forget_unused(struct model *m)
{
	for (unsigned i = m->hop_count; i-- > 0;)
		if (m->hops[i].group == STALE && routes_by(m, m->hops[i].id) == 0)
			hop_remove(m, &m->hops[i]);
}

static unsigned hops_in(const struct model *m, bool stale)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->hop_count; i++)
		count += (m->hops[i].group == STALE) == stale;
	return count;
}

static uint8_t longest(struct model *m, unsigned family, const uint8_t *address)
{
	int best = -1;
	uint8_t mark = 0;

	for (unsigned i = 0; i < m->route_count; i++) {
		const struct fib_prefix *p = &m->routes[i].prefix;
		bool match = p->family == family && p->length > best;

		for (unsigned bit = 0; match && bit < p->length; bit++)
			match = !((p->address[bit / 8] ^ address[bit / 8]) & 0x80 >> bit % 8);
		if (match) {
			best = p->length;
			mark = hop_with(m, m->routes[i].hop)->mark;
		}
	}
	return mark;
}

// --- Random things --------------------------------------------------------------------------------------

// Few addresses, so that prefixes lie in each other and come again.
static void address_draw(unsigned family, uint8_t *address)
{
	memset(address, 0, 16);
	address[0] = (uint8_t)(draw(2) ? 0xa5 : 0x5a);
	for (unsigned byte = 1; byte < (family == 4 ? 4 : 16); byte++)
		address[byte] = (uint8_t)(draw(3) * 0x55);
}

static struct fib_prefix prefix_draw(void)
{
	static const uint8_t lengths4[] = {0, 1, 7, 8, 9, 16, 24, 31, 32, 32};
	static const uint8_t lengths6[] = {0, 1, 32, 48, 63, 64, 65, 127, 128, 128};
	struct fib_prefix prefix = {.family = draw(2) ? 4 : 6};

	prefix.length = prefix.family == 4 ? lengths4[draw(10)] : lengths6[draw(10)];
	address_draw(prefix.family, prefix.address);
	for (unsigned bit = prefix.length; bit < 128; bit++)
		prefix.address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return prefix;
}

static uint32_t session_draw(const struct model *m)
{
	unsigned which = draw(10);

	return which == 0 ? FIB_OPERATOR : which == 1 ? m->session + 1 : m->session;
}

// --- Steps: the FIB does it, then the lists -------------------------------------------------------------

static int hop_expected(struct model *m, uint32_t session, const struct model_hop *hop)
{
	if (session != FIB_OPERATOR && session != m->session)
		return -ENOENT;
	if (hop)
		return 0;
	if (hops_in(m, false) >= QUOTA_HOPS)
		return -EDQUOT;
	return m->hop_count < 3 * QUOTA_HOPS ? 0 : -EAGAIN;
}

static void step_hop(uint16_t vnf, struct model *m)
{
	uint32_t session = session_draw(m);
	uint16_t number = (uint16_t)draw(NUMBERS);
	uint8_t mark = (uint8_t)(1 + draw(250));
	struct model_hop *hop = hop_named(m, session, number);
	const struct fib_hop new = hop_of(mark);
	int expected = hop_expected(m, session, hop), rc = fib_hop_set(fib, vnf, session, number, &new);

	if (rc == -EAGAIN && fib_is_dirty(fib)) {
		sweep_all(fib);
		rc = fib_hop_set(fib, vnf, session, number, &new);
	}
	assert_int_equal(rc, expected);
	if (rc)
		return;
	if (hop == NULL) {
		hop = &m->hops[m->hop_count++];
		*hop = (struct model_hop){session == FIB_OPERATOR ? OPERATOR : SESSION, number, 0, ++ids};
	}
	hop->mark = mark;
}

static void step_hop_delete(uint16_t vnf, struct model *m)
{
	uint32_t session = session_draw(m);
	uint16_t number = (uint16_t)draw(NUMBERS);
	struct model_hop *hop = hop_named(m, session, number);
	int rc = fib_hop_delete(fib, vnf, session, number);

	assert_int_equal(rc, hop == NULL ? -ENOENT : routes_by(m, hop->id) ? -EBUSY : 0);
	if (rc == 0)
		hop_remove(m, hop);
}

static int route_expected(struct model *m, enum fib_op op, const struct model_hop *hop,
                          const struct model_route *route)
{
	if (hop == NULL)
		return -ENOENT;
	if (route && op == FIB_ADD && hop_with(m, route->hop)->group == hop->group)
		return -EEXIST;
	return route || m->route_count < QUOTA_ROUTES ? 0 : -EDQUOT;
}

static void step_route(uint16_t vnf, struct model *m)
{
	uint32_t session = session_draw(m);
	uint16_t number = (uint16_t)draw(NUMBERS);
	enum fib_op op = draw(2) ? FIB_ADD : FIB_REPLACE;
	const struct fib_prefix prefix = prefix_draw();
	struct model_hop *hop = hop_named(m, session, number);
	struct model_route *route = route_of(m, &prefix);
	int rc = fib_route_set(fib, vnf, session, op, &prefix, number);

	if (rc == -EAGAIN) {
		assert_true(sweep_all(fib) > 0);
		rc = fib_route_set(fib, vnf, session, op, &prefix, number);
	}
	assert_int_equal(rc, route_expected(m, op, hop, route));
	if (rc)
		return;
	if (route == NULL)
		route = &m->routes[m->route_count++];
	*route = (struct model_route){prefix, hop->id};
	forget_unused(m);
}

static void step_route_delete(uint16_t vnf, struct model *m)
{
	bool known = m->route_count && draw(2);
	const struct fib_prefix prefix = known ? m->routes[draw(m->route_count)].prefix : prefix_draw();
	struct model_route *route = route_of(m, &prefix);

	assert_int_equal(fib_route_delete(fib, vnf, &prefix), route ? 0 : -ENOENT);
	if (route)
		route_remove(m, route);
	forget_unused(m);
}

static void step_begin(uint16_t vnf, struct model *m)
{
	m->session++;
	assert_int_equal(fib_begin(fib, vnf, m->session), 0);
	for (unsigned i = 0; i < m->hop_count; i++)
		if (m->hops[i].group == SESSION)
			m->hops[i].group = STALE;
	forget_unused(m);
}

static void step_flush(uint16_t vnf, struct model *m)
{
	enum fib_whose whose = (enum fib_whose)draw(3);

	fib_flush(fib, vnf, whose);
	for (unsigned i = m->hop_count; i-- > 0;) {
		enum group group = m->hops[i].group;

		if (group == OPERATOR ? whose != FIB_FLUSH_ALL : group == SESSION && whose == FIB_FLUSH_STALE)
			continue;
		for (unsigned r = m->route_count; r-- > 0;)
			if (m->routes[r].hop == m->hops[i].id)
				route_remove(m, &m->routes[r]);
		hop_remove(m, &m->hops[i]);
	}
}

// --- What must be so ------------------------------------------------------------------------------------

static void check_counts(uint16_t vnf, struct model *m)
{
	struct fib_vnf_stats stats = stats_of(fib, vnf);
	uint64_t four = 0, stale = 0;

	for (unsigned i = 0; i < m->route_count; i++) {
		four += m->routes[i].prefix.family == 4;
		stale += hop_with(m, m->routes[i].hop)->group == STALE;
	}
	assert_int_equal(stats.routes4, four);
	assert_int_equal(stats.routes6, m->route_count - four);
	assert_int_equal(stats.stale, stale);
	assert_int_equal(stats.hops, m->hop_count);
	assert_int_equal(stats.session, m->session);
}

// A burst of every VNF's addresses, mixed.
static void check_lookups(unsigned n)
{
	struct fib_query4 four[CUCKOO_BULK_MAX] = {0};
	struct fib_query6 six[CUCKOO_BULK_MAX] = {0};
	uint8_t addresses[2][CUCKOO_BULK_MAX][16];
	const struct fib_hop *hops[2][CUCKOO_BULK_MAX];

	for (unsigned i = 0; i < n; i++) {
		uint32_t address;

		address_draw(4, addresses[0][i]);
		address_draw(6, addresses[1][i]);
		memcpy(&address, addresses[0][i], sizeof(address));
		four[i] = (struct fib_query4){.vnf = (uint16_t)(1 + draw(VNFS)), .address = ntohl(address)};
		six[i].vnf = four[i].vnf;
		memcpy(six[i].address, addresses[1][i], 16);
	}
	fib_find4(fib, four, n, hops[0]);
	fib_find6(fib, six, n, hops[1]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned is6 = 0; is6 < 2; is6++) {
			uint8_t mark = longest(&models[four[i].vnf], is6 ? 6 : 4, addresses[is6][i]);

			assert_int_equal(hops[is6][i]->kind, mark ? FIB_HOP_FORWARD : FIB_HOP_NONE);
			assert_int_equal(hops[is6][i]->port, mark);
		}
}

static void step(void)
{
	uint16_t vnf = (uint16_t)(1 + draw(VNFS));
	struct model *m = &models[vnf];
	unsigned what = draw(1000);

	if (what < 60)
		step_hop(vnf, m);
	else if (what < 80)
		step_hop_delete(vnf, m);
	else if (what < 700)
		step_route(vnf, m);
	else if (what < 980)
		step_route_delete(vnf, m);
	else if (what < 990)
		step_begin(vnf, m);
	else if (what < 993)
		step_flush(vnf, m);
	else
		fib_sweep(fib, 4);
}

static void random_updates(void **state)
{
	static const unsigned bursts[] = {0, 1, 3, 31, 32, 33, 63, 64};

	fib = fib_of(2000, 2000);
	for (uint16_t vnf = 1; vnf <= VNFS; vnf++) {
		vnf_of(fib, vnf, QUOTA_ROUTES, QUOTA_HOPS);
		step_begin(vnf, &models[vnf]);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		step();
		if (i % 64 == 0)
			check_lookups(bursts[i / 64 % 8]);
		if (i % 64 == 0)
			for (uint16_t vnf = 1; vnf <= VNFS; vnf++)
				check_counts(vnf, &models[vnf]);
	}
	for (uint16_t vnf = 1; vnf <= VNFS; vnf++)
		fib_flush(fib, vnf, FIB_FLUSH_ALL);
	sweep_all(fib);
	assert_false(fib_is_dirty(fib));
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_updates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
