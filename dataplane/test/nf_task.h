// SPDX-License-Identifier: BSD-3-Clause
// A network function outside planed, made from its task object in a file, and frames for it from a file: for
// nf_run and nf_bench. EAL is started; the ports are rings (fixture.h) that nothing goes through.
#pragma once

#include <stdio.h>

#include "test/fixture.h"
#include "nf/vnf.h"

// Records: little-endian, header and then length bytes. nf_run says what kinds mean.
struct nf_record {
	uint8_t kind;
	uint8_t port; // in: where it comes from; out: the verdict
	uint16_t zero;
	uint32_t length;
	uint64_t now_tsc;
};

enum { NF_RECORD_MAX = 1 << 20 };

// Start EAL with size_mb of memory and open the ports. NULL after saying what failed.
struct fixture *nf_fixture(const char *name, unsigned size_mb);

// Make the function of a task object: {"kind", "ports": 1 .. 72 (a number; 2), "settings", "burst",
// "peer_macs", "calls": [[method, params], ...]}. Its ports are p0, p1, ...; more than FIXTURE_PORTS are the
// same rings again. The sentence that planed would answer is in error; NULL then.
struct vnf *nf_task(struct fixture *f, const json_t *object, char error[static CONFIG_ERROR_MAX]);

// Read the next record; returns 1, 0 at the end of the file, or -1 for a broken one. data has NF_RECORD_MAX
// bytes.
int nf_record_read(FILE *file, struct nf_record *record, uint8_t *data);
