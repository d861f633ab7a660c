# SPDX-License-Identifier: BSD-3-Clause
"""From a plan to a finished run folder: calibrate the tester, open a folder or resume one, measure, close it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planebench.analysis.conditions import differing_facts
from planebench.host.device_settings import undone_at_exit
from planebench.host.planed_program import require_planed
from planebench.host.process import Supervisor
from planebench.measure.ahead import Pace, stages
from planebench.measure.calibrate import calibrate, condition_for
from planebench.measure.campaign import Campaign, Listener
from planebench.measure.distance import dry_poll
from planebench.measure.header import Labels, make_header, placement_of, read_labels
from planebench.measure.live import LiveSettings
from planebench.measure.machine import Machine, held
from planebench.measure.survey import Survey
from planebench.model.dimensions import is_external
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import Calibration, RunHeader, RunStatus
from planebench.model.records import Trial
from planebench.model.text import FILES
from planebench.model.wire import wire_named
from planebench.plan.expand import max_frame_bytes, plain_frame_sizes
from planebench.store import RunWriter, default_runs_dir, list_runs, make_runs_dir, read_run
from planebench.store.calibration import load, save
from planebench.store.folder import is_complete, resume_command, runs_of_plan
from planebench.testbed.testers import get_tester

CALIBRATION_S = 0.1
"""Duration of each step of a calibration that a run makes for itself."""


@dataclass
class Session:
    """One sitting of a run: its folder is open, and nothing of it is started yet.

    ``trials`` are those of earlier sessions of the same run; :meth:`measure` adds to them.
    """

    survey: Survey
    machine: Machine
    settings: LiveSettings
    writer: RunWriter
    trials: list[Trial]

    def __post_init__(self) -> None:
        self.pace = Pace(stages(self.survey.plan, self.survey.measured, self.survey.costs))

    @property
    def folder(self) -> Path:
        """Return the run folder."""
        return self.writer.path

    def measure(self, listener: Listener | None = None) -> RunStatus:
        """Measure what is left of the plan, and return how it ended; ``listener`` hears of every step.

        Raises as :meth:`record`.
        """

        def campaign(supervisor: Supervisor) -> None:
            Campaign(
                plan=self.survey.plan,
                points=self.survey.measured,
                adapters=dict(self.survey.adapters),
                cpus=self.machine.cpus,
                settings=self.settings,
                writer=self.writer,
                pace=self.pace,
                listener=listener or Listener(),
                supervisor=supervisor,
                trials=self.trials,
            ).run()

        return self.record(campaign)

    def record(self, work: Callable[[Supervisor], None]) -> RunStatus:
        """Do ``work``, which measures and stores trials, and store how it ended; an interrupt ends it in order, too.

        Whatever happens, the folder is closed and no process is left running. Raises what ``work`` raises, and
        StoreError, as on a full disk.
        """
        try:
            with self.machine.measuring() as supervisor:
                work(supervisor)
        except KeyboardInterrupt:
            self.writer.finish("interrupted", "stopped by Ctrl-C or SIGTERM")
            return "interrupted"
        except SystemExit:
            self.writer.finish("interrupted", "nobody reads its output any more")
            raise
        except Exception as error:
            try:
                self.writer.finish("interrupted", str(error) or type(error).__name__)
            except StoreError:  # the folder may be what failed: full disk, removed
                if not self.trials:
                    self.writer.discard()
            raise
        self.writer.finish()
        return "complete"


def open_session(
    survey: Survey,
    *,
    runs_dir: Path | None = None,
    resume: bool = False,
    calibrated: bool = True,
    labels: Labels | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Session:
    """Make the folder of a new run, or open the newest unfinished run of the same plan (``resume``).

    ``calibrated``: calibrate the tester first, unless a calibration of the last 24 hours holds. ``labels``: default
    the name of this machine; a resumed run keeps those that it has. ``tell`` is given a line before something that
    takes seconds. Raises UsageError, NotInstalledError and StoreError; then nothing is started.
    """
    survey.required()
    plan = survey.plan
    if is_external(plan.tester):
        get_tester(plan.tester).check()
        if plan.check == "sampled":
            raise UsageError(f"--check sampled: {plan.tester} checks frames in its own way; leave out one of the two")
    throughput, needs_drivers = plan.throughput, wire_named(plan.wire).needs_drivers
    settings = LiveSettings(
        planed=Path("planed") if survey.simulated else require_planed(drivers=needs_drivers),
        ring_size=plan.ring_size,
        wire_ring_size=plan.wire_ring_size,
        hugepages=survey.hugepages,
        max_frame_bytes=max_frame_bytes(plan),
        wire=plan.wire,
        clock=plan.clock,
        tester_cores=plan.tester_cores,
        check=plan.check,
        open_loop=throughput.open_loop,
        has_rate=throughput.max_rate_pps is not None,
    )
    machine = Machine.prepare(
        plan.switch_cores,
        plan.wire,
        plan.tester,
        survey.switch_host,
        tester_cores=plan.tester_cores,
        simulated=survey.simulated,
    )
    folder = runs_dir or default_runs_dir()
    if resume:
        return _resumed(survey, machine, settings, folder, labels)
    make_runs_dir(folder)
    if calibrated:
        settings = replace(settings, calibration=_calibration(survey, machine, settings, tell))
    limited = survey.limited()
    header = _header(limited, machine, settings, labels or read_labels())
    if not survey.simulated:  # of the CPUs of switch, tester and the longest chain, for as long as a trial
        with machine.pinned():
            pollers = placement_of(limited.measured, machine.cpus).pollers
            noise = dry_poll(settings.planed, pollers, limited.plan.throughput.duration_s)
        header = replace(header, noise=noise)
    return Session(limited, machine, settings, RunWriter.create(folder, header), [])


def _resumed(
    survey: Survey, machine: Machine, settings: LiveSettings, runs_dir: Path, labels: Labels | None
) -> Session:
    of_plan = tuple(runs_of_plan(runs_dir, survey.plan))
    info = next((info for info in of_plan if not is_complete(info)), None)
    if info is None:
        complete = next(iter(of_plan), None)
        others = [it for it in list_runs(runs_dir) if not is_complete(it)]
        words = f"{runs_dir} has no unfinished run"
        if complete is not None:
            words = f"run {complete.run_id} of this plan is complete. Leave out --resume to measure it again"
        if others:
            other = others[-1]
            words = (
                f"run {complete.run_id} is complete" if complete is not None else "no run of this plan is unfinished"
            )
            words += f". Run {other.run_id} is unfinished: {resume_command(other.header.command)}"
        raise UsageError(f"--resume: {words}")
    settings = replace(settings, calibration=info.header.calibration)
    survey = replace(survey, plan=replace(survey.plan, time_budget_s=info.header.plan.time_budget_s))
    differing = changes(info.header, _header(survey, machine, settings, labels))
    if differing:
        raise UsageError(
            f"--resume: cannot resume run {info.run_id}: its trials would not be comparable: {'; '.join(differing)}. "
            "Start a new run without --resume"
        )
    read_run(info.path)  # a damaged run is refused before anything of it is changed
    writer = RunWriter.reopen(info.path)
    return Session(survey, machine, settings, writer, list(read_run(info.path).trials))  # none is added any more


def _header(survey: Survey, machine: Machine, settings: LiveSettings, labels: Labels | None = None) -> RunHeader:
    """Return the header of a run; devices are held meanwhile, as switches have the rings that these take."""
    with undone_at_exit(), held(machine.wire, switch_host=machine.switch_host):
        return make_header(survey, machine, settings, labels)


def changes(old: RunHeader, new: RunHeader) -> Sequence[str]:
    """Return a sentence for each difference that makes new trials of a run unlike its old ones."""
    versions = {switch.label: switch for switch in old.switches}
    switches = []
    for now in new.switches:
        was = versions.get(now.label)
        if was is None:
            continue
        if replace(was, build=now.build) != now:
            switches.append(f"{was.label} was {was.version} {was.settings}, now it is {now.version} {now.settings}")
        elif was.build is not None and now.build is not None and (files := was.build.unlike(now.build)):
            switches.append(f"{was.label} is another build: {', '.join(files)}")  # a run may not tell how its was built
    there = {switch.label for switch in new.switches}
    gone = [f"{label} is no longer installed" for label in versions if label not in there]
    settings = [
        f"{key}: {old.settings[key]} against {value}"
        for key, value in new.settings.items()
        if key in old.settings and old.settings[key] != value and key not in ("chains", *FILES)
    ]
    hosts = [header.switch_host.name if header.switch_host is not None else "this host" for header in (old, new)]
    moved = [f"the switches were on {hosts[0]}, now they are on {hosts[1]}"] if hosts[0] != hosts[1] else []
    was_of, is_of, commits = old.subject, new.subject, []
    if was_of is not None and is_of is not None and was_of.commit != is_of.commit:
        commits.append(f"commit {was_of.commit[:12]} against {is_of.commit[:12]}")
    return [*differing_facts(old, new), *moved, *switches, *gone, *settings, *commits]


def _calibration(
    survey: Survey, machine: Machine, settings: LiveSettings, tell: Callable[[str], None]
) -> Calibration | None:
    """Return the stored calibration that holds for this run, or make one; None where there is nothing to calibrate."""
    sizes = plain_frame_sizes(survey.plan)
    if survey.simulated or not sizes:
        return None
    if is_external(survey.plan.tester):
        tell(f"the tester is not calibrated: {survey.plan.tester} is no part of planebench")
        return None
    if machine.switch_host is not None:
        tell("the tester is not calibrated: the other ends of its wires are on another host")
        return None
    known = load(condition_for(settings, machine.cpus, machine.facts), sizes)
    if known is not None:
        return known
    tell("calibrating the tester")
    with machine.measuring() as supervisor:
        found = calibrate(sizes, settings, cpus=machine.cpus, supervisor=supervisor, duration_s=CALIBRATION_S)
    with contextlib.suppress(StoreError, UsageError):  # without a home to write to it is measured again next time
        save(found)
    return found
