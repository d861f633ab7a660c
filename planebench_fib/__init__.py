# SPDX-License-Identifier: BSD-3-Clause
"""For authors of VNFs whose forwarding is offloaded: messages, a client, and an agent that mirrors kernel routes.

A router can take this package alone (``planebench-fib``): it needs the standard library, and its agent needs pyroute2.
"""

__version__ = "0.1.0"
