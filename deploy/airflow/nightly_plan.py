"""An Airflow DAG that asks a study for the plan of every day."""

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task

import multiplay as mp


@dag(
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 5, "retry_delay": timedelta(minutes=2)},
)
def nightly_plan() -> None:
    """Ask for the plan of the day of the run."""

    @task
    def ask(ds: str | None = None) -> dict[str, int]:
        """Return the plan of the day ``ds``, which Airflow passes.

        The day is the key of the play: a task that is repeated, after an error or by hand, gets the
        same plan, and the study gets no second play.
        """
        url, key = os.environ["MULTIPLAY_URL"], os.environ["MULTIPLAY_KEY"]
        with mp.connect(url, key=key, study=os.environ["MULTIPLAY_STUDY"]) as study:
            return study.ask(key=ds).plan

    ask()


nightly_plan()
