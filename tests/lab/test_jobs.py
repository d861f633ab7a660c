# SPDX-License-Identifier: BSD-3-Clause
"""Prolog and epilog of a node of Slurm with real drivers: NICs are bound for a user who is not root, and given back."""

from __future__ import annotations

import shlex
import sys

import pytest
from lab_rig import Lab, on

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(3600), on("vmxnet3")]
USER = "nobody"
AS_USER = f"prlimit --memlock=unlimited setpriv --reuid={USER} --regid=nogroup --clear-groups"
HOME = "/run/lab/home"
NODE = f"""
mkdir -p {HOME} /run/lab/node && chown {USER} {HOME}
cat > /run/lab/node/planebench <<'END'
#!/bin/sh
ENVIRONMENT
exec {sys.executable} -m planebench "$@"
END
printf '#!/bin/sh\\necho "$*" >> /run/lab/node/told\\n' > /run/lab/node/scontrol
chmod +x /run/lab/node/*
echo 'PLANEBENCH=/run/lab/node/planebench NICS="ADDRESSES"' > /run/lab/node/testbed
"""
SLURM = {
    "PATH": "/run/lab/node:/usr/sbin:/usr/bin:/sbin:/bin",
    "PLANEBENCH_TESTBED_FILE": "/run/lab/node/testbed",
    "SLURMD_NODENAME": "rack1",
    "SLURM_JOB_USER": USER,
}


def call(lab: Lab, script: str) -> int:
    """Run a script of the folder slurm_node as slurmd does; return its exit code."""
    where = f"$({sys.executable} -c 'import planebench.lab as it; print(it.__path__[0])')/slurm_node"
    return lab.sh(f"sh {where}/{script}", 300, **lab.environment(), **SLURM).code


def test_nics_are_bound_for_the_user_of_a_job_and_given_back(lab: Lab) -> None:
    nics = [lab.address(nic) for nic in lab.topology.nics]
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in lab.environment().items())
    assert lab.sh(NODE.replace("ENVIRONMENT", exports).replace("ADDRESSES", " ".join(nics))).code == 0
    assert call(lab, "prolog.sh") == 0, lab.sh("cat /run/lab/node/told").output
    owners = lab.sh("stat -c %U /dev/vfio/[0-9]*")
    assert owners.output.split() == [USER] * 4
    wire = "pci:" + ",".join(f"{lab.address(a)}={lab.address(b)}" for a, b in lab.topology.cables)
    words = ["run", "--switch", "planed", "--scenario", "p2p", "--frame-size", "64", "--direction", "bidirectional"]
    words += ["--loads", "none", "--max-rate", "1000", "--duration", "1", "--repeat", "1", "--no-calibrate"]
    words += ["--no-report", "--wire", wire, "--runs", f"{HOME}/runs"]
    ran = lab.sh(f"{AS_USER} /run/lab/node/planebench {shlex.join(words)}", 600, HOME=HOME, XDG_CACHE_HOME=HOME)
    assert ran.code in (0, INCONCLUSIVE), ran.output
    (trial, _) = lab.script("trials.py", f"{HOME}/runs").documents()
    assert trial["verdict"] == "functional" and trial["forwarded"] == trial["offered"] > 0 == trial["unexplained"]
    assert [lab.driver(nic) for nic in lab.topology.nics] == ["vfio-pci"] * 4, "they belong to the job, not to the run"
    assert call(lab, "epilog.sh") == 0
    assert [lab.driver(nic) for nic in lab.topology.nics] == ["vmxnet3"] * 4
    assert lab.sh("ls /dev/vfio").output.split() == ["vfio"]
    assert lab.sh("cat /run/lab/node/told").code != 0, "nothing was said to Slurm"


def test_a_node_whose_nic_carries_its_network_is_drained(lab: Lab) -> None:
    interface = lab.run("ls", f"/sys/bus/pci/devices/{lab.address('s1')}/net").output.strip()
    lab.sh(f"ip address add 192.0.2.1/24 dev {interface} && ip link set {interface} up")
    lab.sh("rm -f /run/lab/node/told")
    assert call(lab, "prolog.sh") == 1
    lab.sh(f"ip address flush dev {interface}; ip link set {interface} down")
    told = lab.sh("cat /run/lab/node/told").output
    assert told.startswith("update NodeName=rack1 State=DRAIN Reason=planebench: "), told
    assert f"NIC {lab.address('s1')} is not taken: its interface {interface} is up and has addresses" in told
    assert [lab.driver(nic) for nic in lab.topology.nics] == ["vmxnet3"] * 4
