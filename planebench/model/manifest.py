# SPDX-License-Identifier: BSD-3-Clause
"""The fairness manifest: under which conditions a switch ran, in the same words for all, to be set side by side.

Each switch fills what it knows when it is started; what it does not say is ``unknown``. What differs between switches
of a run is marked in the report. More keys of a switch's own may follow.

A value is free text, but for what is held against what was measured (planebench.stats.fairness): the values of
:data:`FEATURE_KEYS` are claims by the side of the port (planebench.model.claims), the numbers in ``ring_size`` and
``queues`` are all there are, and those in ``cores`` are CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "unknown"
DEFAULT = "default"
"""The default of the switch, whose value is unknown."""
LOOK_PER_RING = "one for all that a ring holds"
"""``index_look`` of a switch that does not look at the index of a ring for each burst, if there are more frames."""

MANIFEST_KEYS: Mapping[str, str] = {
    "function": "forwarding function: patch, learning, match/action, ...",
    "cores": "cores that forward",
    "queues": "queue pairs of each port",
    "nic_driver": "driver of the wire ports",
    "vnf_interface": "interface of the VNFs, and its implementation",
    "ring_size": "entries of a ring",
    "burst": "maximum number of frames received from a port at once",
    "checksum_offload": "checksums offloaded to the other side of a port",
    "segmentation_offload": "TSO, UFO, LRO",
    "mergeable_buffers": "VIRTIO_NET_F_MRG_RXBUF",
    "memory": "hugepages, or 4 KiB pages",
    "buffers": "packet buffers of the switch",
}
"""Key -> what it is, in the order in which they are shown."""

FEATURE_KEYS = ("checksum_offload", "segmentation_offload", "mergeable_buffers")
"""Keys whose values are claims."""
