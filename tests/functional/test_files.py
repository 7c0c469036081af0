"""Files and directories of a sandbox through execd: what goes in comes out, and errors have their codes."""

import os
import re
from urllib.parse import quote

import pytest
from lib import rawhttp
from lib.api import assert_envelope, multipart, part

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
def folder(api, sandbox, request):
    path = "/tmp/files-" + re.sub(r"\W+", "-", request.node.name)[:60]
    assert api.run(sandbox, f"rm -rf {path}; mkdir -p {path}").exit_code == 0
    yield path
    api.run(sandbox, f"rm -rf {path}")


class Files:
    """The file routes of one sandbox."""

    def __init__(self, api, sandbox):
        self.api, self.sandbox = api, sandbox

    def call(self, method, path, **more):
        return self.api.execd(self.sandbox, method, path, **more)

    def upload(self, pairs, **more):
        body, media_type = multipart(pairs, **more)
        return self.call("POST", "/files/upload", body=body, headers={"Content-Type": media_type})

    def download(self, path, **headers):
        return self.call("GET", f"/files/download?path={quote(path)}", headers={k.replace("_", "-"): v for k, v in headers.items()})

    def info(self, *paths):
        return self.call("GET", "/files/info?" + "&".join(f"path={quote(path)}" for path in paths))


@pytest.fixture
def files(api, sandbox):
    return Files(api, sandbox)


def is_empty_success(reply):
    return (reply.status, reply.body, reply.header("content-length")) == (200, b"", "0")


