# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``planebench kube``. What they print is in planebench.running.kube."""

from __future__ import annotations

from typing import Annotated

import typer

from planebench import __version__
from planebench.cli.complete import one_of
from planebench.cli.options import examples, option

kube_app = typer.Typer(help="Runs on Kubernetes.")


@kube_app.callback()
def _group() -> None:
    """Runs on Kubernetes."""


@kube_app.command(
    "manifest",
    epilog=examples(
        "planebench kube manifest -- run quick --switch planed,ovs-dpdk",
        "planebench kube manifest --cpus 6 --hugepages 9Gi --node rack3 --claim results -- run conext19",
        "planebench kube manifest --kind pod --folder /tmp/runs > pod.yaml",
    ),
)
def manifest(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] COMMAND", help="Command of planebench, with its options (default: run quick)."),
    ] = None,
    kind: Annotated[
        str, option("--kind", "job, or pod: what the job starts, also for podman.", "KIND", one_of(("job", "pod")))
    ] = "job",
    name: Annotated[str, option("--name", "Name of the job or pod.", "NAME")] = "planebench",
    image: Annotated[str, option("--image", "Image of the bench.", "IMAGE")] = f"localhost/planebench:{__version__}",
    cpus: Annotated[int, option("--cpus", "Number of CPUs, whole ones of the container alone.", "N")] = 4,
    memory: Annotated[str, option("--memory", "Memory, without hugepages.", "SIZE")] = "4Gi",
    hugepages: Annotated[str | None, option("--hugepages", "Hugepages of 2 MiB, e.g. 1Gi.", "SIZE")] = None,
    device: Annotated[
        list[str] | None,
        option("--device", "Devices of a device plugin, e.g. intel.com/e810=2. May be repeated.", "RESOURCE=N"),
    ] = None,
    capability: Annotated[
        str, option("--capability", "Capabilities; veth needs NET_ADMIN,NET_RAW,SYS_ADMIN too.", "A,B")
    ] = "SYS_NICE,IPC_LOCK",
    node: Annotated[str | None, option("--node", "Name of the node (default: any).", "NODE")] = None,
    folder: Annotated[str, option("--folder", "Folder of the node for the runs.", "PATH")] = "/var/lib/planebench/runs",
    claim: Annotated[
        str | None, option("--claim", "Persistent volume claim for the runs, instead of a folder.", "NAME")
    ] = None,
    testbed: Annotated[
        str | None,
        option("--testbed", "Name of the testbed (default: the node of the job, the name of the pod).", "NAME"),
    ] = None,
    time_limit: Annotated[str | None, option("--time-limit", "The job is ended after this time.", "TIME")] = None,
) -> None:
    """Print the manifest of a run for kubectl or podman. No cluster is asked, and nothing is started."""
    from planebench.running.kube import Request, manifest_text

    request = Request(
        arguments=tuple(arguments or ("run", "quick")),
        kind=kind,
        name=name,
        image=image,
        cpus=cpus,
        memory=memory,
        hugepages=hugepages,
        devices=tuple(device or ()),
        capabilities=tuple(filter(None, capability.split(","))),
        node=node,
        folder=folder,
        claim=claim,
        testbed=testbed,
        time_limit=time_limit,
    )
    typer.echo(manifest_text(request), nl=False)
