// SPDX-License-Identifier: BSD-3-Clause
// Malicious packets: bursts of frames, taken from templates and damaged as the input says, through every
// network function. test/fuzz.h says how it is run. Every frame lies at the very end of memory of its own, so
// that AddressSanitizer sees a byte that is read behind it; some have less of it there than the frame is long
// (struct vnf_frame).
//
// Checked: a verdict is a port or a reason that there is; what is forwarded and was a sound packet is one
// still; a checksum of UDP, TCP, ICMP and of the IPv4 header in an ICMP error that was right is right, and
// UDP without one has none; the bytes behind the datagram do not change. Not covered: files, methods, what is
// right for a kind (tests/nf).
#include <rte_ip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz.h"
#include "nf/nf_fuzz_frames.h"
#include "test/nf_task.h"
#include "base/packet.h"

enum { BURST_MAX = 8, SIZE_MB = 768, SIDES = 2 };

// Default routes, so that fib_offload forwards.
static void routes_make(struct vnf *vnf)
{
	static const char *const calls[][2] = {
	        {"next_hop_set",
	         "{\"vnf\": 1, \"hop\": 0, \"wire\": \"p0\", \"mac\": \"02:00:00:00:09:01\"}"},
	        {"route_set", "{\"vnf\": 1, \"prefix\": \"0.0.0.0/0\", \"hop\": 0}"},
	        {"route_set", "{\"vnf\": 1, \"prefix\": \"::/0\", \"hop\": 0}"},
	};
	char error[CONFIG_ERROR_MAX];

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		json_t *params = json_loads(calls[i][1], 0, NULL);

		json_decref(task_call(&vnf->task, calls[i][0], params, 0, error));
		json_decref(params);
	}
}

// A function that keeps state is made anew for each input, so that an input alone shows what it shows. Counts
// are by the port that frames came from.
static struct subject {
	const char *kind, *settings;
	bool fresh;
	void (*prepare)(struct vnf *vnf);
	struct vnf *vnf;
	unsigned long in, out[SIDES], sound, checked, errors[SIDES];
} subjects[] = {
        {.kind = "l2fwd"},
        {.kind = "l3fwd"},
        {.kind = "l3fwd",
         .settings = "{\"routes\": [{\"prefix\": \"0.0.0.0/0\"}, {\"prefix\": \"::/0\"}], \"mtu\": 100}"},
        {.kind = "firewall"},
        {.kind = "firewall", .settings = "{\"default\": \"permit\", \"not_ip\": \"permit\"}"},
        {.kind = "nat44",
         .settings = "{\"outside\": [\"198.18.255.1\"], \"sessions_max\": 16, \"forward\": [{\"protocol\": "
                     "\"udp\", "
                     "\"outside\": \"198.19.0.1:28770\", \"inside\": \"198.19.0.2:28770\"}]}",
         .fresh = true},
        {.kind = "nat44",
         .settings = "{\"outside\": [\"198.19.0.1\"], \"port_min\": 49152, \"port_max\": 49159, "
                     "\"sessions_max\": 16}",
         .fresh = true},
        {.kind = "load_balancer", .settings = "{\"table_size\": 1009, \"connections\": 16}", .fresh = true},
        {.kind = "load_balancer",
         .settings = "{\"services\": [{\"address\": \"198.19.0.1\", \"protocol\": \"udp\", \"backends\": "
                     "[{\"name\": \"a\", \"mac\": \"02:00:00:00:00:0a\"}]}, {\"address\": \"2001:db8:1::2\", "
                     "\"port\": 28770, \"backends\": [{\"name\": \"b\", \"mac\": \"02:00:00:00:00:0b\"}]}], "
                     "\"other\": \"drop\", \"table_size\": 101, \"connections\": 3}",
         .fresh = true},
        {.kind = "l3fwd",
         .settings = "{\"fib\": \"cuckoo\", \"routes\": [{\"prefix\": \"198.19.0.1\"}, {\"prefix\": "
                     "\"198.18.0.1\", \"port\": 0}, {\"prefix\": \"2001:db8:1::2\"}, {\"prefix\": "
                     "\"198.18.0.0/15\"}, {\"prefix\": \"2001:db8::/32\", \"port\": 1}]}"},
        {.kind = "fib_offload",
         .settings = "{\"wires\": [\"p0\"], \"routes4\": 100, \"routes6\": 100, \"pages\": \"4K\", \"punt\": "
                     "{\"also\": [{\"protocol\": \"udp\", \"port\": 28771}]}, \"vnfs\": [{\"vnf\": 1, "
                     "\"port\": \"p1\", \"mac\": \"02:00:00:00:01:00\"}]}",
         .prepare = routes_make,
         .fresh = true},
        {.kind = "fib_offload", // what the VNF sends: the templates' source address is its
         .settings = "{\"wires\": [\"p0\"], \"routes4\": 100, \"pages\": \"4K\", \"vnfs\": [{\"vnf\": 1, "
                     "\"port\": \"p1\", \"mac\": \"02:00:00:00:00:00\", \"on_miss\": \"punt\"}]}",
         .fresh = true},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static struct fixture *fixture;

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
	else if (subject->prepare)
		subject->prepare(vnf);
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
			task_destroy(&subjects[i].vnf->task);
	}
	return 0;
}

