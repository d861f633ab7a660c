# SPDX-License-Identifier: BSD-3-Clause
"""A chain as a user writes it: ``l3fwd``, ``firewall:rules=my.rules,vm:l3fwd:routes=table.txt:rings=packed``.

Functions in path order, commas between them; options of a function as of a switch, colons between them. Before a
function may stand what it runs in, whose options stand beside its own; ``image:FILE`` and ``exec:"command"`` are VNFs
of the user's own. In double quotes commas and colons are text. What is kept in plans and points is the text with
absolute paths: it means the same from everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planebench.model.chain_name import CHAIN_LENGTH_MAX, OWN, SEPARATOR, join, quote, split, unquote, vnf_texts
from planebench.model.chain_name import HOSTINGS as HOSTING_NAMES
from planebench.model.dimensions import HostingName
from planebench.model.errors import UsageError, unknown
from planebench.model.records import Point
from planebench.model.scenario import ScenarioName, scenario_named
from planebench.model.scenarios import build
from planebench.model.switch import Option, Value, parse_options, parse_values
from planebench.model.topology import Topology, Vnf
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.vnfs import CORES_OPTION, SENDING_OPTIONS, VNFS, VnfKind

"""Placeholders for the function of a VNF of the user, for which planed has no task."""

ONE_PORTED = ", ".join(name for name, kind in VNFS.items() if kind.one_port)


@dataclass(frozen=True, slots=True)
class ChainVnf:
    """One function of a chain, with its options as written.

    ``hosting``: the hosting in its text, or None. ``subject``: for a VNF of the user, the value of the first option of
    its hosting.
    """

    kind: VnfKind
    options: Mapping[str, str] = field(default_factory=dict)
    hosting: HostingName | None = None
    hosting_options: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""

    @property
    def own(self) -> bool:
        """Return whether it is a VNF of the user, not a function of planed."""
        return not self.kind.kind

    @property
    def text(self) -> str:
        """Return the text of the function in a chain, with its options in one order: one chain has one text."""
        name = quote(self.subject) if self.own else self.kind.name
        given = [f"{o.name}={quote(self.options[o.name])}" for o in _given(self.kind.all_options, self.options)]
        of_hosting = _given(_options_of(self.hosting), self.hosting_options)
        given += [f"{option.name}={quote(self.hosting_options[option.name])}" for option in of_hosting]
        return ":".join([*([self.hosting] if self.hosting else []), name, *given])

    def hosting_values(self) -> dict[str, Value]:
        """Return the options of its hosting by key, including the subject of a VNF of the user."""
        options = _options_of(self.hosting)
        subject = {options[0].name: self.subject} if self.own else {}
        return parse_values(str(self.hosting), options, {**subject, **self.hosting_options})

    def settings(self) -> dict[str, Any]:
        """Return the settings object of its task; empty for defaults."""
        return {o.key: o.value(self.options[o.name], self.kind.name) for o in _given(self.kind.options, self.options)}

    def sending(self) -> dict[str, Value]:
        """Return the given ones of ``send_burst`` and ``drain_us``: the function collects frames before it sends."""
        given = [option for option in SENDING_OPTIONS if option.name in self.options]
        return {option.name: option.value(self.options[option.name], self.kind.name) for option in given}

    def cores(self) -> int:
        """Return the number of its cores."""
        return int(self.options.get(CORES_OPTION.name, CORES_OPTION.default))

    def files(self) -> tuple[Path, ...]:
        """Return every file that its settings name, and the files for its hosting."""
        keys = {option.key for option in _options_of(self.hosting) if option.kind == "file"}
        of_hosting = [Path(str(value)) for key, value in self.hosting_values().items() if key in keys]
        return tuple(dict.fromkeys((*self.named_files(), *of_hosting)))

    def named_files(self) -> tuple[Path, ...]:
        """Return the files that its settings name, which planed reads."""
        files = [option for option in self.kind.options if option.kind == "file"]
        return tuple(Path(self.options[option.name]) for option in _given(files, self.options))


def parse_chain(text: str) -> tuple[ChainVnf, ...]:
    """Return the functions of a chain, without reading files.

    Raises UsageError for an unknown function or option, a bad value, or a wrong length.
    """
    parts = [part.strip() for part in split(text, SEPARATOR)]
    if not all(parts):
        raise UsageError(f'chain "{text}" has an empty entry; give functions separated by single commas')
    if len(parts) > CHAIN_LENGTH_MAX:
        raise UsageError(f'chain "{text}" has {len(parts)} functions. Valid: 1..{CHAIN_LENGTH_MAX}')
    try:
        return tuple(map(_parse_vnf, parts))
    except UsageError as error:
        raise UsageError(f'chain "{text}": {error}') from None


def resolve_chain(text: str, base: Path) -> str:
    """Return the text of a chain with absolute paths (relative to ``base``), with every value and file checked.

    Raises UsageError as :func:`parse_chain`, and for a file that is missing.
    """
    try:
        return SEPARATOR.join(_resolved(vnf, base).text for vnf in parse_chain(text))
    except UsageError as error:
        said = str(error)
        raise UsageError(said if said.startswith("chain ") else f'chain "{text}": {said}') from None


def vnf_cores(chain: str, length: int) -> tuple[int, ...]:
    """Return the number of cores of each VNF of a chain; of l2fwd without a text. Raises UsageError."""
    return tuple(vnf.cores() for vnf in parse_chain(chain)) if chain else (1,) * length


def point_cores(point: Point) -> tuple[int, ...]:
    """Return the number of cores of each VNF of a point, one for all VNFs side by side, or of each hosted end."""
    if not point.chain_length:
        return (1,) * len(point.hosted)
    return vnf_cores(point.chain, point.named_length)


def hosted_chain(chain: str, length: int, usual: HostingName) -> tuple[str, HostingName]:
    """Return the one text and hosting of a chain whose functions run in ``usual`` by default.

    If all run in the same, that is the hosting, and a function names it only to give it options; else each that is not
    a task of the tester names its hosting. Raises UsageError as :func:`parse_chain`.
    """
    vnfs = parse_chain(chain) if chain else parse_chain(SEPARATOR.join(vnf_texts("", length)))
    told = [vnf.hosting or usual for vnf in vnfs]
    same = told[0] if len(set(told)) == 1 else None
    texts = [
        replace(
            vnf, hosting=None if hosting == (same or "process") and not vnf.own and not vnf.hosting_options else hosting
        ).text
        for vnf, hosting in zip(vnfs, told, strict=True)
    ]
    return join(texts), same or "process"


def _resolved(vnf: ChainVnf, base: Path) -> ChainVnf:
    name = vnf.kind.name
    options = {o.name: o.resolved(vnf.options[o.name], name, base) for o in _given(vnf.kind.all_options, vnf.options)}
    hosting, known, given = str(vnf.hosting), _options_of(vnf.hosting), vnf.hosting_options
    texts = {o.name: o.resolved(given[o.name], hosting, base) for o in _given(known, given)}
    subject = known[0].resolved(vnf.subject, hosting, base) if vnf.own else ""
    return replace(vnf, options=options, hosting_options=texts, subject=subject)


def _options_of(hosting: HostingName | None) -> tuple[Option, ...]:
    """Return the options of a hosting; ``process``, and a text that names none, have none."""
    found = HOSTINGS.get(hosting or "process")
    return found.options if found else ()


def _given(options: Iterable[Option], texts: Mapping[str, str]) -> Iterator[Option]:
    return (option for option in options if option.name in texts)


def _parse_vnf(text: str) -> ChainVnf:
    if text.count('"') and split(text + SEPARATOR, SEPARATOR)[-1]:
        raise UsageError('unbalanced double quote; close it, or write \\" for a quote in quotes')
    first, *rest = split(text, ":")
    told = next((name for name in HOSTING_NAMES if name == first), None)
    if told is None:
        return _function(first, rest, None)
    if told != "process" and told not in HOSTINGS:
        raise unknown("hosting", told, ("process", *HOSTINGS))
    if not (rest and rest[0]):
        what = f'{HOSTINGS[told].options[0].name.upper()}"' if told in OWN else 'l2fwd"'
        raise UsageError(f'{told} stands before what runs in it, as in "{told}:{what}')
    if told not in OWN:
        return _function(rest[0], rest[1:], told)
    known = _options_of(told)
    options = _options(told, rest[1:], f"{told}:{known[0].name.upper()}:KEY=...", known)
    vnf = ChainVnf(VnfKind(told, "", "the user's own VNF"), {}, told, options, unquote(rest[0]))
    vnf.hosting_values()
    return vnf


def _function(name: str, parts: Sequence[str], told: HostingName | None) -> ChainVnf:
    if name not in VNFS:
        raise unknown("network function", name, tuple(VNFS))
    kind = VNFS[name]
    of_hosting = _options_of(told)
    known = (*kind.options, *of_hosting)
    options = _options(name, parts, f"{name}:{known[0].name}=..." if known else name, known)
    mine = {key: value for key, value in options.items() if key not in {o.name for o in of_hosting}}
    parse_values(name, (*kind.all_options, *of_hosting), options)
    if "drain_us" in options and options.get("send_burst", "0") == "0":
        raise UsageError(f"{name}: drain_us without send_burst; give both, e.g. send_burst=32:drain_us=100")
    return ChainVnf(kind, mine, told, {key: value for key, value in options.items() if key not in mine})


def _options(name: str, parts: Iterable[str], example: str, known: Iterable[Option]) -> dict[str, str]:
    files = [option.name for option in known if option.kind in ("file", "path")]
    return {key: unquote(value) for key, value in parse_options(name, parts, example, files).items()}


def build_chain(
    scenario: ScenarioName,
    count: int = 0,
    *,
    chain: str = "",
    hosting: HostingName = "process",
    sending: Mapping[str, Value] | None = None,
    echo: bool = False,
) -> Topology:
    """Return the topology of a scenario whose VNFs ``chain`` names; by default they are l2fwd.

    ``hosting`` is that of VNFs whose text names none, and of ends in VNFs; ``sending``: how VNFs collect frames.
    Where only ports and flows matter, use scenarios.build.
    Raises UsageError for a chain that does not fit.
    """
    known = scenario_named(scenario)
    functions = parse_chain(chain) if chain else ()
    if known.chained and functions and len(functions) != known.parse_count(count):
        raise UsageError(f"chain {chain} has {len(functions)} functions; the scenario needs {count}")
    if known.side_by_side and functions:
        function = functions[0]
        if len(functions) != 1:
            raise UsageError(
                f"chain {chain} has {len(functions)} functions; VNFs side by side all run the same function; give one"
            )
        if function.own:
            raise UsageError(f"{function.text}: VNFs side by side must be functions of planed. Valid: {ONE_PORTED}")
        if function.cores() > 1:
            raise UsageError(f"{function.text}: VNFs side by side have one core each; remove cores")
        if not function.kind.one_port:
            raise UsageError(f"{function.kind.name} needs two ports; VNFs side by side have one. Valid: {ONE_PORTED}")
    vnfs = [] if functions else [Vnf(hosting=hosting)] * (count if known.chained else known.has_vnfs or echo)
    for function in functions:
        settings = function.settings()
        vnfs.append(
            Vnf(
                kind=function.kind.kind,
                settings=settings,
                sending=function.sending(),
                cores=function.cores(),
                memory_bytes=function.kind.memory_bytes(settings),
                hosting=function.hosting or hosting,
                hosting_values=function.hosting_values(),
                files=function.named_files(),
            )
        )
    batching = [replace(vnf, sending=sending) if sending and vnf.kind and not vnf.sending else vnf for vnf in vnfs]
    return build(scenario, count, batching, chain=chain, echo=echo, ends=hosting)
