# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have: those that change a plan, for ``run`` and ``plan show``, and the common ones."""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from planebench.analysis.search.methods import METHODS, parameters
from planebench.cli.fault import one_line
from planebench.model.scenarios import chain_in, parse_scenario
from planebench.model.words import printable
from planebench.plan import check_suite

if TYPE_CHECKING:
    from rich.table import Table


def examples(*commands: str) -> str:
    """Return the end of a command's help. Each is a command that works: make docs-check runs them."""
    return "\n\n".join(("Examples:", *commands))


def option(flags: str, help: str, metavar: str | None = None) -> Any:
    """Return an option of a command. ``flags`` are separated by spaces; empty: the name of the parameter."""
    return typer.Option(*flags.split(), metavar=metavar, help=help)


def argument(metavar: str, help: str) -> Any:
    """Return an argument of a command."""
    return typer.Argument(metavar=metavar, help=help)


COMMON: dict[str, tuple[Any, Any, Any]] = {
    "runs": (Path | None, option("--runs", "Folder of the runs (default: $PLANEBENCH_RUNS, or runs)."), None),
    "json": (bool, option("--json", "Print one JSON document on standard output."), False),
    "quiet": (bool, option("--quiet -q", "Print only errors and warnings, on standard error (for CI)."), False),
}
"""Options of many commands: type, option and default."""


def does(target: str, *common: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command call a function of planebench.cli, as ``compare.compare``, which returns its exit code or None.

    Its module is imported then: a user waits for help, too. ``common``: options of COMMON that it has beside its own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**values: Any) -> None:
            module, _, name = target.partition(".")
            if code := getattr(import_module(f"planebench.cli.{module}"), name)(**values):
                raise typer.Exit(code)

        own = inspect.signature(command, eval_str=True).parameters.values()
        more = [_parameter(name, *COMMON[name]) for name in common]
        return _takes(called, [*own, *more])

    return decorate


def _parameter(name: str, kind: Any, shown: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown])


