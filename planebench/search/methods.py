# SPDX-License-Identifier: BSD-3-Clause
"""Every search that comes with planebench, a line each: :data:`planebench.search.method.METHODS` is filled here."""

from planebench.search.burst import B2B
from planebench.search.carried import CARRIED
from planebench.search.curve import CURVE
from planebench.search.goals import BSWLV, NDR, PDR, RFC2544
from planebench.search.method import register

for _method in (CARRIED, NDR, PDR, RFC2544, BSWLV, CURVE, B2B):
    register(_method)
