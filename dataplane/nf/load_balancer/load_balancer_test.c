// SPDX-License-Identifier: BSD-3-Clause
// load_balancer: what its data path reads of a frame that a peer rewrites meanwhile. The rest: tests/nf.
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nf/load_balancer/load_balancer.h"
#include "test/unit.h"

enum { ETHER = 14, IPV6 = 40, OPTIONS = 8, FRAGMENT = 8, ALL = ETHER + IPV6 + OPTIONS + FRAGMENT };

// A fragment behind hop-by-hop options, at the end of memory.
static uint8_t *frame_make(struct packet *p)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *data = pages + page - ALL;

	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	data[ETHER + LB_IPV6_NEXT] = IPPROTO_HOPOPTS;
	data[ETHER + IPV6] = IPPROTO_FRAGMENT;
	data[ETHER + IPV6 + OPTIONS] = IPPROTO_UDP;
	*p = (struct packet){.version = 6, .l3 = ETHER, .l4 = ALL};
	return data;
}

static void a_fragment_names_its_protocol(void **state)
{
	struct packet p;
	uint8_t *data = frame_make(&p);

	assert_int_equal(lb_fragment_protocol(data, &p), IPPROTO_UDP);
}

// It was parsed with the lengths above; whoever sent it has written others since.
static void a_length_that_grows_leads_nowhere(void **state)
{
	struct packet p;
	uint8_t *data = frame_make(&p);

	data[ETHER + IPV6 + 1] = UINT8_MAX;
	assert_int_equal(lb_fragment_protocol(data, &p), UINT8_MAX);
	data[ETHER + IPV6 + 1] = 1;
	assert_int_equal(lb_fragment_protocol(data, &p), UINT8_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_fragment_names_its_protocol),
	        cmocka_unit_test(a_length_that_grows_leads_nowhere),
	};

	return cmocka_run_group_tests_name("load_balancer", tests, NULL, NULL);
}
