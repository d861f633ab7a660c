# SPDX-License-Identifier: BSD-3-Clause
"""What the standards ask of a search: lengths of trials, how many, how exact. Seconds and ratios."""

CSIT_TRIAL_S = 1.0
CSIT_TRIALS = 21
CSIT_EXCEED_RATIO = 0.5
CSIT_WIDTH = 0.005
RFC2544_TRIAL_S = 60.0
BSWLV_TRIAL_S = 1.0
