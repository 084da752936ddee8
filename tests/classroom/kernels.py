"""Code run in kernels of several servers at once, over the same WebSocket that JupyterLab uses."""

import asyncio
import concurrent.futures
import json
import uuid

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.classroom.hub import Hub

__all__ = ["run_everywhere"]


def run_everywhere(hub: Hub, users: list[str], source: str, seconds: float = 240) -> dict[str, str]:
    """Start a kernel in every server, run ``source`` in all of them at once; {user: what it printed}."""
    kernels = {}
    for user in users:
        status, kernel = hub.server("POST", user, "/api/kernels", body=b"{}")
        assert status == 201, (user, status, kernel)
        kernels[user] = kernel["id"]

    async def everywhere() -> list[str]:
        return await asyncio.gather(*(_run(hub, user, kernels[user], source, seconds) for user in users))

    # In a thread of its own: this one may have an event loop already, the browser driver's.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        printed = thread.submit(lambda: asyncio.run(everywhere())).result()
    return dict(zip(users, printed, strict=True))


async def _run(hub: Hub, user: str, kernel: str, source: str, seconds: float) -> str:
    address = f"{hub.url.replace('http', 'ws', 1)}/user/{user}/api/kernels/{kernel}/channels"
    request = HTTPRequest(
        address, headers={"Authorization": f"token {hub.token}"}, connect_timeout=180, request_timeout=180
    )
    socket = await websocket_connect(request)
    identifier = uuid.uuid4().hex
    header = {"msg_id": identifier, "username": "", "session": identifier, "msg_type": "execute_request"}
    content = {"code": source, "silent": False, "store_history": True, "stop_on_error": True}
    message = {"header": header | {"version": "5.3"}, "parent_header": {}, "metadata": {}, "content": content}
    await socket.write_message(json.dumps(message | {"channel": "shell"}))
    printed = ""
    # The reply and what was printed come on two channels: only "idle" says that all of the latter has come.
    ends = {"execute_reply", "idle"}
    try:
        async with asyncio.timeout(seconds):
            while True:
                text = await socket.read_message()
                if text is None:
                    return printed + "\n(the connection was closed)"
                answer = json.loads(text)
                if answer.get("parent_header", {}).get("msg_id") != identifier:
                    continue
                if answer["msg_type"] == "stream":
                    printed += answer["content"]["text"]
                if answer["msg_type"] == "error":
                    printed += f"{answer['content']['ename']}: {answer['content']['evalue']}"
                ends -= {answer["msg_type"], answer["content"].get("execution_state")}
                if not ends:
                    return printed
    finally:
        socket.close()