class TestUpload:
    @pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)) * 300, b"\r\n--osb-test-boundary", b"x" * 3_000_000], ids=["empty", "text", "binary", "boundary-like", "3MB"])
    def test_round_trip(self, files, folder, data):
        reply = files.upload([({"path": f"{folder}/deep/er/file.bin"}, data)])
        assert is_empty_success(reply), reply
        assert files.download(f"{folder}/deep/er/file.bin").body == data

    def test_several_pairs(self, files, folder):
        pairs = [({"path": f"{folder}/{n}", "mode": mode}, n.encode()) for n, mode in (("a", 644), ("b", 600), ("c", 755))]
        assert is_empty_success(files.upload(pairs))
        found = files.info(*(pair[0]["path"] for pair in pairs)).json
        assert [found[pair[0]["path"]]["mode"] for pair in pairs] == [644, 600, 755]

    def test_replaces(self, files, folder):
        files.upload([({"path": f"{folder}/x"}, b"long content")])
        files.upload([({"path": f"{folder}/x"}, b"short")])
        assert files.download(f"{folder}/x").body == b"short"

    @pytest.mark.parametrize("name", ["ünï ☃.txt", "a b+c%20.txt", "quote\"'.txt", "-dash", "semi;colon&and=eq"])
    def test_names(self, files, folder, name):
        assert is_empty_success(files.upload([({"path": f"{folder}/{name}"}, b"x")]))
        assert files.download(f"{folder}/{name}").body == b"x"

    def test_owner_and_group(self, files, folder):
        assert is_empty_success(files.upload([({"path": f"{folder}/x", "owner": "nobody", "group": "nogroup", "mode": 640}, b"x")]))
        found = files.info(f"{folder}/x").json[f"{folder}/x"]
        assert (found["owner"], found["group"], found["mode"]) == ("nobody", "nogroup", 640)

    def test_nulls(self, files, folder):
        assert is_empty_success(files.upload([({"path": f"{folder}/x", "owner": None, "group": None, "mode": None}, b"x")]))

    def test_chunked_of_unknown_size(self, api, sandbox, files, folder):
        body, media_type = multipart([({"path": f"{folder}/x"}, os.urandom(200_000))])
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/files/upload", {"Content-Type": media_type, "Transfer-Encoding": "chunked"})
            for start in range(0, len(body), 7001):
                piece = body[start : start + 7001]
                connection.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            connection.send(b"0\r\n\r\n")
            assert is_empty_success(connection.read_response("POST"))
        assert files.info(f"{folder}/x").json[f"{folder}/x"]["size"] == 200_000

    def test_file_before_its_metadata(self, files, folder):
        boundary = "b1"
        body = part(boundary, "file", "x", "text/plain", b"first") + part(boundary, "metadata", "metadata", "application/json", f'{{"path":"{folder}/x"}}'.encode()) + b"--b1--\r\n"
        reply = files.call("POST", "/files/upload", body=body, headers={"Content-Type": 'multipart/form-data; boundary="b1"'})
        assert is_empty_success(reply), reply
        assert files.download(f"{folder}/x").body == b"first"

    @pytest.mark.parametrize(
        "pieces, code",
        [
            ([("file", b"x")], "INVALID_FILE_METADATA"),
            ([("metadata", b'{"path":"/tmp/x"}')], "INVALID_FILE"),
            ([("metadata", b"nonsense"), ("file", b"x")], "INVALID_FILE_METADATA"),
            ([("metadata", b'{"path":""}'), ("file", b"x")], "INVALID_FILE_METADATA"),
            ([("metadata", b'{"path":"/tmp/x"}'), ("file", b"x"), ("file", b"y")], "INVALID_FILE"),
        ],
    )
    def test_wrong(self, files, pieces, code):
        body = b"".join(part("b1", name, name, "application/octet-stream", data) for name, data in pieces) + b"--b1--\r\n"
        reply = files.call("POST", "/files/upload", body=body, headers={"Content-Type": "multipart/form-data; boundary=b1"})
        found = assert_envelope(reply, 400)
        assert found["code"].startswith(code), found

    @pytest.mark.parametrize("media_type", ["application/json", "multipart/form-data"])
    def test_not_a_form(self, files, media_type):
        assert_envelope(files.call("POST", "/files/upload", body=b"{}", headers={"Content-Type": media_type}), 400)

    def test_cut_off(self, api, sandbox, files, folder):
        """A client that dies in the middle of an upload leaves execd well."""
        body, media_type = multipart([({"path": f"{folder}/x"}, b"x" * 500_000)])
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/files/upload", {"Content-Type": media_type, "Content-Length": str(len(body))})
            connection.send(body[:300_000])
        assert api.ping(sandbox)

    def test_large_with_constant_memory(self, service, api, make_sandbox):
        made = make_sandbox(resourceLimits={"memory": "96Mi"})
        size = 200 * 1024 * 1024
        files = Files(api, made["id"])
        before = service.server_memory_bytes()
        assert is_empty_success(files.upload([({"path": "/var/tmp/large"}, b"\x5a" * size)]))
        assert files.info("/var/tmp/large").json["/var/tmp/large"]["size"] == size
        assert service.server_memory_bytes() - before < 32 * 1024 * 1024
        assert len(files.download("/var/tmp/large").body) == size
        assert service.server_memory_bytes() - before < 32 * 1024 * 1024


