# SPDX-License-Identifier: BSD-3-Clause
"""Manifests for Kubernetes: what they ask of a node, and that Kubernetes' own schema takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planebench.cli.app import app
from planebench.model.errors import UsageError

SCHEMA_VERSION = "1.30"


def printed(*words: str) -> Any:
    done = CliRunner().invoke(app, ["kube", "manifest", *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return yaml.safe_load(done.output)


EVERYTHING = (
    *("--name", "night", "--image", "lab/planebench:1", "--cpus", "6", "--memory", "8Gi", "--hugepages", "2Gi"),
    *("--device", "intel.com/e810=2", "--capability", "SYS_NICE,NET_ADMIN", "--node", "rack3", "--claim", "results"),
    *("--testbed", "rack3-a", "--time-limit", "2h", "--", "run", "conext19", "--switch", "planed,ovs-dpdk"),
)


def test_a_job_has_whole_cpus_of_its_own_and_is_not_repeated() -> None:
    job = printed(*EVERYTHING)
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == ("batch/v1", "Job", "night")
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 7200)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["run", "conext19", "--switch", "planed,ovs-dpdk"]
    assert container["resources"] == {
        "limits": {"cpu": "6", "memory": "8Gi", "hugepages-2Mi": "2Gi", "intel.com/e810": "2"}
    }
    assert container["securityContext"]["capabilities"] == {"add": ["SYS_NICE", "NET_ADMIN"]}
    assert container["env"] == [{"name": "PLANEBENCH_TESTBED", "value": "rack3-a"}]
    assert pod["volumes"] == [{"name": "runs", "persistentVolumeClaim": {"claimName": "results"}}]
    assert (pod["nodeSelector"], pod["restartPolicy"]) == ({"kubernetes.io/hostname": "rack3"}, "Never")


def test_the_pod_is_what_the_job_starts() -> None:
    """But for the name of its node, which podman does not know."""
    job, pod = (printed("--kind", kind)["spec"] for kind in ("job", "pod"))
    (in_job,), (in_pod,) = job["template"]["spec"]["containers"], pod["containers"]
    assert in_job.pop("env")[0]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert in_pod.pop("env") == [] and in_pod["args"] == ["run", "quick"]
    assert pod == job["template"]["spec"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--kind", "deployment"), 'unknown kind of manifest "deployment"'),
        (("--name", "Night run"), "lower-case letters"),
        (("--cpus", "1"), "a core each"),
        (("--memory", "4GB"), '--memory "4GB" is not a size'),
        (("--hugepages", "0"), '--hugepages "0" is not a size'),
        (("--device", "e810"), "intel.com/e810=2"),
        (("--capability", "cap sys_nice"), "SYS_NICE"),
        (("--folder", "runs"), "absolute path"),
        (("--time-limit", "soon"), "20m"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused(words: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        printed(*words)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("words", [(), EVERYTHING, ("--kind", "pod")])
def test_the_schema_of_kubernetes_takes_it(words: tuple[str, ...], tmp_path: Path) -> None:
    """make image-check installs the schemas: 22 MB."""
    schemas = pytest.importorskip("kubernetes_validate")
    schemas.validate(printed(*words), SCHEMA_VERSION, strict=True)
    wrong = printed(*words)
    wrong["spec"]["restartpolicy"] = "Never"
    with pytest.raises(schemas.ValidationError):
        schemas.validate(wrong, SCHEMA_VERSION, strict=True)
