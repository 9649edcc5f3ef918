"""Baseline service: a FastAPI route that commits one row and does nothing else."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from pydantic import BaseModel

URL = "MULTIPLAY_BARE_ROUTE"  # environment variable: the URL of the database
rows = sa.Table(
    "bare_rows",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)


class Row(BaseModel):
    """Body of a request: the text of the row."""

    text: str


def engine_at(url: str) -> sa.Engine:
    """Return an engine with the same durability settings as studies."""
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": 30})

        @sa.event.listens_for(engine, "connect")
        def durable(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

        return engine
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), pool_size=20)


def app_from_environment() -> FastAPI:
    """Return the application of one worker process."""
    engine = engine_at(os.environ[URL])

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.post("/rows")
    def add(row: Row) -> dict[str, int]:
        with engine.begin() as connection:
            added = connection.execute(rows.insert().values(text=row.text))
            key = added.inserted_primary_key
        return {"id": 0 if key is None else key[0]}

    return app