// --- Frames ----------------------------------------------------------------------------------------------

struct sample {
	uint8_t *memory; // length bytes of it are the frame
	uint8_t before[FRAME_MAX];
	uint32_t length, total;
	enum packet_fault fault;
	struct packet packet;
	bool checksum, embedded; // of the transport layer, and in an ICMP error: was there and right
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

// Where the transport checksum is in its header; 0: none that covers it all.
static unsigned checksum_at(const struct packet *p)
{
	switch (p->protocol) {
	case IPPROTO_UDP:
		return 6;
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_ICMP:
		return p->version == 4 ? 2 : 0;
	case IPPROTO_ICMPV6:
		return p->version == 6 ? 2 : 0;
	default:
		return 0;
	}
}

static uint32_t sum(const uint8_t *data, unsigned bytes)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < bytes; i++)
		sum += i & 1 ? data[i] : (unsigned)data[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

// Whether a transport header has a checksum that covers bytes which are all here.
static bool has_checksum(uint32_t length, const struct packet *p)
{
	return !p->fragment && checksum_at(p) && (uint32_t)p->l4 + p->l4_bytes <= length;
}

// The sum over all that the checksum covers: 0xffff if it is right (RFC 1071, RFC 8200 s8.1).
static uint16_t transport_sum(const uint8_t *data, const struct packet *p)
{
	uint32_t all = sum(data + p->l4, p->l4_bytes);

	if (p->protocol != IPPROTO_ICMP)
		all += p->protocol + p->l4_bytes +
		       sum(data + p->l3 + (p->version == 4 ? 12 : 8), p->version == 4 ? 8 : 32);
	return fold(all);
}

// UDP without a checksum has none that is right.
static bool transport_is_right(const uint8_t *data, uint32_t length, const struct packet *p)
{
	const uint8_t *field = data + p->l4 + checksum_at(p);

	return has_checksum(length, p) && (p->protocol != IPPROTO_UDP || field[0] | field[1]) &&
	       transport_sum(data, p) == 0xffff;
}

// The IPv4 header in an ICMP error (RFC 792); NULL without one.
static uint8_t *embedded_of(uint8_t *data, uint32_t length, const struct packet *p)
{
	uint8_t *l4 = data + p->l4, *ip = l4 + 8;

	if (p->version != 4 || p->protocol != IPPROTO_ICMP || !has_checksum(length, p) ||
	    (l4[0] != 3 && l4[0] != 11 && l4[0] != 12) || p->l4_bytes < 8 + 20)
		return NULL;
	return ip[0] >> 4 == 4 && (ip[0] & 15) >= 5 && 8 + (ip[0] & 15) * 4 <= p->l4_bytes ? ip : NULL;
}

static bool embedded_is_right(uint8_t *data, uint32_t length, const struct packet *p)
{
	const uint8_t *ip = embedded_of(data, length, p);

	return ip && fold(sum(ip, (ip[0] & 15) * 4)) == 0xffff;
}

static void checksum_write(uint8_t *field, uint16_t sum)
{
	field[0] = (uint8_t)(~sum >> 8);
	field[1] = (uint8_t)~sum;
}

// Right checksums to begin with, from the inside out.
static void checksum_make(struct sample *s)
{
	struct packet *p = &s->packet;
	uint8_t *field = s->memory + p->l4 + checksum_at(p), *ip;

	if (s->fault != PACKET_FINE || !has_checksum(s->length, p))
		return;
	ip = embedded_of(s->memory, s->length, p);
	if (ip) {
		ip[10] = ip[11] = 0;
		checksum_write(ip + 10, fold(sum(ip, (ip[0] & 15) * 4)));
	}
	field[0] = field[1] = 0;
	checksum_write(field, transport_sum(s->memory, p));
	if (p->protocol == IPPROTO_UDP && (field[0] | field[1]) == 0)
		field[0] = field[1] = 0xff;
	memcpy(s->before, s->memory, s->length);
}

static void sample_look(struct sample *s, bool fix)
{
	const struct vnf_frame frame = {s->memory, s->length, s->total};

	s->fault = packet_parse_any(&frame, &s->packet);
	if (fix)
		checksum_make(s);
	s->checksum = s->fault == PACKET_FINE && transport_is_right(s->memory, s->length, &s->packet);
	s->embedded = s->fault == PACKET_FINE && embedded_is_right(s->memory, s->length, &s->packet);
}

static void checksums_are_right(const struct sample *s, const struct packet *p, const struct subject *subject)
{
	unsigned at = p->l4 + checksum_at(p);

	must(!s->checksum || transport_is_right(s->memory, s->length, p),
	     "a right transport checksum is forwarded right", subject);
	must(!s->embedded || embedded_is_right(s->memory, s->length, p),
	     "a right header in an ICMP error is forwarded right", subject);
	must(p->protocol != IPPROTO_UDP || !has_checksum(s->length, p) ||
	             (s->before[at] | s->before[at + 1]) || (s->memory[at] | s->memory[at + 1]) == 0,
	     "UDP without a checksum is forwarded without", subject);
}

static void forwarded(const struct sample *s, struct subject *subject, unsigned side)
{
	const struct vnf_frame frame = {s->memory, s->length, s->total};
	struct packet p;
	uint32_t end;

	subject->out[side]++;
	if (s->fault != PACKET_FINE)
		return;
	subject->sound++;
	subject->checked += s->checksum;
	subject->errors[side] += s->embedded;
	must(packet_parse_any(&frame, &p) == PACKET_FINE, "a sound packet is forwarded sound", subject);
	must(p.l3 == s->packet.l3 && p.l4 == s->packet.l4 && p.l4_bytes == s->packet.l4_bytes,
	     "headers stay where they are", subject);
	checksums_are_right(s, &p, subject);
	end = (uint32_t)p.l4 + p.l4_bytes;
	must(end >= s->length || memcmp(s->memory + end, s->before + end, s->length - end) == 0,
	     "padding is not touched", subject);
}

static unsigned reasons(const struct vnf *vnf)
{
	unsigned n = 0;

	while (vnf->task.ops->drops[n].name)
		n++;
	return n;
}

static void check_burst(struct subject *subject, const struct vnf *vnf, const struct sample *samples,
                        const uint8_t *verdicts, unsigned n, unsigned side)
{
	for (unsigned i = 0; i < n; i++) {
		subject->in++;
		if (verdicts[i] & VNF_DROP) {
			must((verdicts[i] & ~VNF_DROP) < (int)reasons(vnf),
			     "a drop has a reason that there is", subject);
			continue;
		}
		must(verdicts[i] < vnf->side_count, "a frame leaves by a port that there is", subject);
		forwarded(&samples[i], subject, side);
	}
}

// Bits of the first byte: 0 to 2 how many frames, 3 where they come from, 4 a tick behind them, 5 checksums
// are made right. The next two are the time since the burst before, up to minutes.
static void burst_run(struct subject *subject, struct vnf *vnf, struct input *in, uint64_t *now_tsc)
{
	struct sample samples[BURST_MAX];
	struct vnf_frame frames[BURST_MAX];
	uint8_t verdicts[BURST_MAX], how = input_byte(in), step = input_byte(in);
	unsigned n = how % BURST_MAX + 1, side = how >> 3 & 1;

	*now_tsc += (uint64_t)step << (input_byte(in) & 31);
	for (unsigned i = 0; i < n; i++) {
		sample_read(&samples[i], in);
		sample_look(&samples[i], how & 0x20);
		frames[i] = (struct vnf_frame){samples[i].memory, samples[i].length, samples[i].total};
	}
	vnf_process(vnf, side, frames, n, *now_tsc, verdicts);
	check_burst(subject, vnf, samples, verdicts, n, side);
	for (unsigned i = 0; i < n; i++)
		free(samples[i].memory);
	if (vnf->ops->tick && how & 0x10)
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
		task_destroy(&vnf->task);
	return 0;
}

void fuzz_report(void)
{
	for (const struct subject *s = subjects; s < subjects + SUBJECTS; s++)
		printf("%2d %-13s %lu frames; forwarded %lu from port 0 and %lu from port 1; of them %lu "
		       "sound "
		       "packets, %lu with a right checksum, %lu and %lu ICMP errors\n",
		       (int)(s - subjects), s->kind, s->in, s->out[0], s->out[1], s->sound, s->checked,
		       s->errors[0], s->errors[1]);
}