def _takes(called: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Return a command with these parameters, as typer sees it."""
    own = (it for it in parameters if it.kind is not it.VAR_KEYWORD)
    keyword_only = [it.replace(kind=inspect.Parameter.KEYWORD_ONLY) for it in own]
    called.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    called.__annotations__ = {it.name: it.annotation for it in keyword_only}
    return called


PageOption = Annotated[
    Path | None, option("--html", "File to write the report to (default: report.html in the run folder).")
]
RunArgument = Annotated[str, argument("RUN", "Run: latest, a run id or the start of one, a name, or a path.")]
PlanArgument = Annotated[str, argument("SUITE|PLAN", "Suite (see list suites) or plan file.")]
SwitchArgument = Annotated[str, argument("NAME[:OPTION=VALUE]", "Switch, as in run --switch.")]
RingSizeOption = Annotated[int, option("--ring-size", "Descriptors of each ring, a power of two.")]
HugepagesOption = Annotated[
    bool | None, option("--hugepages/--no-hugepages", "Run with hugepages (default: if enough are free).")
]

SwitchHostOption = Annotated[
    str | None, option("--switch-host", "Host of the switches, as for ssh (default: this one).", "USER@HOST")
]
TimeBudgetOption = Annotated[str | None, option("--time-budget", "Fit trial durations into a time, e.g. 20m.", "TIME")]


def _text(flag: str, metavar: str, help: str) -> Any:
    return Annotated[str | None, option(flag, help, metavar)]


def _number(kind: Any, flag: str, help: str) -> Any:
    return Annotated[kind | None, option(flag, help)]


PLAN_OPTIONS: dict[str, Any] = {
    "switch": _text("--switch", "A,B", "Switches, e.g. planed,sim:capacity=10M. Name one twice to test it twice."),
    "cpu_mhz": _text("--cpu-mhz", "N,M", "CPU clocks in MHz: every point is measured at each (cpufreq, root)."),
    "duty": _text("--duty", "A,B", "CPU clocks that planed emulates, as shares of the machine's: 0.46,1."),
    "scenario": _text("--scenario", "A,B", "p2p, p2v, v2v, loopback, bridged, parallel; pvp, pvvp."),
    "frame_size": _text("--frame-size", "N,M", "Bytes of frames with FCS: 64 to 1518, 9000."),
    "direction": _text("--direction", "A,B", "unidirectional, bidirectional, reversed (p2v)."),
    "chain_length": _text("--chain-length", "N,M", "Number of VNFs in a loopback chain: 1 to 5."),
    "vnfs": _text("--vnfs", "N,M", "Number of independent VNFs in scenario parallel: 1 to 63."),
    "chain": Annotated[
        list[str] | None,
        option("--chain", "Functions of a chain, e.g. firewall:rules=FILE,l3fwd. May be repeated.", "A,B"),
    ],
    "hosting": _text("--hosting", "A,B", "VNFs: process, separate, container, vm."),
    "placement": _text("--placement", "A,B", "NUMA node of the VNFs against the switch: near, random, far, split:K."),
    "tester": _text(
        "--tester",
        "TESTER",
        "NUMA node of generator and monitor: near, other-node; or an external tester: otg:URL, trex:HOST.",
    ),
    "duration": _number(float, "--duration", "Seconds of a saturating or latency trial."),
    "repeat": _number(int, "--repeat", "Trials at maximum load of each test point."),
    "restarts": _number(int, "--restarts", "Number of restarts between those trials (default: before each)."),
    "max_rate": _text("--max-rate", "RATE", "Maximum offered load per direction, e.g. 14.88M (default: unlimited)."),
    "line": _text("--line", "SPEED", "Speed of every link, e.g. 10G: saturating trials fill it (default: the NICs')."),
    "open_loop": _number(bool, "--open-loop/--closed-loop", "Saturate at --max-rate or at the line rate."),
    "search": _text("--search", "A,B", f"Searches to run: {', '.join(METHODS)}."),
    **{p.option: _number(p.kind, f"--{p.option.replace('_', '-')}", p.help) for p in parameters()},
    "loads": _text("--loads", "A,B", "Latency loads: shares of the plan's load, e.g. 0.10; or mrr:0.10; curve; none."),
    "rates": _text("--rates", "A,B", "Fixed latency loads per direction, e.g. 100k,1M; or none."),
    "wire": _text("--wire", "NAME", "Port type: virtio, vhost, memif, veth, af_xdp, netmap, pci:TESTER=SWITCH,..."),
    "clock": _text("--clock", "NAME", "Clock of latencies: hardware, kernel (veth), software, or auto (software)."),
    "check": _text("--check", "NAME", "Frames checked in trials without probes: full (all), sampled (1 burst in 16)."),
    "ring_size": _number(int, "--ring-size", "Descriptors of each ring, a power of two."),
    "wire_ring_size": _text("--wire-ring-size", "N", "Those of wires; own: as each switch has at NICs."),
    "switch_cores": _number(int, "--switch-cores", "CPU cores of each switch, e.g. with planed:workers=N."),
    "tester_cores": _number(int, "--tester-cores", "CPU cores of the tester, each with a queue pair of every port."),
    "traffic": _text("--traffic", "A,B", "Traffic profiles (see list traffic), or FILE.yaml; plain for none."),
    "anatomy": _number(bool, "--anatomy/--no-anatomy", "Break latency down into tester, switch hops and VNFs."),
    "seed": _number(int, "--seed", "Seed for the order of trials."),
    "name": _text("--name", "NAME", "Name of the run."),
}
"""Parameter of plans.override -> its option."""


EVERYDAY = (
    *("switch", "scenario", "frame_size", "direction", "chain_length", "chain", "hosting", "wire", "traffic", "line"),
    *("duration", "repeat", "loads", "search", "time_budget", "resume", "name", "seed"),
    *("runs", "json", "quiet", "page"),
)
"""Parameters of ``run`` and ``plan show`` that --help shows, in its order; --help-all shows the others, too."""


def _help_all(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        for parameter in context.command.params:
            if hasattr(parameter, "hidden"):
                parameter.hidden = False
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


MORE = "More options"
"""A box of the help with options whose column of names would take the width of all others."""
_HelpAllOption = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_help_all, is_eager=True, help="Show the rare options too.", rich_help_panel=MORE
    ),
]


def with_plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options that change a plan: it gets those in ``overrides``.

    Names are checked before what does the command is imported, which takes a second.
    """
    parameters = dict(inspect.signature(command).parameters)
    first = parameters.pop("plan")
    for name, annotation in {**PLAN_OPTIONS, "help_all": _HelpAllOption}.items():
        kind, shown_as = get_args(annotation)
        parameters[name] = _parameter(name, kind, shown_as, False if name == "help_all" else None)
    shown = [parameters.pop(name) for name in (*EVERYDAY, "help_all") if name in parameters]

    @wraps(command)
    def called(*, help_all: bool, **values: Any) -> None:
        overrides = {name: values.pop(name) for name in PLAN_OPTIONS}
        check_suite(values["plan"])
        for scenario in (overrides["scenario"] or "").split(","):
            if scenario.strip() and chain_in(scenario.strip().lower()) is None:
                parse_scenario(scenario.strip().lower())
        command(**values, overrides=overrides)

    return _takes(called, [first, *shown, *map(_hidden, parameters.values())])


def _hidden(it: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of an option with the option hidden; other commands may show the same one."""
    kind, shown = get_args(it.annotation)
    hidden = copy.copy(shown)
    hidden.hidden = True
    return _parameter(it.name, kind, hidden, it.default)


# Printing on standard output: JSON documents, and tables without lines.


def complain(text: str) -> None:
    """Print one line on standard error, after the name of the program."""
    tell(f"planebench: {text}")


def tell(text: str) -> None:
    """Print one line on standard error: standard output has the table or the JSON alone."""
    print(one_line(printable(" ".join(text.split()))), file=sys.stderr)


def print_json(document: Any) -> None:
    """Print a document as JSON."""
    print(json.dumps(document, indent=1, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table without lines on standard output; nothing in it is markup."""
    from rich.console import Console
    from rich.text import Text

    table = plain_table(*columns, header_style="bold")
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell), keep="\n")) for cell in row))
    Console(markup=False, highlight=False).print(table)


def plain_table(*columns: str, **more: Any) -> Table:
    """Return an empty table without lines, with these columns."""
    from rich.table import Table  # which takes longer to import than a wrong command line to be told

    table = Table(box=None, padding=(0, 2, 0, 0), **more)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