class TestDownload:
    @pytest.fixture
    def ten(self, files, folder):
        files.upload([({"path": f"{folder}/ten.txt"}, b"0123456789")])
        return f"{folder}/ten.txt"

    def test_headers(self, files, ten):
        reply = files.download(ten)
        assert reply.status == 200
        assert reply.body == b"0123456789"
        assert reply.header("content-type") == "application/octet-stream"
        assert reply.header("content-length") == "10"
        assert reply.header("content-disposition") == 'attachment; filename="ten.txt"'
        assert reply.header("accept-ranges") == "bytes"
        assert reply.header("last-modified")

    @pytest.mark.parametrize(
        "wanted, body, content_range",
        [
            ("bytes=0-0", b"0", "bytes 0-0/10"),
            ("bytes=2-5", b"2345", "bytes 2-5/10"),
            ("bytes=7-", b"789", "bytes 7-9/10"),
            ("bytes=-3", b"789", "bytes 7-9/10"),
            ("bytes=5-99", b"56789", "bytes 5-9/10"),
            ("bytes=-99", b"0123456789", "bytes 0-9/10"),
        ],
    )
    def test_ranges(self, files, ten, wanted, body, content_range):
        reply = files.download(ten, Range=wanted)
        assert (reply.status, reply.body, reply.header("content-range")) == (206, body, content_range)
        assert reply.header("content-length") == str(len(body))

    def test_range_past_the_end(self, files, ten):
        reply = files.download(ten, Range="bytes=10-")
        assert reply.status == 416
        assert reply.header("content-range") == "bytes */10"

    @pytest.mark.parametrize("wanted", ["bytes=x", "bytes=5-2", "bytes=-", "lines=1-2"])
    def test_malformed_range(self, files, ten, wanted):
        assert_envelope(files.download(ten, Range=wanted), 416)

    def test_lines(self, files, folder):
        files.upload([({"path": f"{folder}/lines"}, b"1\n2\n3\n4\n")])
        reply = files.call("GET", f"/files/download?path={folder}/lines&offset=2&limit=2")
        assert reply.status == 200
        assert reply.body.rstrip(b"\n") == b"2\n3"

    def test_missing(self, files, folder):
        assert_envelope(files.download(f"{folder}/none"), 404, "FILE_NOT_FOUND")
        assert_envelope(files.call("GET", "/files/download"), 400, "MISSING_QUERY")
        assert_envelope(files.download(folder), 400)

    def test_plus_is_a_space(self, files, folder):
        files.upload([({"path": f"{folder}/a b"}, b"x")])
        assert files.call("GET", f"/files/download?path={folder.replace('/', '%2F')}%2Fa+b").body == b"x"


