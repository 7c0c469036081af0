"""`osb mcp` with the official client, over both transports; and the published server against ours, by the same conversation."""

import json
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import PUBLISHED, Tools
from lib.service import free_port

EXTRA = {"code_run", "sandbox_pause", "sandbox_resume", "sandbox_fork", "sandbox_rollback", "sandbox_diff", "snapshot_create", "snapshot_list", "snapshot_delete", "network_policy_get", "network_policy_set"}  # fmt: skip


def is_error(result):
    return result.is_error if hasattr(result, "is_error") else result.isError


def structured(result):
    return result.structured_content if hasattr(result, "structured_content") else result.structuredContent


def schema_of(tool):
    return tool.input_schema if hasattr(tool, "input_schema") else tool.inputSchema


async def call(session, name, /, **arguments):
    result = await session.call_tool(name, arguments)
    assert not is_error(result), f"{name}: {result.content[0].text}"
    value = structured(result)
    assert value is not None
    return value


async def refused(session, name, /, **arguments):
    result = await session.call_tool(name, arguments)
    assert is_error(result), f"{name} was not refused: {result}"
    return result.content[0].text


def stdout(execution):
    return "\n".join(message["text"] for message in execution["logs"]["stdout"])


def test_one_life(any_tools):
    any_tools.run(one_life)


async def one_life(session):
    made = await call(session, "sandbox_create", image="host", metadata={"made-by": "mcp"}, env={"GREETING": "hello"}, timeout_seconds=120)
    sandbox = made["sandbox_id"]
    assert made["info"]["id"] == sandbox and made["info"]["metadata"]["made-by"] == "mcp" and made["info"]["status"]["state"] == "Running"
    assert made["info"]["image"]["image"] == "host" and "expires_at" in made["info"]
    try:
        info = await call(session, "sandbox_get_info", sandbox_id=sandbox)
        assert info["id"] == sandbox and info["entrypoint"]
        listed = await call(session, "sandbox_list", filter={"metadata": {"made-by": "mcp"}, "page_size": 5})
        assert sandbox in [one["id"] for one in listed["sandbox_infos"]] and listed["pagination"]["page_size"] == 5
        assert (await call(session, "sandbox_healthcheck", sandbox_id=sandbox)) == {"sandbox_id": sandbox, "healthy": True}
        assert (await call(session, "sandbox_get_metrics", sandbox_id=sandbox))["cpu_count"] >= 1
        assert (await call(session, "sandbox_get_endpoint", sandbox_id=sandbox, port=8000))["endpoint"]
        assert "T" in str((await call(session, "sandbox_renew", sandbox_id=sandbox, timeout_seconds=300))["expires_at"]).replace(" ", "T")

        ran = await call(session, "command_run", sandbox_id=sandbox, command="echo $GREETING; echo oops >&2; pwd", working_directory="/usr")
        assert stdout(ran) == "hello\n/usr" and ran["exit_code"] == 0 and ran["error"] is None
        assert ran["logs"]["stderr"][0]["text"] == "oops" and ran["logs"]["stderr"][0]["is_error"] is True
        failed = await call(session, "command_run", sandbox_id=sandbox, command="exit 3")
        assert failed["exit_code"] == 3 and failed["error"]["value"] == "3"
        started = await call(session, "command_run", sandbox_id=sandbox, command="sleep 60", background=True)
        assert (await call(session, "command_interrupt", sandbox_id=sandbox, execution_id=started["id"])) == {"status": "interrupted"}

        await files(session, sandbox)
    finally:
        assert (await call(session, "sandbox_kill", sandbox_id=sandbox)) == {"status": "killed"}
    assert await refused(session, "sandbox_get_info", sandbox_id=sandbox)


