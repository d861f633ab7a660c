# SPDX-License-Identifier: BSD-3-Clause
"""NICs are found, taken and given back; what the machine needs is refused with one sentence and nothing changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from planebench.host import device_settings, interfaces, journal, pci, pci_binding
from planebench.host.device_settings import device_journal
from planebench.host.journal import Journal
from planebench.host.programs import ProgramOutput
from planebench.measure import tuning
from planebench.model.errors import StartError, UsageError
from tests.sysfs_tree import Killed, Tree, kill_after

A, B, PF, OTHER = "0000:3b:00.0", "0000:3b:00.1", "0000:5e:00.0", "0000:00:1f.6"
MODE = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A server with two ports of one NIC, each in a group, and an onboard NIC with the default route."""
    tree = Tree(tmp_path / "root")
    tree.device(A, "ixgbe", "40", numa_node="1", sriov_totalvfs="64", sriov_numvfs="0")
    tree.device(B, "ixgbe", "41", numa_node="1")
    tree.device(OTHER, "e1000e", "9", numa_node="-1")
    tree.interface(A, "ens1f0")
    tree.interface(B, "ens1f1", up=False)
    tree.interface(OTHER, "eno1")
    tree.route("eno1")
    tree.run(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: None)
    return tree


@pytest.fixture
def log(tree: Tree, tmp_path: Path) -> Journal:
    return device_journal(tmp_path / "state/undo.json", tree.root)


def test_nics_of_a_tree(tree: Tree) -> None:
    first, second = pci.nic("3b:00.0", tree.root), pci.nic(B, tree.root)
    assert [nic.address for nic in pci.nics(tree.root)] == [OTHER, A, B]
    assert (first.driver, first.numa_node, first.iommu_group, first.interfaces) == ("ixgbe", 1, "40", ("ens1f0",))
    assert (first.link, first.speed_mbps, first.vfs_possible, first.vfs) == (True, 10000, 64, 0)
    assert (second.link, second.speed_mbps) == (None, None)
    assert pci.nic(OTHER, tree.root).numa_node is None


def test_bound_and_given_back(tree: Tree, log: Journal) -> None:
    before = tree.drivers()
    with pci_binding.bound((B, "3b:00.0"), log) as taken:
        assert [(nic.address, nic.driver) for nic in taken.nics] == [(B, "vfio-pci"), (A, "vfio-pci")]
        assert taken.warnings == ()
        assert tree.drivers()[A] == ("vfio-pci", "vfio-pci")
        assert tree.drivers()[OTHER] == before[OTHER]
    assert tree.drivers() == before
    assert not log.state.exists()


def test_a_context_gives_back_its_own_nics_only(tree: Tree, log: Journal) -> None:
    before = tree.drivers()
    with pci_binding.bound((A,), log):
        with pci_binding.bound((A, B), log):
            assert tree.drivers()[B][0] == "vfio-pci"
        assert tree.drivers()[A][0] == "vfio-pci" and tree.drivers()[B] == before[B]
    assert tree.drivers() == before


def test_without_an_iommu_vfio_has_a_mode_and_the_user_is_told(tree: Tree, log: Journal) -> None:
    tree.device(PF, "igb")
    tree.interface(PF, "ens2")
    (tree.root / "sys/kernel/iommu_groups").rename(tree.root / "sys/kernel/none")
    with pytest.raises(StartError, match="no mode without one"):
        pci_binding.bind((PF,), log)
    tree.set(MODE, "N")
    with pci_binding.bound((PF,), log) as taken:
        assert tree.get(MODE) == "Y"
        assert taken.warnings == (pci_binding.NO_IOMMU_WARNING,)
    assert tree.get(MODE) == "N"
    assert tree.drivers()[PF] == ("igb", "(null)")


