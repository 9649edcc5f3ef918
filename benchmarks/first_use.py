"""First use of the library in a new process: seconds of imports, calls and compilation.

``startup`` runs it. It imports no other package before the measurement starts.
"""

import time
from typing import Any


def first_use() -> dict[str, Any]:
    """Return the seconds of the import, of every first use, and of compiling every kernel."""
    stages: dict[str, float] = {}
    started = time.perf_counter()

    def done(stage: str) -> None:
        nonlocal started
        stages[stage] = time.perf_counter() - started
        started = time.perf_counter()

    import multiplay

    done("import multiplay")
    from numba.core import event  # type: ignore[attr-defined,unused-ignore]

    from multiplay.experiments import paper

    done("import multiplay.experiments.paper")
    environment = paper.environments(60, 2, seed=0)["stochastic"]
    with event.install_recorder("numba:compile") as recorder:
        for name, policy in paper.POLICIES.items():
            multiplay.simulate(paper.PLANS, environment, {name: policy}, horizon=60, trials=2)
            done(f"simulate {name}")
        learner = multiplay.Learner(paper.PLANS, multiplay.GenLBINFV(horizon=60))
        play = learner.ask()
        learner.tell(play.id, [[0.5] * units for units in play.action.tolist()])
        play = learner.ask()
        learner.tell(play.id, [0.5 * units for units in play.action.tolist()])
        done("Learner ask + tell")
    return {"stages": stages, "kernels": own_times(recorder.buffer)}


def own_times(events: list[tuple[float, Any]]) -> dict[str, float]:
    """Add up the seconds of compiling each kernel, without those of the kernels it calls.

    Functions of numba that a kernel compiles count for the kernel.
    """
    running: list[str] = []
    own: dict[str, float] = {}
    last = 0.0
    for moment, happened in events:
        if running:
            own[running[-1]] = own.get(running[-1], 0.0) + moment - last
        if happened.is_start:
            function = happened.data["dispatcher"].py_func
            ours = function.__module__.startswith("multiplay.") or not running
            name = f"{function.__module__.removeprefix('multiplay.kernels.')}.{function.__name__}"
            running.append(name if ours else running[-1])
        else:
            running.pop()
        last = moment
    return own
