"""Group data: public data sets, which are fetched on request and kept on disk."""

import gzip
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.request import urlopen

import typer

from multiplay._support.atomic_files import write_whole
from multiplay.errors import InvalidInput

HOST, SECONDS = "https://raw.githubusercontent.com", 60.0
ZONES = (
    *("east-1a", "east-1c", "east-1d", "east-1f", "east-2a", "east-2b"),
    *("west-2a", "west-2b", "west-2c"),
)


class DataSet(NamedTuple):
    """A public data set: the repository that has it, and its files by their names here."""

    about: str
    repository: str
    files: dict[str, str]


SETS = {
    "spot": DataSet(
        "capacity for spot nodes in nine zones; the source states no licence",
        "skypilot-org/spot-traces",
        {
            f"us-{zone}_v100_1.json": f"availability/1-node/aws-02-15-2023/us-{zone}_v100_1.json"
            for zone in ZONES
        },
    ),
    "nodes": DataSet(
        "how many of 16 spot nodes three zones have; the source states no licence",
        "skypilot-org/spot-traces",
        {
            f"us-{zone}_v100_1.json": f"availability/16-node/aws-08-27-2023/us-{zone}_v100_1.json"
            for zone in ("east-2b", "west-2a", "west-2c")
        },
    ),
    "freight": DataSet(
        "bills of a public health supply chain, published by USAID; check before you ship it",
        "Hitesh-Nimbalkar/Shipment_Pricing_EDA",
        {"scms.csv": "Data/SCMS_Delivery_History_Dataset.csv"},
    ),
    "emails": DataSet(
        "a randomised e-mail campaign (MineThatData); the source states no licence",
        "carlosquintanillaa/Datasets",
        {"hillstrom.csv": "hillstrom.csv"},
    ),
}

data = typer.Typer(no_args_is_help=True, help="Fetch the public data of the page on real data.")


def folder_of(name: str) -> Path:
    """Return the folder in which the files of a data set are kept."""
    if name not in SETS:
        hint = "Use multiplay data fetch --help for what they are."
        raise InvalidInput("name", f"one of {', '.join(SETS)}", name, hint)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "multiplay" / "data" / name


def files_of(name: str) -> list[Path]:
    """Return the files of a data set, in order; raise ``InvalidInput`` if they were not fetched."""
    paths = [folder_of(name) / file for file in SETS[name].files]
    if missing := [path.name for path in paths if not path.is_file()]:
        hint = f"Run multiplay data fetch {name}, with --from FOLDER for a copy on disk."
        raise InvalidInput("name", f"the files of {name}", f"no {missing[0]}", hint)
    return paths


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="spot, nodes, freight or emails.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder with a copy, in place of the network.")
    ] = None,
) -> None:
    """Fetch a public data set, and keep it on disk.

    Nothing is fetched that is there already. The project does not ship the data: read what the
    source says about their use.

    Examples:

        multiplay data fetch spot

        multiplay data fetch emails --from downloads
    """
    folder = folder_of(name)
    found = SETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    for file, place in found.files.items():
        path = folder / file
        if source is None and path.is_file():
            continue
        content = _downloaded(name, found, place) if source is None else _copied(source, name, file)
        write_whole(path, partial(_write, content))
    typer.echo(f"{name}: {found.about}")
    typer.echo(f"{len(found.files)} files in {folder}")


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _downloaded(name: str, found: DataSet, place: str) -> bytes:
    """Return a file of the repository."""
    url = f"{HOST}/{found.repository}/HEAD/{place}"
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
    except OSError as error:  # no network, or no such file
        hint = f"Try again later, or fetch it elsewhere: multiplay data fetch {name} --from FOLDER."
        raise InvalidInput("name", f"a network that reaches {url}", str(error), hint) from None
    return content


def _copied(source: Path, name: str, file: str) -> bytes:
    """Return a file of a folder, or of its folder of this name; it may be compressed by gzip."""
    for path in _places(source, name, file):
        if path.is_file():
            content = path.read_bytes()
            return gzip.decompress(content) if path.suffix == ".gz" else content
    hint = f"Files of {name}: {', '.join(SETS[name].files)}; .gz may follow."
    raise InvalidInput("from", f"a folder with {file}", str(source), hint)


def _places(source: Path, name: str, file: str) -> Iterable[Path]:
    original = SETS[name].files[file]
    for place in (file, f"{name}/{file}", original, original.rpartition("/")[2]):
        yield source / place
        yield source / f"{place}.gz"