def test_a_nic_that_the_iommu_leaves_out_turns_no_protection_off(tree: Tree, log: Journal) -> None:
    tree.device(PF, "igb")
    tree.interface(PF, "ens2")
    tree.set(MODE, "N")
    with pytest.raises(StartError, match="though this machine has an IOMMU"):
        pci_binding.bind((PF,), log)
    assert tree.get(MODE) == "N"


def test_a_bifurcated_driver_stays(tree: Tree, log: Journal) -> None:
    tree.device(PF, "mlx5_core", "7", vendor="0x15b3")
    tree.interface(PF, "ens2np0", speed="100000")
    before = tree.drivers()
    with pci_binding.bound((PF,), log) as taken:
        assert taken.nics[0].is_bifurcated and taken.nics[0].speed_mbps == 100000
        assert tree.drivers() == before
    assert not log.state.exists()


def test_a_guest_takes_a_bifurcated_nic_from_its_driver(tree: Tree, log: Journal) -> None:
    tree.device(PF, "mlx5_core", "7", vendor="0x15b3")
    tree.interface(PF, "ens2np0")
    before = tree.drivers()
    taken = pci_binding.bind(("5e:00.0",), log, for_guest=True)
    assert taken.nics[0].address == PF and taken.nics[0].driver == "vfio-pci"
    log.undo_own()
    assert tree.drivers() == before


def default_route(tree: Tree) -> None:
    tree.route("ens1f0")


def over_a_vlan_of_a_bond(tree: Tree) -> None:
    tree.set("sys/class/net/bond0.7/lower_bond0", "")
    tree.set("sys/class/net/bond0/lower_ens1f0", "")
    tree.route("bond0.7")


def part_of_a_bridge(tree: Tree) -> None:
    tree.link("sys/class/net/ens1f0/master", "../br0")


def carries_a_vlan(tree: Tree) -> None:
    tree.set("sys/class/net/ens1f0/upper_ens1f0.7", "")


def default_route_v6(tree: Tree) -> None:
    zero = "0" * 32
    tree.set("proc/net/ipv6_route", f"{zero} 00 {zero} 00 {'fe80' + '0' * 28} 00000400 1 0 00000003 ens1f0")


def address_v6(tree: Tree) -> None:
    tree.set("proc/net/if_inet6", f"{'2001' + '0' * 28} 05 40 00 80 ens1f0")


def subnet(tree: Tree) -> None:
    tree.route("ens1f0", "0000000A", "000000FF")


def group(tree: Tree) -> None:
    tree.device("0000:3b:00.2", "nvme", "40", **{"class": "0x010802"})


def virtual_functions(tree: Tree) -> None:
    tree.set(f"sys/bus/pci/devices/{A}/sriov_numvfs", "4")


def other_namespace(tree: Tree) -> None:
    (tree.root / f"sys/bus/pci/devices/{A}/net").rename(tree.root / "elsewhere")


def uio(tree: Tree) -> None:
    link = tree.root / f"sys/bus/pci/devices/{A}/driver"
    link.unlink()
    link.symlink_to("../../drivers/igb_uio")


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (default_route, "its interface ens1f0 carries the default route"),
        (default_route_v6, "its interface ens1f0 carries the default route"),
        (over_a_vlan_of_a_bond, "its interface ens1f0 carries the default route"),
        (part_of_a_bridge, "ens1f0 is up and is part of br0"),
        (carries_a_vlan, "ens1f0 is up and carries ens1f0.7"),
        (address_v6, "ens1f0 is up and has addresses"),
        (subnet, "ens1f0 is up and has addresses"),
        (group, "device 0000:3b:00.2 .driver nvme. is in its IOMMU group 40"),
        (virtual_functions, "has 4 virtual functions"),
        (other_namespace, "another network namespace"),
        (uio, "igb_uio has it"),
    ],
)
def test_what_the_machine_needs_is_refused(
    tree: Tree, log: Journal, happens: Callable[[Tree], None], words: str
) -> None:
    happens(tree)
    before = tree.drivers()
    with pytest.raises(UsageError, match=words) as raised:
        pci_binding.bind((B, A), log)
    assert f"NIC {A} is not taken" in str(raised.value) and "\n" not in str(raised.value)
    assert tree.drivers() == before
    assert not log.state.exists()


