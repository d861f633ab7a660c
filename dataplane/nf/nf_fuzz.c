// SPDX-License-Identifier: BSD-3-Clause
// Malicious packets: bursts of frames, taken from templates and damaged as the input says, through every
// network function. test/fuzz.h says how it is run. Every frame lies at the very end of memory of its own, so
// that AddressSanitizer sees a byte that is read behind it; some have less of it there than the frame is long
// (struct vnf_frame).
//
// Checked: a verdict is a port or a reason that there is; what is forwarded and was a sound packet is one
// still, and a transport checksum that was right is right; the bytes behind the datagram do not change; what
// comes in is what goes out and what is dropped. Not covered: files, methods, what is right for a kind
// (tests/nf).
#include <rte_ip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "nf_task.h"
#include "packet.h"

enum { BURST_MAX = 8, FRAME_MAX = 200, SIZE_MB = 768 };

// A function that keeps state is made anew for each input, so that an input alone shows what it shows.
static struct subject {
	const char *kind, *settings;
	bool fresh;
	struct vnf *vnf;
} subjects[] = {
        {.kind = "l2fwd"},
        {.kind = "l3fwd"},
        {.kind = "l3fwd",
         .settings = "{\"routes\": [{\"prefix\": \"0.0.0.0/0\"}, {\"prefix\": \"::/0\"}], \"mtu\": 100}"},
        {.kind = "firewall"},
        {.kind = "firewall", .settings = "{\"default\": \"permit\", \"not_ip\": \"permit\"}"},
        {.kind = "nat44", .settings = "{\"sessions_max\": 16}", .fresh = true},
        {.kind = "nat44",
         .settings = "{\"outside\": [\"198.19.0.1\"], \"port_min\": 1024, \"port_max\": 1031, "
                     "\"sessions_max\": 16}",
         .fresh = true},
        {.kind = "load_balancer", .fresh = true},
        {.kind = "rate_limiter", .fresh = true},
        {.kind = "flow_monitor", .settings = "{\"flows_max\": 16}", .fresh = true},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static struct fixture *fixture;
static unsigned long frames_in, frames_out, sound;

static void must(bool is, const char *what, const struct subject *subject)
{
	if (is)
		return;
	fprintf(stderr, "nf_fuzz: %s: not so: %s\n", subject->kind, what);
	abort();
}

static struct vnf *make(const struct subject *subject)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *object = json_pack("{s:s}", "kind", subject->kind);
	struct vnf *vnf;

	if (subject->settings)
		json_object_set_new(object, "settings", json_loads(subject->settings, 0, NULL));
	vnf = nf_task(fixture, object, error);
	if (!vnf)
		fprintf(stderr, "nf_fuzz: %s: %s\n", subject->kind, error);
	json_decref(object);
	return vnf;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fixture = nf_fixture("nf_fuzz", SIZE_MB);
	if (!fixture)
		exit(99);
	for (unsigned i = 0; i < SUBJECTS; i++) {
		subjects[i].vnf = make(&subjects[i]);
		if (!subjects[i].vnf)
			exit(99);
		if (subjects[i].fresh)
			vnf_destroy(&subjects[i].vnf->task);
	}
	return 0;
}

// --- Frames ----------------------------------------------------------------------------------------------

#define MACS 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0
#define IPV4(more, bytes, frag, proto)                                                                       \
	0x45 + (more), 0, 0, (bytes), 0, 0, (frag) >> 8, (frag)&0xff, 64, (proto), 0, 0, 198, 18, 0, 1, 198, \
	        19, 0, 1
#define IPV6(bytes, proto)                                                                                   \
	0x60, 0, 0, 0, 0, (bytes), (proto), 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,      \
	        0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP      0xc0, 0, 0x70, 0x62, 0, 26, 0, 0
#define TCP      0xc0, 0, 0x70, 0x62, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 1, 0, 0, 0, 0, 0
#define EIGHTEEN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18

