# SPDX-License-Identifier: BSD-3-Clause
"""Variables of the environment that planebench reads, for the man page; docs/command-line.md has the same table."""

VARIABLES: dict[str, str] = {
    "PLANEBENCH_RUNS": "folder of the runs, in place of ./runs; --runs goes before it",
    "PLANEBENCH_PLANED": "the planed program, in place of the one that was installed with planebench",
    "PLANEBENCH_PLANED_STATIC": "the planed-static program of containers and VMs, in place of the one beside planed",
    "PLANEBENCH_SWITCH": "where a switch is, with its name for SWITCH: PLANEBENCH_VPP, PLANEBENCH_OVS_DPDK",
    "PLANEBENCH_SWITCHES": "the file that says where switches are, in place of ~/.config/planebench/switches.toml",
    "PLANEBENCH_PATIENCE": "factor from 1 to 1000 on every deadline, for a slow or busy machine",
    "PLANEBENCH_STATE": "where doctor --fix keeps old settings, in place of /var/lib/planebench/undo.json",
    "NO_COLOR": "set to anything: no colours; as --no-color",
    "FORCE_COLOR": "set to anything: colours into a pipe too; as --color",
    "TERM": "dumb: neither colours nor bold type",
    "COLUMNS": "width of tables where the terminal does not say",
    "XDG_CACHE_HOME": "where calibrations and the guest of VMs are kept, in place of ~/.cache",
    "XDG_CONFIG_HOME": "where planebench/switches.toml is looked for, in place of ~/.config",
    "XDG_RUNTIME_DIR": "where sockets and logs of a run are, in place of /tmp",
}