def test_link_local_addresses_are_no_use(tree: Tree, log: Journal) -> None:
    tree.set("proc/net/if_inet6", f"{'fe80' + '0' * 28} 05 40 20 80 ens1f0")
    assert pci_binding.check((A,), log)


def test_the_way_to_the_ssh_client_is_refused(tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.set("sys/class/net/br0/lower_ens1f1", "")
    tree.route("br0", "0000000A", "000000FF")
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: "10.1.2.3 50000 10.0.0.1 22")
    with pytest.raises(UsageError, match="ens1f1 carries the ssh connection"):
        pci_binding.bind((A, B), log)
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: "::ffff:11.1.2.3 50000 ::ffff:10.0.0.1 22")
    assert pci_binding.check((A, B), log)


def test_nics_of_a_job_stay_bound_for_its_user_until_undo(
    tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, owners = tree.drivers(), {}
    monkeypatch.setattr(os, "chown", lambda path, user, group: owners.update({path.name: user}))
    taken = pci_binding.keep_bound(("3b:00.0", B), 1000, log)
    assert [nic.driver for nic in taken.nics] == ["vfio-pci", "vfio-pci"] and owners == {"40": 1000, "41": 1000}
    log.undo_abandoned()
    with pci_binding.bound((A,), log):  # a run that root makes
        pass
    assert {driver for driver, _ in tree.drivers().values()} >= {"vfio-pci"} and tree.drivers()[A][0] == "vfio-pci"
    log.undo()
    assert tree.drivers() == before
    with pytest.raises(UsageError, match="the default route"):
        pci_binding.keep_bound((OTHER,), 1000, log)


def test_devices_of_one_group_are_taken_together(tree: Tree, log: Journal) -> None:
    tree.device("0000:81:00.0", "ixgbe", "50")
    tree.device("0000:81:00.1", "ixgbe", "50")
    tree.device("0000:80:01.0", "pcieport", "50", **{"class": "0x060400"})
    tree.interface("0000:81:00.0", "x0")
    tree.interface("0000:81:00.1", "x1")
    with pytest.raises(UsageError, match=r"0000:81:00\.1 .* IOMMU group 50"):
        pci_binding.check(("81:00.0",), log)
    assert len(pci_binding.check(("81:00.0", "81:00.1"), log)) == 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("eth0", "is not a PCI address"),
        ("0000:aa:00.0", "there is no PCI device 0000:aa:00.0; the network devices of this machine: 0000:00:1f.6"),
        ("0000:02:00.0", "is no network device"),
        (A, "is named twice"),
    ],
)
def test_addresses_that_are_no_nic(tree: Tree, log: Journal, address: str, words: str) -> None:
    tree.device("0000:02:00.0", "nvme", "3", **{"class": "0x010802"})
    with pytest.raises(UsageError, match=words):
        pci_binding.bind((A, address), log)