#define TEMPLATE(...)                                                                                        \
	{                                                                                                    \
		sizeof((uint8_t[]){__VA_ARGS__}),                                                            \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

static const struct template
{
	uint8_t length, data[FRAME_MAX];
}
templates[] = {
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 58, 0x4000, 6), TCP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0, 1), 8, 0, 0, 0, 0, 1, 0, 1, EIGHTEEN),
        // An ICMP error about a datagram of the first template, as it looks outside of a NAT.
        TEMPLATE(MACS, 8, 0, IPV4(0, 56, 0, 1), 3, 1, 0, 0, 0, 0, 0, 0, IPV4(0, 46, 0, 17), UDP),
        TEMPLATE(MACS, 0x81, 0, 0, 5, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0, IPV4(0, 46, 0, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(1, 50, 0, 17), 1, 1, 1, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(1, 50, 0, 17), 131, 3, 4, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0x2000, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 0, IPV4(0, 46, 0x0003, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(26, 17), UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(38, 6), TCP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(34, 44), 17, 0, 0, 1, 0, 0, 0, 1, UDP, EIGHTEEN),
        TEMPLATE(MACS, 0x86, 0xdd, IPV6(50, 0), 60, 0, 0, 0, 0, 0, 0, 0, 43, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0,
                 0, 0, 0, 0, UDP, EIGHTEEN),
        TEMPLATE(MACS, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198,
                 19, 0, 1),
};
enum { TEMPLATES = sizeof(templates) / sizeof(templates[0]) };

struct sample {
	uint8_t *memory; // length bytes of it are the frame
	uint8_t before[FRAME_MAX];
	uint32_t length, total;
	enum packet_fault fault;
	struct packet packet;
	bool checksum; // of the transport layer, was there and right
};

// The length of the template or another one, and single bytes changed; then a header checksum that is right,
// or not.
static void sample_read(struct sample *s, struct input *in)
{
	uint8_t data[FRAME_MAX] = {0}, how = input_byte(in), shape = input_byte(in);
	const struct template *t = &templates[how % TEMPLATES];
	unsigned changes = shape & 7;

	memcpy(data, t->data, t->length);
	s->total = s->length = shape & 8 ? input_byte(in) % (FRAME_MAX + 1u) : t->length;
	while (changes--) {
		uint8_t at = input_byte(in);

		data[at % FRAME_MAX] = input_byte(in);
	}
	if (!(shape & 16)) {
		unsigned l3 = data[12] == 0x81 ? 18 : data[12] == 0x88 ? 22 : 14;
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + l3);

		if (ip->version_ihl >> 4 == 4) {
			ip->hdr_checksum = 0;
			ip->hdr_checksum = (uint16_t)~rte_raw_cksum(ip, (ip->version_ihl & 0xf) * 4);
		}
	}
	if (shape & 32) // not all of it is in one piece
		s->length = input_byte(in) % (s->total + 1);
	s->memory = malloc(s->length ? s->length : 1);
	memcpy(s->memory, data, s->length);
	memcpy(s->before, data, s->length);
}

// --- What must be so -------------------------------------------------------------------------------------

// Whether the transport header has a checksum that covers bytes which are all here, and it is right.
static bool checksum_is_right(const uint8_t *data, uint32_t length, const struct packet *p)
{
	const uint8_t *l4 = data + p->l4;
	unsigned at = p->protocol == IPPROTO_UDP ? 6 : 16;

	if (p->fragment || (p->protocol != IPPROTO_UDP && p->protocol != IPPROTO_TCP) ||
	    (uint32_t)p->l4 + p->l4_bytes > length || (l4[at] | l4[at + 1]) == 0)
		return false;
	if (p->protocol == IPPROTO_UDP && (l4[4] << 8 | l4[5]) != p->l4_bytes)
		return false;
	if (p->version == 4) {
		struct rte_ipv4_hdr ip = *(const struct rte_ipv4_hdr *)(data + p->l3);
		uint32_t sum = rte_ipv4_phdr_cksum(
		        &(struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
		                               .next_proto_id = p->protocol,
		                               .total_length = rte_cpu_to_be_16((uint16_t)(p->l4_bytes + 20)),
		                               .src_addr = ip.src_addr,
		                               .dst_addr = ip.dst_addr},
		        0);

		sum += rte_raw_cksum(l4, p->l4_bytes);
		return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
	}
	return false;
}

