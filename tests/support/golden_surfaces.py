"""Golden lines of the service: HTTP, the client, the OpenAPI document; and of the command line."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import golden_verbs as verbs
from asgi import Client, client_of
from commands import called
from golden_text import Lines
from serving import connected, serving
from typer.main import get_command, get_group

import multiplay as mp
from multiplay.cli import app
from multiplay.service.api.openapi import document
from multiplay.service.app import create_app
from multiplay.service.settings import Settings
from multiplay.storage import store_at
from multiplay.studies import wire

STUDY = "/v1/studies/lanes"
NOT_EQUAL = ("instance", "urn:request")  # fields of a response that are random

# ------------------------------------------------------------ HTTP


class Sender:
    """Sends requests, and writes a line for each response."""

    def __init__(self, lines: Lines, client: Client) -> None:
        self.lines, self.client, self.count = lines, client, 0

    def __call__(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Send a request with an idempotency key; return the content of the response."""
        self.count += 1
        headers = {"Idempotency-Key": key or f"request {self.count}".replace(" ", "-")}
        sent = {} if body is None else {"json": body}
        found = self.client.request(method, path, headers=headers, **sent)
        is_json = "json" in found.headers.get("content-type", "")
        content = found.json() if is_json else found.text
        if isinstance(content, dict):
            content = {name: one for name, one in content.items() if name not in NOT_EQUAL}
        self.lines.add(f"{method} {path.removeprefix(STUDY)}", [found.status_code, content])
        return content

    def post(self, verb: str, body: Any = None, key: str | None = None) -> Any:
        """Send a request to the study."""
        return self("POST", f"{STUDY}/{verb}", body, key)


def of_http() -> Lines:
    """Return the responses to requests of all operations, and the journal that they write."""
    lines, place = Lines(), "memory://golden-http"
    with client_of(create_app(Settings(store=place))) as client:
        send = Sender(lines, client)
        _create(send)
        _play(send)
        _change(send)
        _read(send)
        _options(send)
        with mp.Study.open("lanes", store=store_at(place)) as study:
            verbs.of_journal(lines, study)
        for path in ("rename", "copy"):
            send.post(path, {"name": "lanes"}, f"{path}-lanes")
        send.post("copy", {"name": "other"})
        send("DELETE", "/v1/studies/other")
        send("DELETE", "/v1/studies/other")
    return lines


def _create(send: Sender) -> None:
    new: dict[str, Any] = {
        "name": "lanes",
        "actions": wire.to_plain("actions", verbs.lanes()),
        "policy": {"type": "GenCTS"},
        "loss_range": [0, 250],
        "seed": 7,
        "words": {"currency": "EUR"},
        "constraints": [{"type": "SwitchingCost", "cost": 15.0}],
    }
    send("GET", "/v1/key")
    for body in (new, new, new | {"seed": 8}):
        send("POST", "/v1/studies", body, "create")
    send("POST", "/v1/studies", new)
    send("POST", "/v1/studies", {"name": "wrong", "actions": {"type": "Budget"}})
    send("GET", "/v1/studies")
    send("GET", STUDY)
    send("GET", "/v1/studies/nowhere")


