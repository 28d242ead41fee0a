"""Options of execution: where and in how many processes work is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from jostle.core.options import Role, option


@dataclass(frozen=True, kw_only=True, eq=False)
class JobOptions:
    """Execution"""

    jobs: int | None = field(
        default=None,
        metadata=option(
            "Number of videos processed at once; default: one per core.",
            Role.SESSION,
            more="The result does not depend on it.",
            flag="--jobs",
            short="-j",
            variable="JOSTLE_NUM_WORKERS",
            least=1,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingOptions:
    """Execution"""

    model_processes: int | None = field(
        default=None,
        metadata=option(
            "Number of processes that hold the model; default: one per GPU, and 0 on a CPU, where every worker holds "
            "it.",
            Role.SESSION,
            more="A model that is an object stays in this process, and others send it their frames; it has to be "
            "picklable only if this number is given. The result does not depend on it.",
            metavar="N",
            least=0,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExecutionOptions(JobOptions, ServingOptions):
    """Execution"""

    engine: str = field(
        default="local",
        metadata=option(
            "Execution engine: local or ray.",
            Role.SESSION,
            more="That is, processes of this machine or a cluster.",
            metavar="E",
        ),
    )