class TestInfo:
    def test_members(self, files, folder):
        files.upload([({"path": f"{folder}/x", "mode": 644}, b"12345")])
        found = files.info(f"{folder}/x", folder).json
        assert set(found) == {f"{folder}/x", folder}
        entry = found[f"{folder}/x"]
        assert set(entry) >= {"path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"}
        assert (entry["path"], entry["type"], entry["size"], entry["mode"], entry["owner"], entry["group"]) == (f"{folder}/x", "file", 5, 644, "root", "root")
        assert found[folder]["type"] == "directory"
        for name in ("modified_at", "created_at"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", entry[name])

    def test_kinds(self, api, sandbox, files, folder):
        api.run(sandbox, f"cd {folder}; ln -s nowhere link; mkfifo fifo; mkdir dir")
        found = files.info(*(f"{folder}/{name}" for name in ("link", "fifo", "dir"))).json
        assert [found[f"{folder}/{name}"]["type"] for name in ("link", "fifo", "dir")] == ["symlink", "other", "directory"]

    def test_missing_and_none(self, files, folder):
        assert_envelope(files.info(folder, f"{folder}/none"), 404, "FILE_NOT_FOUND")
        assert files.call("GET", "/files/info").json == {}


class TestChanges:
    def test_directories(self, files, folder):
        assert is_empty_success(files.call("POST", "/directories", json={f"{folder}/a/b": {"mode": 750}, f"{folder}/c": {}}))
        assert files.info(f"{folder}/a/b").json[f"{folder}/a/b"]["mode"] == 750
        assert is_empty_success(files.call("DELETE", f"/directories?path={folder}/a&path={folder}/c&path={folder}/never"))
        assert_envelope(files.info(f"{folder}/a"), 404, "FILE_NOT_FOUND")

    def test_move(self, files, folder):
        files.upload([({"path": f"{folder}/a"}, b"x"), ({"path": f"{folder}/b"}, b"y")])
        assert is_empty_success(files.call("POST", "/files/mv", json=[{"src": f"{folder}/a", "dest": f"{folder}/new/place"}]))
        assert files.download(f"{folder}/new/place").body == b"x"
        assert_envelope(files.call("POST", "/files/mv", json=[{"src": f"{folder}/a", "dest": f"{folder}/c"}]), 404, "FILE_NOT_FOUND")
        assert_envelope(files.call("POST", "/files/mv", json=[{"src": f"{folder}/b", "dest": f"{folder}/new/place"}]), 500)

    def test_delete(self, files, folder):
        files.upload([({"path": f"{folder}/a"}, b"x")])
        assert is_empty_success(files.call("DELETE", f"/files?path={folder}/a&path={folder}/never"))
        assert_envelope(files.info(f"{folder}/a"), 404)
        assert_envelope(files.call("DELETE", f"/files?path={folder}"), 500)

    def test_permissions(self, files, folder):
        files.upload([({"path": f"{folder}/a"}, b"x")])
        assert is_empty_success(files.call("POST", "/files/permissions", json={f"{folder}/a": {"owner": "nobody", "group": "nogroup", "mode": 600}}))
        entry = files.info(f"{folder}/a").json[f"{folder}/a"]
        assert (entry["owner"], entry["group"], entry["mode"]) == ("nobody", "nogroup", 600)

    def test_replace(self, files, folder):
        files.upload([({"path": f"{folder}/a"}, b"x1x2x"), ({"path": f"{folder}/b"}, b"none")])
        body = {f"{folder}/a": {"old": "x", "new": "YY"}, f"{folder}/b": {"old": "x", "new": "z"}}
        reply = files.call("POST", "/files/replace?verbose=true", json=body)
        assert reply.json == {f"{folder}/a": {"replacedCount": 3}, f"{folder}/b": {"replacedCount": 0}}
        assert files.download(f"{folder}/a").body == b"YY1YY2YY"
        assert_envelope(files.call("POST", "/files/replace", json={f"{folder}/a": {"old": "", "new": "z"}}), 400)
        assert_envelope(files.call("POST", "/files/replace", json={f"{folder}/none": {"old": "x", "new": "z"}}), 404)

    def test_search(self, files, folder):
        for name in ("one.txt", "sub/two.txt", "sub/three.md", ".hidden.txt"):
            files.upload([({"path": f"{folder}/{name}"}, b"")])
        found = files.call("GET", f"/files/search?path={folder}&pattern=*.txt").json
        assert sorted(entry["path"] for entry in found) == [f"{folder}/.hidden.txt", f"{folder}/one.txt", f"{folder}/sub/two.txt"]
        assert files.call("GET", f"/files/search?path={folder}&pattern=nothing").json == []
        assert_envelope(files.call("GET", "/files/search"), 400, "MISSING_QUERY")
        assert_envelope(files.call("GET", f"/files/search?path={folder}/none"), 404)

    def test_list(self, api, sandbox, files, folder):
        for name in ("b.txt", "a/x", "a/y/z"):
            files.upload([({"path": f"{folder}/{name}"}, b"")])
        api.run(sandbox, f"ln -s a {folder}/link")

        def listed(query):
            return [entry["path"].removeprefix(folder + "/") for entry in files.call("GET", f"/directories/list?path={folder}{query}").json]

        assert listed("") == ["a", "b.txt", "link"]
        assert listed("&depth=2") == ["a", "a/x", "a/y", "b.txt", "link"]
        assert listed("&depth=0") == []
        assert_envelope(files.call("GET", f"/directories/list?path={folder}/link"), 400, "INVALID_REQUEST_BODY")
        assert_envelope(files.call("GET", f"/directories/list?path={folder}/b.txt"), 400, "INVALID_REQUEST_BODY")
        assert_envelope(files.call("GET", f"/directories/list?path={folder}/none"), 404)


def test_host_files_cannot_be_seen(files):
    """The image `host` is curated: not the host's own root."""
    for path in ("/root/.bashrc", __file__, "/var/lib/dpkg/status"):
        assert os.path.exists(path) and files.download(path).status == 404, path
    for path in ("/etc/shadow", "/etc/passwd", "/etc/hostname"):
        with open(path, "rb") as file:
            assert files.download(path).body != file.read(), f"{path} is the host's own"


def test_home_is_expanded(api, sandbox, files):
    api.run(sandbox, "echo x > ~/in-home")
    assert files.download("~/in-home").body == b"x\n"
    api.run(sandbox, "rm ~/in-home")
