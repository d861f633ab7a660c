// SPDX-License-Identifier: BSD-3-Clause
// A malicious frame for packet_parse(): two bytes say how much longer the frame is than its first piece, the
// others are that piece, alone in its memory. Checked: no byte beyond it is read (with a sanitizer), what is
// said to be there is, and the quick way differs in nothing from the general one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz.h"
#include "base/packet.h"

static unsigned long frames, fine;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "packet_fuzz: not so: %s\n", what);
	abort();
}

static void check(const struct vnf_frame *frame, const struct packet *p)
{
	must(p->version == 4 || p->version == 6, "it is IPv4 or IPv6");
	must(p->l3 >= RTE_ETHER_HDR_LEN && p->l4 >= p->l3 + 20 && p->l4 <= frame->length,
	     "headers are there");
	must((uint32_t)p->l4 + p->l4_bytes <= frame->total, "the payload is in the frame");
	must(p->first == (p->fragment_at == 0) && (p->first || p->fragment), "fragments");
	must(!p->has_ports || (p->first && p->l4 + 8u <= frame->length), "ports are there");
	must(p->has_ports || (p->src_port == 0 && p->dst_port == 0), "or are none");
}

static bool is_same(const struct packet *a, const struct packet *b)
{
	return a->l3 == b->l3 && a->l4 == b->l4 && a->l4_bytes == b->l4_bytes && a->version == b->version &&
	       a->protocol == b->protocol && a->fragment == b->fragment && a->first == b->first &&
	       a->has_ports == b->has_ports && a->src_port == b->src_port && a->dst_port == b->dst_port &&
	       a->fragment_at == b->fragment_at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet general = {0}, quick = {0};
	struct input in = {data, size};
	uint32_t more = input_word(&in);
	uint8_t *piece = malloc(in.left);
	const struct vnf_frame frame = {piece, (uint32_t)in.left, (uint32_t)in.left + more};

	if (in.left && piece)
		memcpy(piece, in.data, in.left);
	frames++;
	if (packet_parse_any(&frame, &general) == PACKET_FINE) {
		fine++;
		check(&frame, &general);
	}
	if (packet_parse_plain(&frame, &quick))
		must(is_same(&quick, &general), "both ways say the same");
	free(piece);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu frames, %lu of them packets\n", frames, fine);
}
