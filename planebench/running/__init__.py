# SPDX-License-Identifier: BSD-3-Clause
"""Run a plan: hold it against this machine, calibrate the tester, open or resume a run folder, and measure.

Not called ``run``: that name is the function :func:`planebench.run`.
"""
