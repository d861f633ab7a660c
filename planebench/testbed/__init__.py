# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of the ports: what the tester and the VNFs run, what a switch is asked for, and its adapter.

Pure but for :mod:`planebench.switches.adapter`: a topology and a placement in, documents and requests out.
"""