def _play(send: Sender) -> None:
    for day in range(12):
        play = send.post("ask", {"at": verbs.AT + day, "key": f"2026-10-{day + 1:02}"})
        told = {"losses": verbs.costs(play["id"], play["plan"]), "at": verbs.AT + day + 0.5}
        send.post(f"plays/{play['id']}/tell", told)
    at = verbs.AT + 100
    body: Any
    for body in ({"at": at}, {"at": at}, {"at": at, "exclude": ["Lyon->south"]}):
        send.post("ask", body, "ask")
    limits = {"at_most": {"Lyon->north": 1}, "exclude": [], "fixed": {"Lille->north": 3}}
    other = wire.to_plain("actions", verbs.lanes((1, 4), (4, 1)))
    keyed = {"at": at, "key": "Monday"}
    for body in (
        limits | keyed,
        limits | keyed,
        keyed,
        keyed | {"replace": True},
        {"actions": other, "at": at},
        {"at_most": {"nowhere": 1}, "at": at},
        {"at_most": {"Lyon->north": -1}},
        {"at": "Monday"},
        {"ahead": [{"type": "Set"}], "at": at},
        {"unknown": 1},
    ):
        send.post("ask", body)
    send("GET", f"{STUDY}/plays/Monday/why")
    send("GET", f"{STUDY}/plays/1/why")
    send("GET", f"{STUDY}/pending")
    one = send("GET", f"{STUDY}/plays/13")
    losses = verbs.costs(13, one["plan"])
    first = {arm: units[:1] for arm, units in losses.items()}
    part = {"losses": first, "final": False, "at": at}
    for body in (part, part, part | {"losses": {}}):
        send.post("plays/13/tell", body, "part")
    for wrong in ({"nowhere": [1.0]}, {"Lille->north": [900.0]}, {"Lille->north": "many"}, 7):
        send.post("plays/13/tell", {"losses": wrong, "at": at})
    for key in ("close", "close", "close-again"):
        send.post("plays/13/close", {"at": at}, key)
    for key in ("cancel", "cancel", "cancel-again"):
        send.post("plays/Monday/cancel", {"at": at}, key)
    send.post("plays/999/cancel", {"at": at})
    for older in (0, 0, -1):
        send.post("expire", {"older_than": older, "at": at + 1}, f"expire{older}")


