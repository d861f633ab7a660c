# SPDX-License-Identifier: BSD-3-Clause
"""Kubernetes manifests of a run: a Job, or the Pod that it starts. No cluster is asked.

All limits are requests too, and CPUs are whole: the pod is of the class Guaranteed, and a kubelet with the static
policy of its CPU manager gives it CPUs of its own. Hugepages need no volume, because the switches and the tester take
theirs by memfd.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.quantity import SECONDS, parse_number

KINDS = ("job", "pod")
CPUS_MIN = 2
"""A switch and the tester poll on a core each."""
RUNS = "/runs"
"""Folder of the runs in the image."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SIZE = re.compile(r"[1-9][0-9]*(Mi|Gi)")
_DEVICE = re.compile(r"([a-z0-9.-]+/[A-Za-z0-9_.-]+)=([1-9][0-9]*)")
_CAPABILITY = re.compile(r"[A-Z][A-Z_]*")


@dataclass(frozen=True, slots=True)
class Request:
    """The values of a manifest. ``arguments``: a command of planebench; sizes are as ``512Mi``, ``4Gi``."""

    arguments: tuple[str, ...]
    kind: str
    name: str
    image: str
    cpus: int
    memory: str
    hugepages: str | None
    devices: tuple[str, ...]
    """Resources of device plugins: ``RESOURCE=N``."""
    capabilities: tuple[str, ...]
    node: str | None
    folder: str
    claim: str | None
    testbed: str | None
    time_limit: str | None


def manifest_text(request: Request) -> str:
    """Return the manifest as YAML. Raises UsageError for a value that Kubernetes would refuse."""
    if request.kind not in KINDS:
        raise unknown("kind of manifest", request.kind, KINDS)
    _check(request)
    document = _job(request) if request.kind == "job" else _pod(request)
    return yaml.safe_dump(document, sort_keys=False, width=120)


def _check(request: Request) -> None:
    if not _NAME.fullmatch(request.name):
        raise UsageError(f'--name "{request.name}": use at most 63 lower-case letters, digits and hyphens')
    if request.cpus < CPUS_MIN:
        raise UsageError(f"--cpus {request.cpus}: switch and tester need a core each; use {CPUS_MIN} or more")
    for option, size in (("memory", request.memory), ("hugepages", request.hugepages)):
        if size is not None and not _SIZE.fullmatch(size):
            raise UsageError(f'--{option} "{size}" is not a size: write it as 512Mi or 4Gi')
    for device in request.devices:
        if not _DEVICE.fullmatch(device):
            raise UsageError(f'--device "{device}": write the resource of a device plugin as intel.com/e810=2')
    for capability in request.capabilities:
        if not _CAPABILITY.fullmatch(capability):
            raise UsageError(f'--capability "{capability}": write it as SYS_NICE')
    if not request.folder.startswith("/"):
        raise UsageError(f'--folder "{request.folder}" is not an absolute path')


def _job(request: Request) -> dict[str, Any]:
    pod = _pod(request)
    limit = {} if request.time_limit is None else {"activeDeadlineSeconds": _seconds(request.time_limit)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": pod["metadata"],
        "spec": {
            "backoffLimit": 0,  # a run that failed is not repeated, but resumed by `run --resume`
            **limit,
            "template": {"metadata": {"labels": dict(pod["metadata"]["labels"])}, "spec": pod["spec"]},
        },
    }


def _pod(request: Request) -> dict[str, Any]:
    selector = {} if request.node is None else {"nodeSelector": {"kubernetes.io/hostname": request.node}}
    where = (
        {"persistentVolumeClaim": {"claimName": request.claim}}
        if request.claim is not None
        else {"hostPath": {"path": request.folder, "type": "DirectoryOrCreate"}}
    )
    container = {
        "name": "planebench",
        "image": request.image,
        "imagePullPolicy": "IfNotPresent",
        "args": list(request.arguments),
        "env": _environment(request),
        "resources": {"limits": _limits(request)},
        "securityContext": {"capabilities": {"add": list(request.capabilities)}},
        "volumeMounts": [{"name": "runs", "mountPath": RUNS}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": request.name, "labels": {"app.kubernetes.io/name": "planebench"}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            **selector,
            "containers": [container],
            "volumes": [{"name": "runs", **where}],
        },
    }


def _environment(request: Request) -> list[dict[str, Any]]:
    """Return the variable with the name of the testbed: the host name of a job's pods is another one in each run.

    podman, which takes pods, knows no name of a node.
    """
    if request.testbed is not None:
        return [{"name": "PLANEBENCH_TESTBED", "value": request.testbed}]
    node = {"name": "PLANEBENCH_TESTBED", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return [node] if request.kind == "job" else []


def _limits(request: Request) -> dict[str, str]:
    found = {"cpu": str(request.cpus), "memory": request.memory}
    if request.hugepages is not None:
        found["hugepages-2Mi"] = request.hugepages
    return found | {resource: count for resource, _, count in (device.partition("=") for device in request.devices)}


def _seconds(text: str) -> int:
    seconds = parse_number(text, SECONDS)
    if not seconds:
        raise UsageError(f'--time-limit "{text}" is not a time: write it as 90s, 20m or 2h')
    return round(seconds)