async def files(session, sandbox):
    assert (await call(session, "file_create_directories", sandbox_id=sandbox, entries=[{"path": "/tmp/a/b"}])) == {"status": "created"}
    assert (await call(session, "file_write", sandbox_id=sandbox, path="/tmp/a/note.txt", content="größe\nzwei\n", mode=644)) == {"status": "written"}
    assert (await call(session, "file_read", sandbox_id=sandbox, path="/tmp/a/note.txt"))["content"] == "größe\nzwei\n"
    assert (await call(session, "file_read", sandbox_id=sandbox, path="/tmp/a/note.txt", range_header="bytes=0-1"))["content"] == "gr"
    found = (await call(session, "file_search", sandbox_id=sandbox, path="/tmp/a", pattern="*.txt"))["result"]
    assert [entry["path"] for entry in found] == ["/tmp/a/note.txt"] and found[0]["mode"] == 644
    replaced = await call(session, "file_replace_contents", sandbox_id=sandbox, entries=[{"path": "/tmp/a/note.txt", "old_content": "zwei", "new_content": "drei"}])
    assert replaced["result"] == [{"path": "/tmp/a/note.txt", "replaced_count": 1}]
    assert (await call(session, "file_move", sandbox_id=sandbox, entries=[{"source": "/tmp/a/note.txt", "destination": "/tmp/a/b/moved.txt"}])) == {"status": "moved"}
    assert (await call(session, "file_read", sandbox_id=sandbox, path="/tmp/a/b/moved.txt"))["content"] == "größe\ndrei\n"
    assert (await call(session, "file_delete", sandbox_id=sandbox, paths=["/tmp/a/b/moved.txt"])) == {"status": "deleted"}
    assert await refused(session, "file_read", sandbox_id=sandbox, path="/tmp/a/b/moved.txt")
    assert (await call(session, "file_delete_directories", sandbox_id=sandbox, paths=["/tmp/a"])) == {"status": "deleted"}


def defaults(schema):
    return {name: field.get("default") for name, field in schema["properties"].items()}


def test_same_tools_as_the_published_server(bin_dir, keyed_service):
    async def listed(session):
        return {tool.name: schema_of(tool) for tool in (await session.list_tools()).tools}

    ours = Tools([bin_dir / "osb", "mcp"], "stdio", keyed_service).run(listed)
    published = Tools([PUBLISHED], "stdio", keyed_service).run(listed)
    assert set(ours) == set(published) | EXTRA
    for name, schema in published.items():
        assert defaults(ours[name]) == defaults(schema), name
        assert sorted(ours[name].get("required", [])) == sorted(schema.get("required", [])), name


def test_what_is_ours_alone(tools):
    async def conversation(session):
        sandbox = (await call(session, "sandbox_create", image="host"))["sandbox_id"]
        doomed = [sandbox]
        try:
            assert "41" in (await call(session, "code_run", sandbox_id=sandbox, code="x = 41\nx"))["result"][0]["text"]
            assert stdout(await call(session, "code_run", sandbox_id=sandbox, code="print(x + 1)")).strip() == "42"
            wrong = await call(session, "code_run", sandbox_id=sandbox, code="1 / 0")
            assert wrong["error"]["name"] == "ZeroDivisionError" and wrong["complete"] is None

            await call(session, "file_write", sandbox_id=sandbox, path="/root/kept.bin", content="/w==", encoding="base64")
            assert await refused(session, "file_read", sandbox_id=sandbox, path="/root/kept.bin")
            assert (await call(session, "file_read", sandbox_id=sandbox, path="/root/kept.bin", encoding="base64"))["content"] == "/w=="
            assert any(change["path"] == "/root/kept.bin" for change in (await call(session, "sandbox_diff", sandbox_id=sandbox))["changes"])
            kept = await call(session, "snapshot_create", sandbox_id=sandbox, name="before")
            assert kept["snapshot_id"] in json.dumps(await call(session, "snapshot_list"))
            forked = (await call(session, "sandbox_fork", sandbox_id=sandbox))["items"][0]["id"]
            doomed.append(forked)
            # One that was not made here is known when the caller says so.
            assert "sandbox_connect" in await refused(session, "command_run", sandbox_id=forked, command="true")
            seen = await call(session, "command_run", sandbox_id=forked, command="ls /root", connect_if_missing=True)
            assert "kept.bin" in stdout(seen)
            await call(session, "file_delete", sandbox_id=sandbox, paths=["/root/kept.bin"])
            await call(session, "sandbox_rollback", sandbox_id=sandbox, snapshot_id=kept["snapshot_id"])
            assert "kept.bin" in stdout(await call(session, "command_run", sandbox_id=sandbox, command="ls /root"))

            policy = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "registry.example"}]}
            await call(session, "network_policy_set", sandbox_id=sandbox, network_policy=policy)
            assert "registry.example" in json.dumps(await call(session, "network_policy_get", sandbox_id=sandbox))
            await call(session, "sandbox_pause", sandbox_id=forked)
            await call(session, "sandbox_resume", sandbox_id=forked)
            assert (await call(session, "sandbox_connect", sandbox_id=forked))["sandbox_id"] == forked
            await call(session, "snapshot_delete", snapshot_id=kept["snapshot_id"])
        finally:
            for one in doomed:
                await call(session, "sandbox_kill", sandbox_id=one)

    tools.run(conversation)


