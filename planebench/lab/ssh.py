# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on a host without Slurm, behind ssh: each is a process there that waits for the lock of the testbed.

Locks are flock(1)'s: they belong to processes and end with them, also by kill -9 or a reboot, so that none is ever
left behind. A person reserves the testbed with the same lock: ``flock /run/lock/planebench bash``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from planebench.host.link import explained, program_there, ssh_command
from planebench.host.process import stretched
from planebench.lab.job import ENDED_FILE, JOB_FILE, LOCK_FILE, LOG_FILE, RUNS, Job, Queue, Queued
from planebench.model.errors import StartError, StoreError
from planebench.store.codec import to_json

TIMEOUT_S = 600.0
"""To fetch the runs of a job over a slow line."""
FOLDER = ".local/state/planebench/jobs"
"""The folder of the jobs of a host, below the home of the user there."""
QUEUED_FILE = "queued"
"""Locked while the process of a job lives; :data:`LOCK_FILE` while it measures."""
_HELD = 75

_SUBMIT = """set -e; umask 077; mkdir -p {folder}; cd {folder}
cat > .new; mv .new {job}
exec 9> {queued}
flock --wait 5 --conflict-exit-code {held} 9 || {{ [ $? = {held} ]; exit; }}
setsid -f sh -c {command} > /dev/null 2>&1 < /dev/null"""
"""The process of the job inherits the lock: it is held before the submission ends, so that the next look finds it."""
_COMMAND = (
    "echo $$ > pid; rm -f {ended}; "
    'exec flock --no-fork {lock} timeout --kill-after=60 {limit} {program} machine run-job "$PWD" >> {log} 2>&1'
)
_STATE = """cd {folder} 2> /dev/null || exit 0
held() {{ [ -e "$1" ] && {{ flock --shared --nonblock --conflict-exit-code {held} "$1" true; [ $? = {held} ]; }}; }}
for job in {tickets}; do
if held "$job/{queued}"; then if held "$job/{lock}"; then echo "$job running"; else echo "$job pending"; fi; fi
done"""
_CANCEL = """cd {folder} 2> /dev/null || exit 0
flock --shared --nonblock --conflict-exit-code {held} {queued} true; [ $? = {held} ] || exit 0
kill -TERM "$(cat pid)" """
_FETCH = "cd {folder} 2> /dev/null || exit 0; tar -cf - {job} $(ls -d {files} 2> /dev/null)"


class Ssh:
    """The jobs of hosts without Slurm. All methods raise StartError if a host cannot be reached."""

    poll_s = 60.0  # each look is a login on a testbed that measures

    def submit(self, job: Job, folder: Path) -> None:
        """Send a job to its host and start what waits for the testbed; nothing if the job is there already."""
        command = _COMMAND.format(
            ended=ENDED_FILE,
            lock=shlex.quote(job.place.lock),
            limit=job.limit_s,
            program=program_there(),
            log=LOG_FILE,
        )
        there = {"folder": _folder(job), "job": JOB_FILE, "queued": QUEUED_FILE, "held": _HELD}
        _run(job.place.ssh, _SUBMIT.format(**there, command=shlex.quote(command)), to_json(job))

    def state(self, jobs: Collection[Job]) -> Queue:
        """Return those of ``jobs`` whose process lives on their host."""
        (host,) = {job.place.ssh for job in jobs}
        tickets = shlex.join(job.ticket for job in jobs)
        script = _STATE.format(folder=FOLDER, queued=QUEUED_FILE, lock=LOCK_FILE, held=_HELD, tickets=tickets)
        found: dict[str, Queued] = {}
        for line in _run(host, script).decode(errors="replace").splitlines():
            ticket, _, state = line.partition(" ")
            found[ticket] = Queued("running" if state == "running" else "pending", host or "")
        return Queue(found)

    def cancel(self, job: Job) -> None:
        """End a job in order."""
        _run(job.place.ssh, _CANCEL.format(folder=_folder(job), queued=QUEUED_FILE, held=_HELD))

    def fetch(self, job: Job, folder: Path) -> None:
        """Copy runs, log and end of a job; a copy of before is replaced whole, so that no run is half there."""
        files = f"{RUNS} {LOG_FILE} {ENDED_FILE}"
        data = _run(job.place.ssh, _FETCH.format(folder=_folder(job), job=JOB_FILE, files=files))
        if not data:  # it never came there
            return
        copy = folder / f".fetched.{os.getpid()}"
        try:
            copy.mkdir(parents=True)
            subprocess.run(["tar", "-xf", "-", "-C", copy], input=data, capture_output=True, check=True)
            for new, old in ((copy / name, folder / name) for name in files.split()):
                if new.exists():
                    if old.is_dir():
                        shutil.rmtree(old)
                    new.replace(old)
        except (OSError, subprocess.SubprocessError) as error:
            raise StoreError(f"cannot store the runs of job {job.name} in {folder}: {error}") from error
        finally:
            shutil.rmtree(copy, ignore_errors=True)


def _folder(job: Job) -> str:
    return shlex.quote(f"{FOLDER}/{job.ticket}")


def _run(host: str | None, script: str, stdin: bytes = b"") -> bytes:
    """Run a script of sh on a host; return its standard output. Raises StartError."""
    command = ssh_command(host or "", f"exec sh -c {shlex.quote(script)}")
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=stretched(TIMEOUT_S))
    except (OSError, subprocess.SubprocessError) as error:
        raise StartError(f"host {host}: {error}") from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise StartError(f"host {host}: {explained(words, host or '')}")
    return done.stdout
