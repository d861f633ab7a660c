# SPDX-License-Identifier: BSD-3-Clause
"""Variables of the environment that planebench reads. Tests hold docs/command-line.md against this table."""

VARIABLES: dict[str, str] = {
    "PLANEBENCH_RUNS": "folder of the runs, instead of ./runs; --runs overrides it",
    "PLANEBENCH_PLANED": "the planed program, instead of the one that was installed with planebench",
    "PLANEBENCH_PLANED_STATIC": "the planed-static program of containers and VMs, instead of the one beside planed",
    "PLANEBENCH_AGENT": "command that is planebench on another host, instead of planebench on its PATH",
    "PLANEBENCH_SWITCH": "path of a switch, with its name for SWITCH: PLANEBENCH_VPP, PLANEBENCH_OVS_DPDK",
    "PLANEBENCH_SWITCHES": "file with the paths of switches, instead of ~/.config/planebench/switches.toml",
    "PLANEBENCH_TREX": "folder of the TRex release with its client library, for --tester trex:HOST",
    "PLANEBENCH_JOBS": "folder of the jobs of a lab, instead of ./jobs; --jobs overrides it",
    "PLANEBENCH_TESTBED": "name of the testbed in the lab, instead of the host name; --testbed overrides it",
    "PLANEBENCH_SUBJECT": "git working tree that a run measures, instead of none; --subject overrides it",
    "PLANEBENCH_PATIENCE": "factor from 1 to 1000 for every timeout, for a slow or busy host",
    "PLANEBENCH_STATE": "file in which doctor --fix keeps old settings, instead of /var/lib/planebench/undo.json",
    "PLANEBENCH_SHARE_CPUS": "set to anything: measure also where another planebench measures on the same CPUs",
    "NO_COLOR": "set to anything: no colors; same as --no-color",
    "FORCE_COLOR": "set to anything: colors into a pipe, too; same as --color",
    "TERM": "dumb: neither colors nor bold type",
    "COLUMNS": "width of tables where the terminal does not report one",
    "XDG_CACHE_HOME": "folder of calibrations and of the guest image of VMs, instead of ~/.cache",
    "XDG_CONFIG_HOME": "folder of planebench/switches.toml, instead of ~/.config",
    "XDG_STATE_HOME": "folder of planebench/fault-*.txt, the details of errors with code 8, instead of ~/.local/state",
    "XDG_RUNTIME_DIR": "folder of sockets and logs of a run, instead of /tmp",
}