def test_a_driver_that_refuses_gives_all_back(tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree.drivers()

    def refuse(file: Path) -> None:
        if file.name == "drivers_probe" and tree.drivers()[A][0] == "vfio-pci":
            raise OSError(22, "Invalid argument")

    with monkeypatch.context() as patch:
        tree.run(patch, refuse)
        with pytest.raises(StartError, match=f"cannot bind: driver of {B}: ixgbe -> vfio-pci .* Invalid argument"):
            pci_binding.bind((A, B), log)
    assert tree.drivers() == before
    assert not log.state.exists()


WRITES = 7
"""The mode without IOMMU, then override, unbind and probe of two NICs."""


@pytest.fixture
def bare(tree: Tree) -> Tree:
    """Two NICs without an IOMMU."""
    for address in (A, B):
        (tree.root / f"sys/bus/pci/devices/{address}/iommu_group").unlink()
    (tree.root / "sys/kernel/iommu_groups").rename(tree.root / "sys/kernel/none")
    tree.set(MODE, "N")
    return tree


@pytest.mark.parametrize("undone_by", ["doctor", "next start"])
@pytest.mark.parametrize("survivors", range(WRITES + 1))
def test_killed_while_binding(
    bare: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch, survivors: int, undone_by: str
) -> None:
    """Killed after so many writes, and once more at each write of the restoration."""
    before = bare.drivers()
    with monkeypatch.context() as patch:
        bare.run(patch, kill_after(survivors))
        if survivors < WRITES:
            with pytest.raises(Killed):
                pci_binding.bind((A, B), log)
        else:
            pci_binding.bind((A, B), log)
    monkeypatch.setattr(journal, "is_alive", lambda owner: False)

    def undo() -> object:
        if undone_by == "doctor":
            return tuning.undo(log.state, bare.root)
        return log.undo_abandoned()

    for writes in range(20):
        with monkeypatch.context() as patch:
            bare.run(patch, kill_after(writes % 4))
            try:
                undo()
            except Killed:
                continue
            break
    assert bare.drivers() == before
    assert bare.get(MODE) == "N"
    assert not log.state.exists()


def test_the_next_start_restores_what_a_killed_run_left(
    tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree.drivers()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "this_process", lambda: "999999999:1")
        pci_binding.bind((A,), log)
    with pci_binding.bound((B,), log):
        assert tree.drivers()[A] == before[A]
    assert tree.drivers() == before


def test_a_nic_of_another_run_is_neither_taken_nor_restored(
    tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = f"{os.getppid()}:{journal.procfs.start_ticks(os.getppid())}"
    with monkeypatch.context() as patch:
        patch.setattr(journal, "this_process", lambda: parent)
        pci_binding.bind((A,), log)
    with pytest.raises(UsageError, match=f"process {os.getppid()} of planebench uses it"):
        pci_binding.bind((A,), log)
    pci_binding.bind((B,), log)
    assert [outcome.kind for outcome in log.undo_own()] == ["changed"]
    assert [outcome.kind for outcome in tuning.undo(log.state, tree.root)] == ["left"]
    assert tree.drivers()[A] == ("vfio-pci", "vfio-pci")


def test_a_driver_that_somebody_else_changed_stays(tree: Tree, log: Journal) -> None:
    pci_binding.bind((A,), log)
    link = tree.root / f"sys/bus/pci/devices/{A}/driver"
    link.unlink()
    link.symlink_to("../../drivers/uio_pci_generic")
    (left,) = log.undo()
    assert left.kind == "left" and "uio_pci_generic" in left.note
    assert not log.state.exists()


@pytest.mark.parametrize("path", ["/sys/bus/pci/devices/../../../driver", "/sys/bus/pci/devices/0000:3b:00.0/x/driver"])
def test_a_state_file_cannot_name_other_paths(log: Journal, path: str) -> None:
    assert not any(setting.has(path) for setting in log.settings)


def test_only_root_binds(tree: Tree, log: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(StartError, match="only root"):
        pci_binding.bind((A,), log)


def test_ssh_connection_survives_sudo() -> None:
    """The variable of an ancestor counts where this process has none."""
    assert interfaces.ssh_connection({"SSH_CONNECTION": "10.0.0.2 1 10.0.0.1 22"}) == "10.0.0.2 1 10.0.0.1 22"
    assert interfaces.ssh_connection({}) in (None, os.environ.get("SSH_CONNECTION"))


class Ip:
    """The program ip, for the VFs and the interface of one NIC."""

    def __init__(self, tree: Tree, interface: str, refuses: str = "", why: str = "Operation not permitted") -> None:
        self.tree, self.interface, self.refuses, self.why = tree, interface, refuses, why
        self.said: list[str] = []

    def __call__(self, argv: Sequence[str], timeout_s: float = 0.0) -> ProgramOutput:
        words = list(argv[3:])
        self.said.append(" ".join(words))
        if self.refuses and self.refuses in words:
            return ProgramOutput(2, "", f"RTNETLINK answers: {self.why}")
        if words[2] in ("up", "down"):
            path = f"sys/bus/pci/devices/{A}/net/{self.interface}/flags"
            self.tree.set(path, "0x1003" if words[2] == "up" else "0x1002")
        return ProgramOutput(0, "", "")


@pytest.fixture
def ip(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Ip:
    ip = Ip(tree, "ens1f0")
    monkeypatch.setattr(device_settings, "run_tool", ip)
    return ip


def test_virtual_functions_are_made_bound_and_removed(tree: Tree, log: Journal, ip: Ip) -> None:
    tree.set(f"sys/bus/pci/devices/{A}/net/ens1f0/flags", "0x1002")
    before = tree.drivers()
    first, second = pci_binding.make_vfs(A, 2, log, macs=("02:00:00:00:00:77",))
    assert (first.address, first.physical, second.physical) == ("0000:3b:02.0", A, A)
    assert ip.said[0] == "dev ens1f0 up"
    assert ip.said[1:4] == [
        "dev ens1f0 vf 0 mac 02:00:00:00:00:77",
        "dev ens1f0 vf 0 trust on",
        "dev ens1f0 vf 0 spoofchk off",
    ]
    assert ip.said[4] == "dev ens1f0 vf 1 mac 02:00:00:00:56:01"
    bound = pci_binding.bind((first.address,), log)
    assert bound.nics[0].driver == "vfio-pci"
    assert {outcome.kind for outcome in log.undo_own()} == {"changed"}
    assert tree.drivers() == before
    assert ip.said[-1] == "dev ens1f0 down"
    assert not log.state.exists()


@pytest.mark.parametrize(
    ("address", "count", "words"),
    [
        (A, 65, "65 were asked for, and it can have 1 to 64"),
        (A, 0, "0 were asked for"),
        (B, 1, "no SR-IOV"),
        (OTHER, 1, "eno1 carries the default route"),
        (PF, 1, "it has 4 already"),
    ],
)
def test_nics_that_get_no_virtual_functions(
    tree: Tree, log: Journal, ip: Ip, address: str, count: int, words: str
) -> None:
    tree.device(PF, "ice", "70", sriov_totalvfs="8", sriov_numvfs="4")
    before = tree.drivers()
    with pytest.raises(UsageError, match=words):
        pci_binding.make_vfs(address, count, log)
    assert tree.drivers() == before and not ip.said and not log.state.exists()


def test_an_attribute_that_is_refused_removes_the_virtual_functions(tree: Tree, log: Journal, ip: Ip) -> None:
    before, ip.refuses = tree.drivers(), "trust"
    with pytest.raises(StartError, match=r"`ip link set dev ens1f0 vf 0 trust on` said: .* Operation not permitted"):
        pci_binding.make_vfs(A, 1, log)
    assert tree.drivers() == before
    assert not log.state.exists()


def test_an_attribute_that_a_driver_lacks_is_left(tree: Tree, log: Journal, ip: Ip) -> None:
    ip.refuses, ip.why = "trust", "Operation not supported"
    assert len(pci_binding.make_vfs(A, 1, log)) == 1
    assert ip.said[-1] == "dev ens1f0 vf 0 spoofchk off"


@pytest.mark.parametrize("survivors", range(3))
def test_killed_while_making_virtual_functions(
    tree: Tree, log: Journal, ip: Ip, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    """Killed before the VFs are there, and while the first is bound."""
    before = tree.drivers()
    with monkeypatch.context() as patch:
        tree.run(patch, kill_after(survivors))
        with pytest.raises(Killed):
            made = pci_binding.make_vfs(A, 2, log)
            pci_binding.bind((made[0].address,), log)
    monkeypatch.setattr(journal, "is_alive", lambda owner: False)
    log.undo_abandoned()
    assert tree.drivers() == before
    assert not log.state.exists()
