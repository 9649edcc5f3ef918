"""A client for the pages of a service in this process: it reads pages and sends their forms."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asgi import Client, client_of
from trucks import new_study

import multiplay as mp
from multiplay.service.app import create_app
from multiplay.service.auth import keys
from multiplay.service.settings import Settings
from multiplay.storage import store_at


class Place:
    """A browser, and the store of the service."""

    def __init__(self, client: Client, store: str) -> None:
        self.client, self.store = client, store

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def mark(self) -> str:
        """Return the mark of the forms of this visitor."""
        for path in ("/login", "/new", "/docs"):
            found = re.search(r'name="mark" value="(\w+)"', self.get(path).text)
            if found:
                return found[1]
        raise AssertionError("no page has a form")

    def post(self, path: str, **typed: str) -> Any:
        return self.send(path, typed)

    def upload(self, path: str, name: str, content: bytes, **typed: str) -> Any:
        """Send a form with a file."""
        return self.send(path, typed, files={"file": (name, content)})

    def send(self, path: str, typed: dict[str, str], **more: Any) -> Any:
        data = {"mark": self.mark(), **typed}
        headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        return self.client.post(path, data=data, headers=headers, **more)

    def log_in(self, can: str = "manage", **more: Any) -> str:
        """Create a key and start a session with it; return the id of the key."""
        made = keys.create(self.store, can, **more)
        self.client.cookies.clear()
        answer = self.post("/login", key=made.token, next="/")
        assert answer.status_code == 303, answer.text
        return made.row.id

    def study(self, name: str = "lanes", **settings: Any) -> mp.Study:
        return new_study(store_at(self.store), name, **settings)


@contextmanager
def browsing(store: str, **settings: Any) -> Iterator[Place]:
    """Serve the pages of a store, and yield a client."""
    with client_of(create_app(Settings(store, **settings))) as client:
        yield Place(client, store)