// A right transport checksum to begin with, where the input does not damage it.
static void checksum_make(struct sample *s)
{
	struct packet *p = &s->packet;
	unsigned at = p->protocol == IPPROTO_UDP ? 6 : 16;
	uint8_t *l4 = s->memory + p->l4;

	if (s->fault != PACKET_FINE || p->version != 4 || p->fragment ||
	    (p->protocol != IPPROTO_UDP && p->protocol != IPPROTO_TCP) ||
	    (uint32_t)p->l4 + p->l4_bytes > s->length)
		return;
	for (unsigned try = 0; try < 2;
	     try++) { // the checksum field is what is missing in the sum of the rest
		uint32_t sum = p->protocol;

		l4[at] = l4[at + 1] = 0;
		sum += p->l4_bytes;
		for (unsigned i = 12; i < 20; i += 2)
			sum += (unsigned)(s->memory[p->l3 + i] << 8 | s->memory[p->l3 + i + 1]);
		for (unsigned i = 0; i < p->l4_bytes; i++)
			sum += i & 1 ? l4[i] : (unsigned)l4[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
		l4[at] = (uint8_t)(sum >> 8);
		l4[at + 1] = (uint8_t)sum;
	}
	memcpy(s->before, s->memory, s->length);
}

static void sample_look(struct sample *s, bool fix)
{
	const struct vnf_frame frame = {s->memory, s->length, s->total};

	s->fault = packet_parse_any(&frame, &s->packet);
	if (fix)
		checksum_make(s);
	s->checksum = s->fault == PACKET_FINE && checksum_is_right(s->memory, s->length, &s->packet);
}

static void forwarded(const struct sample *s, const struct subject *subject)
{
	const struct vnf_frame frame = {s->memory, s->length, s->total};
	struct packet p;
	uint32_t end;

	frames_out++;
	if (s->fault != PACKET_FINE)
		return;
	sound++;
	must(packet_parse_any(&frame, &p) == PACKET_FINE, "a sound packet is forwarded sound", subject);
	must(p.l3 == s->packet.l3 && p.l4 == s->packet.l4 && p.l4_bytes == s->packet.l4_bytes,
	     "headers stay where they are", subject);
	must(!s->checksum || checksum_is_right(s->memory, s->length, &p),
	     "a right transport checksum is forwarded right", subject);
	end = (uint32_t)p.l4 + p.l4_bytes;
	must(end >= s->length || memcmp(s->memory + end, s->before + end, s->length - end) == 0,
	     "padding is not touched", subject);
}

static unsigned reasons(const struct vnf *vnf)
{
	unsigned n = 0;

	while (vnf->ops->drops[n])
		n++;
	return n;
}

static void check_burst(const struct subject *subject, const struct vnf *vnf, const struct sample *samples,
                        const uint8_t *verdicts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		frames_in++;
		if (verdicts[i] & VNF_DROP) {
			must((verdicts[i] & ~VNF_DROP) < (int)reasons(vnf),
			     "a drop has a reason that there is", subject);
			continue;
		}
		must(verdicts[i] < vnf->side_count, "a frame leaves by a port that there is", subject);
		forwarded(&samples[i], subject);
	}
}

static void burst_run(const struct subject *subject, struct vnf *vnf, struct input *in, uint64_t *now_tsc)
{
	struct sample samples[BURST_MAX];
	struct vnf_frame frames[BURST_MAX];
	uint8_t verdicts[BURST_MAX], how = input_byte(in);
	unsigned n = how % BURST_MAX + 1;

	*now_tsc += (uint64_t)input_byte(in) << (how >> 3 & 31); // up to minutes
	for (unsigned i = 0; i < n; i++) {
		sample_read(&samples[i], in);
		sample_look(&samples[i], how & 0x80);
		frames[i] = (struct vnf_frame){samples[i].memory, samples[i].length, samples[i].total};
	}
	vnf_process(vnf, in->left % vnf->side_count, frames, n, *now_tsc, verdicts);
	check_burst(subject, vnf, samples, verdicts, n);
	for (unsigned i = 0; i < n; i++)
		free(samples[i].memory);
	if (vnf->ops->tick && how & 0x40)
		vnf->ops->tick(vnf, *now_tsc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct subject *subject = &subjects[input_byte(&in) % SUBJECTS];
	struct vnf *vnf = subject->fresh ? make(subject) : subject->vnf;
	uint64_t now_tsc = 1;

	must(vnf != NULL, "the function is made again", subject);
	while (in.left)
		burst_run(subject, vnf, &in, &now_tsc);
	json_decref(fixture_report(&vnf->task));
	if (subject->fresh)
		vnf_destroy(&vnf->task);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu frames, %lu forwarded, %lu of them sound packets\n", frames_in, frames_out, sound);
}