def test_mistakes_are_told(tools):
    async def conversation(session):
        assert "arguments.sandbox_id" in await refused(session, "sandbox_kill")
        assert "arguments.sandbox_id" in await refused(session, "command_run", sandbox_id=["secret-word"], command="true")
        assert "secret-word" not in await refused(session, "command_run", sandbox_id=["secret-word"], command="true")
        assert "auth_username" in await refused(session, "sandbox_create", image="host", auth_username="me")
        assert "IMAGE::NOT_FOUND" in await refused(session, "sandbox_create", image="registry.example/none:1")
        unknown = "00000000-0000-4000-8000-000000000000"
        assert await refused(session, "sandbox_connect", sandbox_id=unknown)
        assert await refused(session, "sandbox_renew", sandbox_id=unknown)
        with pytest.raises(Exception, match="no such tool"):
            await session.call_tool("sandbox_escape", {})

    tools.run(conversation)


def test_progress(bin_dir, keyed_service):
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    async def conversation(session):
        result = await session.call_tool("sandbox_create", {"image": "host"}, progress_callback=note)
        await call(session, "sandbox_kill", sandbox_id=structured(result)["sandbox_id"])

    Tools([bin_dir / "osb", "mcp"], "stdio", keyed_service).run(conversation)
    assert seen == [0.1, 0.3, 0.8, 1]


def start(bin_dir, service, *words, **options):
    environment = {**Tools([], "", service).environment(), **options.pop("env", {})}
    return subprocess.Popen([bin_dir / "osb", "mcp", *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def message(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_ends_with_its_input(bin_dir, keyed_service):
    out, err = start(bin_dir, keyed_service).communicate("nonsense\n\n[]\n" + message(1, "ping") + message(2, "resources/list"), timeout=20)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [one.get("error", {}).get("code") for one in answers] == [-32700, -32600, None, -32601] and err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
def test_ends_with_a_signal(bin_dir, keyed_service, transport, number):
    process = start(bin_dir, keyed_service, "--transport", transport, "--port", str(free_port()))
    if transport == "stdio":
        process.stdin.write(message(1, "ping"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
    else:
        assert "/mcp" in process.stderr.readline()
    process.send_signal(number)
    assert process.wait(10) == 128 + number
    process.communicate()


def test_a_call_can_be_cancelled(bin_dir, keyed_service):
    process = start(bin_dir, keyed_service)
    say = lambda text: (process.stdin.write(text), process.stdin.flush())  # noqa: E731
    say(message(1, "tools/call", name="sandbox_create", arguments={"image": "host"}))
    sandbox = json.loads(process.stdout.readline())["result"]["structuredContent"]["sandbox_id"]
    say(message(2, "tools/call", name="command_run", arguments={"sandbox_id": sandbox, "command": "sleep 60"}))
    say(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}) + "\n")
    say(message(3, "tools/call", name="sandbox_kill", arguments={"sandbox_id": sandbox}))
    assert json.loads(process.stdout.readline())["id"] == 3
    out, _ = process.communicate(timeout=20)
    assert out == "" and process.returncode == 0


def post(port, body, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", body.encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def listening(bin_dir, keyed_service, request):
    def begin(*words, **env):
        port = free_port()
        process = start(bin_dir, keyed_service, "--transport", "streamable-http", "--port", str(port), *words, env=env)
        request.addfinalizer(lambda: (process.kill(), process.communicate()))
        assert "/mcp" in process.stderr.readline()
        return port

    return begin


def test_pages_are_not_answered(listening):
    port = listening()
    assert post(port, message(1, "ping"))[0] == 200
    assert post(port, message(1, "ping"), Origin="http://localhost:3000")[0] == 200
    assert post(port, message(1, "ping"), Origin="https://evil.example")[0] == 403
    assert post(port, message(1, "ping"), Host=f"evil.example:{port}")[0] == 403
    assert post(port, '{"jsonrpc":"2.0","method":"notifications/initialized"}') == (202, "")
    assert post(port, "[" * 100)[0] == 200
    assert post(port, "too large", **{"Content-Length": str(17 << 20)})[0] == 413


def test_a_token_is_wanted(listening):
    port = listening(OSB_MCP_TOKEN="a-token")
    assert post(port, message(1, "ping"))[0] == 401
    assert post(port, message(1, "ping"), Authorization="Bearer a-toke")[0] == 401
    assert post(port, message(1, "ping"), Authorization="Bearer a-token")[0] == 200


def test_other_addresses_need_a_token(bin_dir, keyed_service):
    process = start(bin_dir, keyed_service, "--transport", "streamable-http", "--host", "0.0.0.0", "--port", str(free_port()))
    _, err = process.communicate(timeout=10)
    assert process.returncode == 2 and "token" in err