def _change(send: Sender) -> None:
    at, plan = verbs.AT + 200, {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    body: Any
    external = {"plan": plan, "losses": verbs.costs(90, plan), "key": "truck", "at": at}
    for body in (external, external, external | {"losses": verbs.costs(91, plan)}):
        send.post("learn", body)
    table = {name: verbs.table()[name] for name in ("arm", "round", "loss")}
    bad = table | {"loss": ["many", *table["loss"][1:]]}
    for path, body in (
        ("check-table", table),
        ("check-table", bad),
        ("learn-table", table | {"key": "table", "at": at}),
        ("learn-table", table | {"key": "table", "at": at}),
        ("learn-table", bad | {"at": at}),
        ("learn-table", bad | {"at": at, "skip_bad": True}),
        ("forget", {"arm": "Lyon->north", "before": 3, "at": at}),
        ("forget", {"before": 999, "at": at}),
        ("unforget", {"arm": "Lyon->north", "since": 0, "at": at}),
        ("unforget", {"arm": "nowhere", "at": at}),
        ("constraints", {"constraint": wire.of_constraint(verbs.NEW_PROMISE), "at": at}),
        ("constraints", {"constraint": {"type": "SwitchingCost", "cost": 3}, "at": at}),
        ("end-constraint", {"name": "nothing", "at": at}),
        ("notes", {"text": "Strike in Lyon.", "at": at}),
        ("notes", {"text": " ", "at": at}),
    ):
        send.post(path, body)
    told = send("GET", f"{STUDY}/plays/2")
    right = {"losses": verbs.costs(2, told["plan"], 4.0), "at": at}
    for body in (right, right, right | {"losses": {}}):
        send.post("plays/2/correct", body, "correct")
    for key in ("retract", "retract", "retract-again"):
        send.post("plays/3/retract", {"at": at}, key)
    words = {"currency": "USD", "unit": "truck", "at": at}
    for path, body in (
        ("arm-features", {"features": {"km": {"Lyon->north": 3}}, "at": at}),
        ("words", words),
        ("words", {"unit": "", "at": at}),
        ("versus", {"rule": {"type": "InProportion"}, "at": at}),
        ("versus", {"rule": {"type": "Nothing"}, "at": at}),
    ):
        send("PUT", f"{STUDY}/{path}", body)


def _read(send: Sender) -> None:
    for path in (
        *("", "/pending", "/plays?limit=3", "/plays?plans=true&limit=2", "/plays?external=true"),
        *("/plays/2", "/plays/999", "/arms", "/arms?level=2", "/effects"),
        *("/constraints", "/drift"),
    ):
        send("GET", f"{STUDY}{path}")
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    for verb, body in (
        ("arms", {"level": 0.5}),
        ("best", {}),
        ("best", {"fixed": {"Lyon->north": 7}}),
        ("expect", {"plan": plan, "level": 0.9}),
        ("expect", {"plan": {"Lyon->north": 9}}),
        ("savings", {"versus": {"type": "InProportion"}}),
        ("savings", {}),
        ("savings", {"learning": True}),
        ("verify", None),
    ):
        send.post(verb, body)


def _options(send: Sender) -> None:
    """Create studies with promises, a baseline and features, and use what they have."""
    usual = {"actions": wire.to_plain("actions", verbs.lanes()), "loss_range": [0, 250], "seed": 7}
    promise = wire.of_constraint(verbs.PROMISED[0])
    options: dict[str, dict[str, Any]] = {
        "promised": {"constraints": [promise]},
        "allowed": {"constraints": [wire.of_constraint(mp.Baseline(mp.InProportion(), 0.05))]},
        "featured": {
            "features": wire.to_plain("features", verbs.FEATURES),
            "arm_features": {"km": verbs.KM},
        },
    }
    for name, given in options.items():
        path = f"/v1/studies/{name}"
        send("POST", "/v1/studies", usual | given | {"name": name})
        for day in range(4):
            asked = {"at": verbs.AT + day}
            asked |= verbs.features_of(day) if name == "featured" else {}
            play = send("POST", f"{path}/ask", asked)
            told = {"losses": verbs.costs(play["id"], play["plan"]), "at": verbs.AT + day}
            send("POST", f"{path}/plays/{play['id']}/tell", told)
        send("GET", path)
    new: dict[str, Any] = {"constraint": wire.of_constraint(verbs.NEW_PROMISE), "key": "new"}
    at = {"at": verbs.AT + 9}
    for body in (
        new | at,
        new | at,
        {"constraint": promise, "key": "new"} | at,
        new | {"key": "2"},
    ):
        send("POST", "/v1/studies/promised/constraints", body)
    ahead = {"ahead": [usual["actions"]]} | at
    send("POST", "/v1/studies/promised/ask", ahead)
    send("GET", "/v1/studies/promised/plays/5/why")
    send("GET", "/v1/studies/promised/constraints")
    for name in ("new", "new", "nothing"):
        send("POST", "/v1/studies/promised/end-constraint", {"name": name, "key": "end"} | at)
    send("GET", "/v1/studies/allowed/constraints")
    km = {"features": {"km": {"Metz->north": 300}}, "key": "Metz"}
    for body in (km | at, km | at, km | {"features": {"km": {"Metz->north": 1}}} | at):
        send("PUT", "/v1/studies/featured/arm-features", body)
    for path in ("/effects", "/effects?by=arm", "/entries?limit=1", "/export?format=csv"):
        send("GET", f"/v1/studies/featured{path}")


# ------------------------------------------------------------ the client


def of_client(case: verbs.Case) -> Lines:
    """Return the lines of a study of a service. The ids of its requests are random."""
    lines = Lines()
    with serving(f"memory://golden-client-{case.name}") as url, connected(url) as service:
        study = service.create(case.name, case.actions(), **case.given())
        call = verbs.Caller(lines, case, study)
        for phase in verbs.PHASES:
            phase(call)
        lines.add("verify", study.verify())
    return lines


# ------------------------------------------------------------ OpenAPI


def of_document() -> Lines:
    """Return the OpenAPI document, a line for each operation and each schema."""
    lines, made = Lines(), document()
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            lines.add(f"{method} {path}", operation)
    for name, schema in made["components"]["schemas"].items():
        lines.add(f"schema {name}", schema)
    rest = {name: value for name, value in made.items() if name not in ("paths", "components")}
    lines.add("document", rest)
    return lines


def of_names() -> Lines:
    """Return the names and types of the OpenAPI document, without texts, limits and examples."""
    lines, made = Lines(), document()
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            asked = [one["name"] for one in operation.get("parameters", ())]
            body = operation.get("requestBody", {}).get("content", {})
            answers = {
                status: _type(next(iter(response["content"].values()))["schema"])
                for status, response in operation["responses"].items()
                if "content" in response and status.startswith("2")
            }
            sent = [_type(one["schema"]) for one in body.values()]
            lines.add(f"{method} {path}", {"asked": asked, "body": sent, "answers": answers})
    for name, schema in made["components"]["schemas"].items():
        lines.add(f"schema {name}", _type(schema))
    return lines


def _type(schema: Mapping[str, Any]) -> Any:
    """Return the names and types of a schema."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return [_type(one) for one in schema[choice]]
    if "properties" in schema:
        required = schema.get("required", ())
        return {
            name if name in required else f"{name}?": _type(one)
            for name, one in schema["properties"].items()
        }
    if schema.get("type") == "array" and "items" in schema:
        return {"list of": _type(schema["items"])}
    if isinstance(schema.get("additionalProperties"), dict):
        return {"values": _type(schema["additionalProperties"])}
    return schema.get("type", schema.get("enum", schema.get("const", "any")))


# ------------------------------------------------------------ the command line


def commands_with_json() -> set[str]:
    """Return the study commands that have the option --json."""
    study: Any = get_group(app).commands["study"]
    return {
        name
        for name, command in study.commands.items()
        if any("--json" in one.opts for one in command.params)
    }


class Shell:
    """Calls commands with --json, and writes a line for each."""

    def __init__(self, lines: Lines, folder: Path) -> None:
        self.lines, self.folder, self.used = lines, folder, set[str]()

    def __call__(self, command: str, *given: object) -> Any:
        """Call a command; return its answer."""
        self.used.add(command)
        done = called("study", command, *given, "--json", folder=self.folder)
        answer = json.loads(done.stdout) if done.stdout.strip() else None
        if command == "show" and answer is not None:
            del answer["at"]  # the present time
        said = done.stderr.replace(str(self.folder), "FOLDER").split("\n")
        found = {"code": done.returncode, "answer": answer}
        errors = " ".join(line.strip(" │╭╰─╮╯") for line in said).split()
        found |= {"errors": " ".join(errors)} if errors else {}
        text = json.dumps(found).replace(str(self.folder), "FOLDER")
        self.lines.add(command, json.loads(text))
        return answer

    def file(self, name: str, text: str) -> str:
        """Write a file; return its name."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


def of_commands(folder: Path) -> Lines:
    """Return what the study commands print as JSON, on several studies in one store."""
    lines = Lines()
    call = Shell(lines, folder)
    sides = "--supply", "Lyon=2,Lille=3", "--demand", "north=4,south=1"
    more = "--loss-range", "0,250", "--settings", call.file("seed.toml", "seed = 7\n")
    with mock.patch("typer.main.get_command", cache(get_command)):  # it takes as long as a command
        _commands(call, sides, more)
    missing = commands_with_json() - call.used
    assert not missing, f"commands without a golden answer: {missing}"
    return lines


def _commands(call: Shell, sides: tuple[str, ...], more: tuple[str, ...]) -> None:
    change = call.file(
        "change.toml", "seed = 7\n[[constraints]]\ntype = 'SwitchingCost'\ncost = 15\n"
    )
    call("create", "lanes", *sides, *more[:2], "--policy", "GenCTS", "--settings", change)
    call("create", "lanes", *sides, *more)
    call("create", "nothing")
    _commands_of_plays(call)
    _commands_of_options(call, sides, more)
    for command in ("pending", "arms", "drift", "verify", "accept", "show"):
        call(command, "lanes")
    call("plays", "lanes", "--last", "3")
    call("plays", "lanes", "--plan", "--last", "2")
    call("plays", "lanes", "--wide", "--last", "2", "--external")
    call("export", "lanes", "journal.jsonl")
    call("import", "again", "journal.jsonl")
    call("backup", "lanes", "copy.db")
    call("copy", "lanes", "--as", "twin")
    call("rename", "twin", "other")
    call("delete", "other", "--yes")
    call("delete", "lanes")
    call("list")
    call("show", "nowhere")


def _day(number: int) -> str:
    return f"2026-11-{number:02}T08:00+00:00"


def _told(play: Mapping[str, Any], more: float = 0.0) -> str:
    return json.dumps(verbs.costs(play["id"], play["plan"], more))


def _commands_of_plays(call: Shell) -> None:
    with mp.Study.open("lanes", store=call.folder / "multiplay.db") as study:
        for day in range(1, 12):
            play = study.ask(key=f"2026-11-{day:02}", at=verbs.AT + day * verbs.DAY)
            study.tell(play, verbs.costs(play.id, play.plan), at=verbs.AT + day * verbs.DAY)
    asked = call("ask", "lanes", "--key", "2026-11-12", "--at", _day(12))
    call("tell", "lanes", asked["id"], "--losses", _told(asked), "--at", _day(12))
    at = "--at", _day(13)
    limits = "--at-most", "Lyon->north=1", "--fixed", "Lille->north=3"
    call("ask", "lanes", "--key", "2026-11-13", *at, *limits, "--why")
    call("ask", "lanes", "--key", "2026-11-13", *at, *limits)
    call("ask", "lanes", "--key", "2026-11-13", *at)
    play = call("ask", "lanes", "--key", "2026-11-13", *at, "--replace")
    call("ask", "lanes", "--supply", "1,4", *at)
    call("ask", "lanes", "--fixed", "Lyon->north=9", *at)
    call("why", "lanes", "2026-11-13")
    call("why", "lanes", "1")
    call("tell", "lanes", "2026-11-13", "--losses", "{}", *at)
    call("tell", "lanes", "2026-11-13", "--losses", '{"nowhere": [1]}', *at)
    call("tell", "lanes", "2026-11-13", "--losses", '{"Lille->north": [90]}', "--part", *at)
    call("pending", "lanes")
    call("close", "lanes", "2026-11-13", *at)
    call("close", "lanes", "2026-11-13", *at)
    call("cancel", "lanes", str(play["id"] + 1), *at)
    call("cancel", "lanes", "99", *at)
    call("ask", "lanes", "--at", _day(2))
    call("expire", "lanes", "--older-than", "3d", *at)
    call("expire", "lanes", "--older-than", "soon", *at)
    call("correct", "lanes", "2", "--losses", '{"Lille->north": [90, 95, 99]}', *at)
    told = {"id": 3, "plan": {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}}
    call("correct", "lanes", "3", "--losses", _told(told, 5.0), *at)
    call("retract", "lanes", "4", *at)
    call("retract", "lanes", "4", *at)
    call("forget", "lanes", "--arm", "Lyon->north", "--before", "4", *at)
    call("forget", "lanes", "--before", "999", *at)
    call("unforget", "lanes", "--arm", "Lyon->north", "--since", "0", *at)
    rows = zip(*(verbs.table()[name] for name in ("arm", "round", "loss")), strict=True)
    text = "\n".join(["arm,round,loss", *(",".join(map(str, row)) for row in rows)])
    good, bad = call.file("good.csv", text), call.file("bad.csv", f"{text}\nLyon->north,x,many\n")
    call("check", good)
    call("check", bad)
    call("learn-table", "lanes", good, "--check")
    call("learn-table", "lanes", good, "--key", "history", *at)
    call("learn-table", "lanes", good, "--key", "history", *at)
    call("learn-table", "lanes", bad, *at)
    call("learn-table", "lanes", bad, "--skip-bad", *at)
    call("learn-table", "lanes", good, "--again", "refuse", *at)
    call("imports", "lanes")
    call("best", "lanes")
    call("best", "lanes", "--exclude", "Lyon->south")
    call("expect", "lanes", "Lyon->north=2", "Lille->north=2", "Lille->south=1")
    call("expect", "lanes", "Lyon->north=9")
    call("set", "lanes")
    call("set", "lanes", "--currency", "EUR", "--unit-word", "truck")
    call("savings", "lanes")
    call("savings", "lanes", "--in-proportion", "--keep")
    call("savings", "lanes", "--learning")
    call("savings", "lanes", "--no-keep")


def _commands_of_options(call: Shell, sides: tuple[str, ...], more: tuple[str, ...]) -> None:
    at = "--at", _day(1)
    call.file("co2.csv", "arm,amount\n*,1\nLyon->north,6\n")
    promised = 'type = "AtMost"\nname = "CO2"\nlimit = 100\nplays = 8\nof = "co2.csv"\n'
    settings = call.file("promised.toml", f"seed = 7\n[[constraints]]\n{promised}")
    call("create", "promised", *sides, *more[:2], "--settings", settings)
    call("ask", "promised", *at)
    call("add-constraint", "promised", "more >= 5 plays 4 of co2.csv soft")
    call("add-constraint", "promised", "more >= 5 plays 4 of co2.csv soft")
    call("constraints", "promised")
    call("end-constraint", "promised", "more")
    call("end-constraint", "promised", "more")
    call("note", "promised", "Strike in Lyon.")
    call("note", "promised", "")
    allowance = 'type = "Baseline"\nrule = "in-proportion"\nallowance = 0.05\n'
    settings = call.file("allowed.toml", f"seed = 7\n[[constraints]]\n{allowance}")
    call("create", "allowed", *sides, *more[:2], "--settings", settings)
    for _ in range(2):
        play = call("ask", "allowed", *at)
        call("tell", "allowed", play["id"], "--losses", _told(play), *at)
    call("constraints", "allowed")
    call("add-constraint", "allowed", "--switching-cost", "3", "--baseline", "in-proportion")
    call("add-constraint", "allowed", "--switching-cost", "3")
    call("constraints", "lanes")
    declared = '[km]\ntype = "Number"\ncentre = 300\nscale = 100\n\n[fuel]\ntype = "Number"\n'
    features = call.file("features.toml", declared)
    km = "\n".join(["arm,km", *(f"{arm},{far}" for arm, far in verbs.KM.items())])
    arms = call.file("arms.csv", km)
    call("create", "featured", *sides, *more, "--features", features, "--arm-features", arms)
    for number in range(3):
        play = call("ask", "featured", "--feature", f"fuel={1.5 + number / 10}", *at)
        call("tell", "featured", play["id"], "--losses", _told(play), *at)
    call("ask", "featured", *at)
    metz = call.file("more.csv", "arm,km\nMetz->north,300\n")
    call("set", "featured", "--arm-features", metz, *at)
    call("set", "lanes", "--arm-features", "more.csv", *at)
    call("effects", "featured")
    call("effects", "featured", "--by-arm")
    call("effects", "lanes")
    call("create", "drifting", *sides, *more)
    with mp.Study.open("drifting", store=call.folder / "multiplay.db") as study:
        for day in range(50):
            play = study.ask(at=verbs.AT + day * verbs.DAY)
            losses = verbs.costs(play.id, play.plan, 60.0 * (day >= 25))
            study.tell(play, losses, at=verbs.AT + day * verbs.DAY)
    call("drift", "drifting")
    call("create", "untried", *sides, *more)
    first = call("ask", "untried", *at)
    costs = {"Lyon->north": 60.0, "Lyon->south": 75.0, "Lille->north": 65.0, "Lille->south": 70.0}
    told = json.dumps({arm: units * costs[arm] for arm, units in first["plan"].items() if units})
    call("tell", "untried", first["id"], "--losses", told, *at)
    call("ask", "untried", "--key", "next", *at)
    call("why", "untried", "next")
