import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.plugin import *  # noqa: E402,F401,F403
from lib.service import free_port  # noqa: E402
from lib.waiting import wait_for  # noqa: E402
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

PUBLISHED = Path(sys.executable).parent / "opensandbox-mcp"


class Tools:
    """A server of tools, as its clients see it: `osb mcp` or the published one, over either transport."""

    def __init__(self, words, transport, service):
        self.words, self.transport, self.service = [str(word) for word in words], transport, service

    def environment(self):
        host, port = self.service.address
        return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "OPEN_SANDBOX_DOMAIN": f"{host}:{port}", "OPEN_SANDBOX_API_KEY": self.service.api_key}

    @asynccontextmanager
    async def session(self):
        if self.transport == "stdio":
            parameters = StdioServerParameters(command=self.words[0], args=self.words[1:], env=self.environment())
            async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
                yield session
            return
        port = free_port()
        process = subprocess.Popen([*self.words, "--transport", "streamable-http", "--port", str(port)], env=self.environment(), stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: is_open(port), 30, "the port of the MCP server opens")
            async with streamable_http_client(f"http://127.0.0.1:{port}/mcp") as streams, ClientSession(*streams[:2]) as session:
                yield session
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def run(self, conversation):
        """Calls conversation(session) in an initialised session."""

        async def talk():
            async with self.session() as session:
                await session.initialize()
                return await conversation(session)

        return asyncio.run(asyncio.wait_for(talk(), 100))


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["stdio", "streamable-http"])
def tools(request, bin_dir, keyed_service):
    return Tools([bin_dir / "osb", "mcp"], request.param, keyed_service)


@pytest.fixture(params=["ours stdio", "ours streamable-http", "published stdio"])
def any_tools(request, bin_dir, keyed_service):
    """Also the published server: what clients rely on is what both give."""
    whose, transport = request.param.split()
    return Tools([bin_dir / "osb", "mcp"] if whose == "ours" else [PUBLISHED], transport, keyed_service)
