// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/tester/frame_run.h"

ISA_DECLARE(unsigned, frame_run_check,
            (const struct frame_look *look, const struct frame_bytes *frames, unsigned n, uint32_t sequence));
ISA_DECLARE(void, frame_run_write,
            (const struct frame_template *t, uint8_t *const *data, unsigned n, uint32_t sequence));

static const struct frame_run runs[ISA_COUNT] = {
        [ISA_SCALAR] = {frame_run_check_scalar, frame_run_write_scalar},
#ifdef ISA_X86
        [ISA_AVX2] = {frame_run_check_avx2, frame_run_write_avx2},
        [ISA_AVX512] = {frame_run_check_avx512, frame_run_write_avx512},
#endif
};

const struct frame_run *frame_run_of(enum isa isa)
{
	return &runs[isa];
}

const struct frame_run *frame_run_current(void)
{
	return &runs[isa_current()];
}
