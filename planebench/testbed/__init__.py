# SPDX-License-Identifier: BSD-3-Clause
"""What a trial needs beside a switch: wires, cores, network functions and their isolation, traffic, testers."""
