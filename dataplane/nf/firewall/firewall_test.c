// SPDX-License-Identifier: BSD-3-Clause
// firewall between two ring-backed ports: every burst size, every instruction set, keys that end with memory,
// no buffer lost, and rules that there is no room for. Rules themselves: tests/nf/test_firewall.py.
#include <rte_ip.h>
#include <sys/mman.h>

#include "test/each_isa.h"
#include "nf/vnf.h"
#include "test/fixture.h"

enum { PAGE = 4096, FRAME = 60, RULES = 8192 };

static struct config_task config = {
        .name = "vnf", .kind = "firewall", .port_count = 2, .ports = {"p0", "p1"}};

static struct vnf *create(struct fixture *f, json_t *settings)
{
	struct task *task;
	json_t *object = settings ? json_pack("{s:o}", "settings", settings) : NULL;

	config.object = object;
	task = fixture_task(f, &config);
	json_decref(object);
	config.object = NULL;
	return (struct vnf *)task;
}

static json_int_t number(const struct vnf *fw, const char *path)
{
	json_t *report = fixture_report(&fw->task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

// The tester's UDP packet, of a stream: the ninth default rule permits it, except to 240.0.0.0.
static void packet_make(uint8_t *data, bool permitted)
{
	static const uint8_t header[] = {0x45, 0,  0, 46, 0,   0,  0x40, 0, 64,   17, 0,    0,
	                                 198,  18, 0, 1,  198, 19, 0,    1, 0xc0, 0,  0x70, 0x62};
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + RTE_ETHER_HDR_LEN);

	memset(data, 0, FRAME);
	data[12] = 8;
	memcpy(ip, header, sizeof(header));
	if (!permitted)
		ip->dst_addr = RTE_BE32(UINT32_C(0xf0000001));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void inject(struct fixture *f, unsigned port, unsigned n, unsigned dropped_one_in)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t data[FRAME];
		struct rte_mbuf *m;

		packet_make(data, i % dropped_one_in != 0);
		m = fixture_packet(f, data, FRAME);
		assert_int_equal(ring_port_inject(&f->ports[port], &m, 1), 1);
	}
}

static void every_burst_goes_both_ways(void **state)
{
	struct fixture *f = *state;
	struct vnf *fw = create(f, NULL);
	unsigned all = 0, dropped = 0;

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		unsigned n = fixture_bursts[i], gone = (n + 2) / 3;

		inject(f, 0, n, 3);
		inject(f, 1, n, n + 1);
		while (fw->task.ops->poll(&fw->task, 0))
			;
		assert_int_equal(ring_port_drain(&f->ports[1]), n - gone);
		assert_int_equal(ring_port_drain(&f->ports[0]), n - (n > 0));
		all += 2 * n;
		dropped += gone + (n > 0);
	}
	assert_int_equal(fw->task.counters.rx_packets, all);
	assert_int_equal(fw->task.counters.tx_packets, all - dropped);
	assert_int_equal(number(fw, "drops.rule"), dropped);
	assert_int_equal(number(fw, "firewall.rules.2.packets"), dropped);
	assert_int_equal(number(fw, "firewall.rules.8.bytes"), (all - dropped) * (FRAME + RTE_ETHER_CRC_LEN));
	task_clear(&fw->task);
	assert_int_equal(number(fw, "firewall.rules.8.bytes") + number(fw, "firewall.rules.2.packets"), 0);
	task_destroy(&fw->task);
}

// Each frame ends where memory ends: a key that is read too far is a fault.
static void nothing_is_read_behind_a_frame(void **state)
{
	struct vnf *fw = create(*state, NULL);
	struct vnf_frame frames[CONFIG_BURST_MAX];
	uint8_t verdicts[CONFIG_BURST_MAX], *pages, data[FRAME];
	const size_t size = 2 * PAGE * (size_t)CONFIG_BURST_MAX;

	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	packet_make(data, true);
	for (unsigned i = 0; i < CONFIG_BURST_MAX; i++) {
		// With 54 of its 60 bytes in this piece it is the shortest that is plain.
		uint32_t length = i % 2 ? FRAME : RTE_ETHER_HDR_LEN + 40;
		uint8_t *end = pages + (2 * (size_t)i + 1) * PAGE;

		memcpy(end - length, data, length);
		assert_int_equal(mprotect(end, PAGE, PROT_NONE), 0);
		frames[i] = (struct vnf_frame){end - length, length, FRAME};
	}
	for (unsigned n = 1; n <= CONFIG_BURST_MAX; n++) {
		vnf_process(fw, 0, frames, n, 0, verdicts);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(verdicts[i], 1);
	}
	assert_int_equal(number(fw, "firewall.rules.8.packets"),
	                 CONFIG_BURST_MAX * (CONFIG_BURST_MAX + 1) / 2);
	munmap(pages, size);
	task_destroy(&fw->task);
}

// Rules that share next to no address and no port: they do not fit in what is left here.
static void rules_without_room_are_refused(void **state)
{
	json_t *rules = json_array();
	uint64_t seed = 1;

	for (unsigned i = 0; i < RULES; i++) {
		unsigned a, b;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		a = (unsigned)(seed >> 40), b = (unsigned)(seed >> 33) & 0x7fff;
		json_array_append_new(
		        rules, json_sprintf("permit tcp from %u.%u.%u.0/24 port %u-%u to any port "
		                            "%u-%u",
		                            a >> 16, a >> 8 & 255, a & 255, b, b + 1000, b / 2, b + 30000));
	}
	assert_null(create(*state, json_pack("{s:o}", "rules", rules)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(every_burst_goes_both_ways, fixture_setup, fixture_teardown),
	        cmocka_unit_test_setup_teardown(nothing_is_read_behind_a_frame, fixture_setup,
	                                        fixture_teardown),
	};
	const struct CMUnitTest small[] = {
	        cmocka_unit_test_setup_teardown(rules_without_room_are_refused, fixture_setup,
	                                        fixture_teardown),
	};

	if (fixture_eal_init_sized("firewall", 10) != 0)
		return 99;
	return RUN_FOR_EACH_ISA("firewall", tests) + cmocka_run_group_tests(small, NULL, NULL);
}
