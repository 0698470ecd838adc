"""`FakeLLM` behind a real socket, for code that makes its own client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from pegboard.testing import FakeLLM


@contextmanager
def served(fake: FakeLLM) -> Iterator[str]:
    """Serves it in a thread on 127.0.0.1 for as long as that lasts; gives the address."""
    application: Any = fake
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:  # it listens from here on, whoever comes first
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
