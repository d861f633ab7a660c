# SPDX-License-Identifier: BSD-3-Clause
"""The Ansible role: what it names exists, and, in make image-check, its second run changes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging_rig import LIMIT_S, ROOT, System, inside, run, wheel

ANSIBLE = ROOT / "ansible"
ROLE = ANSIBLE / "roles" / "planebench"
DEFAULTS: dict[str, Any] = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
TASKS: list[dict[str, Any]] = yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())


def test_every_variable_of_the_role_has_a_default() -> None:
    texts = "".join(path.read_text() for folder in ("tasks", "templates") for path in (ROLE / folder).iterdir())
    registered = {task["register"] for task in TASKS if "register" in task} | {"planebench_from", "planebench_there"}
    assert set(re.findall(r"\bplanebench_\w+", texts)) == DEFAULTS.keys() | registered


def test_handlers_and_templates_exist() -> None:
    handlers = {it["name"] for it in yaml.safe_load((ROLE / "handlers" / "main.yml").read_text())}
    assert {task["notify"] for task in TASKS if "notify" in task} == handlers
    sources = {task["ansible.builtin.template"]["src"] for task in TASKS if "ansible.builtin.template" in task}
    assert sources == {path.name for path in (ROLE / "templates").iterdir()}


def test_the_role_installs_what_the_image_has() -> None:
    """Beside tools that a container lacks, and a machine has."""
    script = (ROOT / "scripts" / "bench_image.sh").read_text()
    (words,) = re.findall(r"^packages=\(\n(.*?)^\)", script, re.MULTILINE | re.DOTALL)
    assert set(DEFAULTS["planebench_packages"]) < set(words.split())


@pytest.mark.lab
@pytest.mark.root
@pytest.mark.timeout(LIMIT_S)
def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    """On a testbed that is a container: there is no systemd to start the service, and no GRUB.

    Four runs are of Debian's Ansible, the oldest that the role takes: the first, where nothing is there yet, and the
    third are dry. The last one is of the newest.
    """
    root = tmp_path / "root"
    run(["cp", "-a", str(System("bookworm", ("ansible-core", "python3-apt")).make()), str(root)])
    play = (
        "ANSIBLE_LOCAL_TEMP=/tmp/l ansible-playbook -i localhost, -c local /run/ansible/testbed.yml "
        f"-e ansible_become=false -e planebench_wheel=/run/dist/{wheel().name} "
        "-e planebench_kernel_arguments=isolcpus=2-5"
    )
    done = inside(
        root,
        f"{play} --check\n{play}\n{play} --check --diff\n{play}\n"
        f"python3 -m venv /tmp/a; /tmp/a/bin/pip install --quiet ansible-core; PATH=/tmp/a/bin:$PATH\n{play}\n"
        "planebench --version; cat /etc/security/limits.d/planebench.conf /etc/systemd/system/planebench-tune.service",
        writable=True,
        shown={"/ansible": ANSIBLE},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    dry, first, *more = re.findall(r"^localhost .*changed=(\d+).*failed=0", done.stdout, re.MULTILINE)
    assert int(dry) > 5 and int(first) > 5 and more == ["0"] * 3, done.stdout
    assert "@planebench - nice -20" in done.stdout
    assert "ExecStart=/opt/planebench/bin/planebench doctor --fix" in done.stdout
