"""Item 10 of the compatibility checklist: files and directories. `test_item_10_...`; what a test needs to see of the file system it
sees through commands, so that it holds on either side of a sandbox's wall."""

import json
import re
import time
from urllib.parse import quote

import pytest
from daemon import form
from lib import rawhttp
from lib.waiting import wait_for

CONTENT = bytes(range(256)) * 40  # 10,240 bytes, none of them printable by accident


@pytest.mark.parametrize("mode", [755, 644, 600, 777, 400, 7])
def test_item_10_mode_round_trip(execd, place, mode):
    execd.put(f"{place}/f", b"x", mode=mode)
    assert execd.info(f"{place}/f")["mode"] == mode
    assert execd.out(f"stat -c %a {place}/f") == [str(mode)]
    execd.empty("POST", "/directories", json={f"{place}/d": {"mode": mode}})
    assert execd.info(f"{place}/d")["mode"] == mode
    execd.empty("POST", "/files/permissions", json={f"{place}/f": {"mode": 640}})
    execd.empty("POST", "/files/permissions", json={f"{place}/f": {"mode": mode}})
    assert execd.info(f"{place}/f")["mode"] == mode


def test_item_10_owner_round_trip(execd, place):
    execd.put(f"{place}/f", b"x", owner="nobody", group="nogroup", mode=644)
    info = execd.info(f"{place}/f")
    assert (info["owner"], info["group"]) == ("nobody", "nogroup")
    execd.empty("POST", "/files/permissions", json={f"{place}/f": {"owner": "root", "group": None, "mode": None}})
    info = execd.info(f"{place}/f")
    assert (info["owner"], info["group"], info["mode"]) == ("root", "nogroup", 644)
    execd.empty("POST", "/files/permissions", json={f"{place}/f": {"owner": "4242", "group": "4343", "mode": 0}})
    info = execd.info(f"{place}/f")
    assert (info["owner"], info["group"], info["mode"]) == ("4242", "4343", 644)
    execd.refused(500, "RUNTIME_ERROR", "POST", "/files/permissions", json={f"{place}/f": {"owner": "no-such-user"}})
    execd.refused(500, "RUNTIME_ERROR", "POST", "/files/permissions", json={f"{place}/f": {"mode": 888}})
    execd.refused(500, "RUNTIME_ERROR", "POST", "/files/permissions", json={f"{place}/f": {"mode": -1}})


def test_item_10_info(execd, place):
    execd.put(f"{place}/f", b"12345", mode=644)
    execd.out(f"ln -s f {place}/link; mkfifo {place}/pipe; touch -d '2020-02-03 04:05:06.789 UTC' {place}/f")
    assert execd.call("GET", "/files/info").json == {}
    reply = execd.call("GET", "/files/info?" + "&".join(f"path={place}/{name}" for name in ("f", "link", "pipe", "."))).json
    assert list(reply) == [f"{place}/f", f"{place}/link", f"{place}/pipe", f"{place}/."]
    info = reply[f"{place}/f"]
    assert list(info) == ["path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"]
    assert (info["path"], info["type"], info["size"], info["mode"]) == (f"{place}/f", "file", 5, 644)
    assert re.match(r"2020-02-03T04:05:06\.789\d*(Z|\+00:00)$", info["modified_at"]), info
    assert [reply[f"{place}/{name}"]["type"] for name in ("link", "pipe", ".")] == ["symlink", "other", "directory"]
    assert reply[f"{place}/."]["path"] == place
    execd.refused(404, "FILE_NOT_FOUND", "GET", f"/files/info?path={place}/f&path={place}/nope")


# Uploads


def test_item_10_upload_forms(execd, place):
    pairs = [("metadata", {"path": f"{place}/a/b/1", "mode": 644}), ("file", CONTENT), ("metadata", {"path": f"{place}/2", "owner": None}), ("file", b"")]
    for options in ({}, {"quoted": False}, {"boundary": "----WebKit'()+_,-./:=?"}, {"filenames": False}):
        execd.empty("DELETE", f"/directories?path={place}/a")
        reply = execd.upload(pairs, **options)
        assert (reply.status, reply.body, reply.header("content-length")) == (200, b"", "0"), (options, reply)
        assert execd.get(f"{place}/a/b/1").body == CONTENT
        assert execd.get(f"{place}/2").body == b""
    for order in ([1, 0, 3, 2], [0, 2, 1, 3], [1, 3, 0, 2]):
        assert execd.upload([pairs[i] for i in order]).status == 200
        assert execd.get(f"{place}/a/b/1").body == CONTENT and execd.get(f"{place}/2").body == b""
    extra = [("other", b"ignored"), *pairs[:2], ("note", b"ignored")]
    assert execd.upload(extra).status == 200


def test_item_10_upload_chunked_and_with_continue(execd, place):
    body, media_type = form([("metadata", {"path": f"{place}/chunked"}), ("file", CONTENT)])
    with rawhttp.Connection(execd.address, 20) as connection:
        headers = [*execd.headers, ("Content-Type", media_type), ("Transfer-Encoding", "chunked"), ("Expect", "100-continue")]
        connection.send(rawhttp.encode_head("POST", execd.prefix + "/files/upload", headers, execd.address, b""))
        assert connection.read_head().status == 100
        for at in range(0, len(body), 777):
            piece = body[at : at + 777]
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
        assert connection.read_response("POST").status == 200
    assert execd.get(f"{place}/chunked").body == CONTENT


def test_item_10_upload_names(execd, place):
    for name in ("файл ☃.bin", "with space", 'quote"s', "per%cent", "plus+", "a&b=c#d", "\u0085"):
        execd.put(f"{place}/{name}", name.encode())
        reply = execd.get(f"{place}/{name}")
        assert reply.body == name.encode()
        assert reply.header("content-disposition").startswith("attachment; filename=")
    assert "filename*=UTF-8''%D1%84%D0%B0%D0%B9%D0%BB%20%E2%98%83.bin" in execd.get(f"{place}/файл ☃.bin").header("content-disposition")
    assert execd.get(f"{place}/with space").header("content-disposition") == 'attachment; filename="with space"'
    # A name as .NET writes it, which is ignored anyway.
    reply = execd.upload([("metadata", {"path": f"{place}/net"}), ("file", b"1", "x; filename*=utf-8''x")], quoted=False)
    assert reply.status == 200


def test_item_10_upload_replaces_atomically(execd, place):
    execd.put(f"{place}/f", b"old", mode=600)
    before = execd.out(f"stat -c '%a %u' {place}/f")
    body, media_type = form([("metadata", {"path": f"{place}/f"}), ("file", CONTENT)])
    with rawhttp.Connection(execd.address, 20) as connection:
        headers = [*execd.headers, ("Content-Type", media_type), ("Content-Length", str(len(body)))]
        connection.send(rawhttp.encode_head("POST", execd.prefix + "/files/upload", headers, execd.address, b"x") + body[:6000])
        time.sleep(0.1)
        assert execd.get(f"{place}/f").body == b"old", "half an upload is not to be seen"
    wait_for(lambda: execd.out(f"ls -A {place}") == ["f"], 10, "what was given up leaves nothing")
    execd.put(f"{place}/f", b"new")
    assert execd.get(f"{place}/f").body == b"new"
    assert execd.out(f"stat -c '%a %u' {place}/f") == before, "unspecified: left alone"


@pytest.mark.parametrize(
    "pairs, code",
    [([("metadata", {"path": "/tmp/q"})], "INVALID_FILE_CONTENT"), ([("file", b"")], "INVALID_FILE_METADATA"), ([], "INVALID_FILE_METADATA"),
     ([("metadata", {"path": "/tmp/q"}), ("file", b""), ("file", b"")], "INVALID_FILE"), ([("metadata", {"path": ""}), ("file", b"")], "INVALID_FILE_METADATA"),
     ([("metadata", b"{"), ("file", b"")], "INVALID_FILE_METADATA"), ([("metadata", {"path": 5}), ("file", b"")], "INVALID_FILE_METADATA"),
     ([("metadata", {}), ("file", b"")], "INVALID_FILE_METADATA")],
)  # fmt: skip
def test_item_10_upload_refused(execd, pairs, code):
    reply = execd.upload(pairs)
    assert (reply.status, reply.json["code"]) == (400, code)
    assert execd.run("cat /tmp/q").code == "1"


WRONG_PLACES = {
    "directory": ("{place}", {}, "{place} is a directory"),
    "root": ("/", {}, "/ is a directory"),
    "below a file": ("{place}/file/x", {}, "{place}/file: Not a directory"),
    "too long": ("{place}/" + "x" * 300, {}, "File name too long"),
    "loop": ("{place}/loop/x", {}, "{place}/loop"),
    "proc": ("/proc/nope/x", {}, "/proc/nope"),
    "not for files": ("/proc/nope", {}, "/proc/nope"),
    "variable": ("$NO_SUCH_VARIABLE/x", {}, "NO_SUCH_VARIABLE"),
    "user": ("{place}/new", {"owner": "no-such-user"}, "no-such-user"),
    "group": ("{place}/new", {"group": "no-such-group"}, "no-such-group"),
    "mode": ("{place}/new", {"mode": 888}, "888"),
}


@pytest.mark.parametrize("case", WRONG_PLACES)
@pytest.mark.parametrize("order", ["metadata first", "file first"])
def test_item_10_upload_to_a_wrong_place(execd, place, case, order):
    path, more, words = WRONG_PLACES[case]
    execd.out(f"echo old > {place}/file; ln -s loop {place}/loop")
    pairs = [("metadata", {"path": path.replace("{place}", place), **more}), ("file", b"new")]
    reply = execd.upload(pairs if order == "metadata first" else pairs[::-1])
    assert (reply.status, reply.json["code"]) == (400, "INVALID_FILE_METADATA"), reply
    assert words.replace("{place}", place) in reply.json["message"] and ".upload-" not in reply.json["message"], reply
    assert execd.out(f"ls -A {place}; cat {place}/file") == ["file", "loop", "old"], "nothing is left behind"


def test_item_10_a_directory_is_no_file_whichever_way(execd, place):
    up = execd.upload([("metadata", {"path": place}), ("file", b"new")])
    down = execd.call("GET", f"/files/download?path={place}")
    assert (up.status, down.status) == (400, 400) and up.json["message"] == down.json["message"] == f"{place} is a directory"


def test_item_10_upload_without_the_right(execd, place):
    execd.out(f"chmod 755 {place}; mkdir -m 700 {place}/closed")
    body, media_type = form([("metadata", {"path": f"{place}/closed/f"}), ("file", b"x")])
    reply = execd.call("POST", "/v1/filesystem/4242/4242/files/upload", body=body, headers={"Content-Type": media_type})
    assert (reply.status, reply.json["code"]) == (400, "INVALID_FILE_METADATA"), reply
    assert f"{place}/closed/f: Permission denied" in reply.json["message"] and ".upload-" not in reply.json["message"], reply


def test_item_10_upload_no_form(execd):
    execd.refused(400, "INVALID_FILE", "POST", "/files/upload", body=b"x", headers={"Content-Type": "text/plain"})
    execd.refused(400, "INVALID_FILE", "POST", "/files/upload", body=b"--b\r\n", headers={"Content-Type": "multipart/form-data; boundary=b"})


# Downloads


@pytest.mark.parametrize(
    "header, status, part",
    [("bytes=0-9", 206, slice(0, 10)), ("bytes=10-", 206, slice(10, None)), ("bytes=-5", 206, slice(-5, None)), ("bytes=0-99999", 206, slice(0, None)),
     ("bytes=-99999", 206, slice(0, None)), ("bytes=5-6,9-12", 206, slice(5, 7)), ("bytes=10239-", 206, slice(10239, None)),
     ("bytes=10240-", 416, None), ("bytes=5-4", 416, None), ("bytes=x", 416, None), ("lines=1-2", 416, None), ("bytes=", 416, None)],
)  # fmt: skip
def test_item_10_range_forms(execd, place, header, status, part):
    execd.put(f"{place}/f", CONTENT)
    reply = execd.get(f"{place}/f", headers={"Range": header})
    assert reply.status == status, reply
    if part is not None:
        wanted = CONTENT[part]
        assert reply.body == wanted
        start = part.indices(len(CONTENT))[0]
        assert reply.header("content-range") == f"bytes {start}-{start + len(wanted) - 1}/{len(CONTENT)}"
        assert reply.header("content-length") == str(len(wanted))
    elif header == "bytes=10240-":
        assert reply.header("content-range") == f"bytes */{len(CONTENT)}"
    else:
        assert reply.json["code"] == "UNKNOWN"


def test_item_10_download_headers(execd, place):
    execd.put(f"{place}/f.txt", b"hello")
    reply = execd.get(f"{place}/f.txt")
    assert (reply.status, reply.body) == (200, b"hello")
    for name, value in {"content-type": "application/octet-stream", "content-length": "5", "accept-ranges": "bytes", "content-disposition": 'attachment; filename="f.txt"'}.items():
        assert reply.header(name) == value
    modified = reply.header("last-modified")
    assert execd.get(f"{place}/f.txt", headers={"If-Modified-Since": modified}).status == 304
    assert execd.get(f"{place}/f.txt", headers={"If-Range": modified, "Range": "bytes=0-0"}).body == b"h"
    assert execd.get(f"{place}/f.txt", headers={"If-Range": "Thu, 01 Jan 1970 00:00:00 GMT", "Range": "bytes=0-0"}).body == b"hello"
    execd.put(f"{place}/empty")
    assert execd.get(f"{place}/empty", headers={"Range": "bytes=0-1"}).status == 200
    assert execd.get("/proc/self/status").body.startswith(b"Name:"), "a file without a size has content"


LARGE = 5_000_001  # more than one turn of what is moved at once, and no multiple of anything


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_item_10_large_download(execd, place, where):
    """Moved page by page, from wherever a range begins."""
    file = f"{place}/large" if where == "disk" else f"/dev/shm/{place.replace('/', '-')}"
    execd.out(f"seq 1000000 | head -c {LARGE} > {file}")
    content = "".join(f"{number}\n" for number in range(1, 800_000)).encode()[:LARGE]
    assert execd.get(file).body == content
    for first, last in ((0, LARGE - 1), (1, LARGE - 1), (4095, 4097), (4096, 1_100_000), (123_456, 4_999_999), (LARGE - 300_000, LARGE - 1)):
        reply = execd.get(file, headers={"Range": f"bytes={first}-{last}"})
        assert (reply.status, reply.body == content[first : last + 1]) == (206, True), (first, last)
    execd.out(f"rm {file}")


def test_item_10_download_of_a_file_that_shrinks(execd, place):
    """The answer has promised more than there is: it is cut, never filled up."""
    size = 64 << 20
    execd.out(f"head -c {size} /dev/zero | tr '\\0' x > {place}/f")
    with rawhttp.Connection(execd.address, 30) as connection:
        connection.send_request("GET", f"{execd.prefix}/files/download?path={place}/f", execd.headers)
        head = connection.socket.recv(4096)
        assert head.startswith(b"HTTP/1.1 200") and f"\r\ncontent-length: {size}\r\n".encode() in head.lower(), head
        execd.out(f"truncate -s 1000 {place}/f")
        received = len(head)
        while True:
            try:
                data = connection.socket.recv(1 << 20)
            except ConnectionResetError:
                break
            if not data:
                break
            received += len(data)
    assert received < size
    assert execd.get(f"{place}/f").body == b"x" * 1000


def test_item_10_download_that_nobody_finishes(execd, place):
    """Clients that leave in the middle cost nothing that stays."""
    execd.out(f"head -c {64 << 20} /dev/zero > {place}/f")
    count = f"ls /proc/{execd.pid}/fd | wc -l"
    before = int(execd.out(count)[0])
    for _ in range(20):
        with rawhttp.Connection(execd.address, 30) as connection:
            connection.send_request("GET", f"{execd.prefix}/files/download?path={place}/f", execd.headers)
            assert connection.socket.recv(4096).startswith(b"HTTP/1.1 200")
    # Connections that the server keeps for later count as well.
    wait_for(lambda: int(execd.out(count)[0]) <= before + 10, 15, "the descriptors of the downloads are closed")


def test_item_10_download_refused(execd, place):
    execd.refused(404, "FILE_NOT_FOUND", "GET", f"/files/download?path={place}/nope")
    execd.refused(400, "MISSING_QUERY", "GET", "/files/download")
    assert execd.get(place).status == 400
    execd.out(f"mkfifo {place}/pipe")
    assert execd.get(f"{place}/pipe").status == 400, "opening it must not hang"


@pytest.mark.parametrize(
    "query, body",
    [("offset=1", b"1\n2\n\n4"), ("offset=2&limit=2", b"2\n"), ("limit=1", b"1"), ("offset=4", b"4"), ("offset=9", b""), ("offset=1&limit=99", b"1\n2\n\n4")],
)
def test_item_10_lines(execd, place, query, body):
    execd.put(f"{place}/f", b"1\r\n2\n\n4")
    reply = execd.call("GET", f"/files/download?path={place}/f&{query}")
    assert (reply.status, reply.body, reply.header("content-type")) == (200, body, "text/plain; charset=utf-8")


def test_item_10_lines_refused(execd, place):
    execd.put(f"{place}/f", b"1\n")
    for query in ("offset=0", "limit=0", "offset=-1", "offset=x", "limit=1.5"):
        assert execd.call("GET", f"/files/download?path={place}/f&{query}").status == 400
    assert execd.call("GET", f"/files/download?path={place}/f&offset=1", headers={"Range": "bytes=0-0"}).status == 400


def test_item_10_path_resolution(execd, place):
    (home,) = execd.out("echo ~")
    (cwd,) = execd.out("pwd")
    execd.put(f"~/{place.rsplit('/')[-1]}", b"home")
    assert execd.get("$HOME/" + place.rsplit("/")[-1]).body == b"home"
    assert execd.get("${HOME}/./x/../" + place.rsplit("/")[-1]).body == b"home"
    assert execd.out(f"cat {home}/{place.rsplit('/')[-1]}; rm {home}/{place.rsplit('/')[-1]}") == ["home"]
    assert execd.call("GET", "/files/info?path=relative-nothing").status == 404
    execd.out(f"touch {cwd}/relative-file")
    assert execd.info("relative-file")["path"] == f"{cwd}/relative-file".replace("//", "/")
    execd.out(f"rm {cwd}/relative-file")
    execd.refused(500, "RUNTIME_ERROR", "GET", "/files/info?path=$NOT_DEFINED_HERE/x")
    execd.put(place + "/cost $5", b"x")
    assert execd.get(place + "/cost $5").body == b"x"


# Moving, removing, listing, searching, replacing


def test_item_10_move(execd, place):
    execd.put(f"{place}/a", b"1")
    execd.empty("POST", "/files/mv", json=[{"src": f"{place}/a", "dest": f"{place}/new/dir/b"}, {"src": f"{place}/new/dir", "dest": f"{place}/moved"}])
    assert execd.get(f"{place}/moved/b").body == b"1"
    execd.put(f"{place}/c", b"2")
    execd.refused(500, "RUNTIME_ERROR", "POST", "/files/mv", json=[{"src": f"{place}/c", "dest": f"{place}/moved"}])
    execd.refused(500, "RUNTIME_ERROR", "POST", "/files/mv", json=[{"src": f"{place}/c", "dest": f"{place}/moved/b"}])
    execd.refused(404, "FILE_NOT_FOUND", "POST", "/files/mv", json=[{"src": f"{place}/nope", "dest": f"{place}/x"}])
    execd.refused(400, "INVALID_REQUEST_BODY", "POST", "/files/mv", json={"src": "a", "dest": "b"})
    execd.refused(400, "INVALID_REQUEST_BODY", "POST", "/files/mv", json=[{"src": "a"}])
    # Another file system: copied, then removed.
    execd.put(f"{place}/far", b"3", mode=600)
    execd.empty("POST", "/files/mv", json=[{"src": f"{place}/far", "dest": "/dev/shm/osb-moved-here"}])
    assert execd.out("stat -c %a /dev/shm/osb-moved-here; cat /dev/shm/osb-moved-here; rm /dev/shm/osb-moved-here") == ["600", "3"]
    assert execd.call("GET", f"/files/info?path={place}/far").status == 404


def test_item_10_remove(execd, place):
    execd.out(f"cd {place}; touch f; mkdir d; ln -s d to_dir; ln -s nowhere dangling; ln -s f to_file")
    execd.refused(500, "RUNTIME_ERROR", "DELETE", f"/files?path={place}/d")
    execd.refused(500, "RUNTIME_ERROR", "DELETE", f"/files?path={place}/to_dir")
    execd.empty("DELETE", f"/files?path={place}/f&path={place}/dangling&path={place}/to_file&path={place}/nope")
    assert execd.out(f"ls {place}") == ["d", "to_dir"]
    execd.out(f"cd {place}; mkdir -p t/u/v; ln -s ../../d t/u/link; touch t/u/v/f d/kept")
    execd.empty("DELETE", f"/directories?path={place}/t&path={place}/nope")
    assert execd.out(f"ls {place} {place}/d | tr '\\n' ' '") == [f"{place}: d to_dir  {place}/d: kept "], "links are removed, not followed"


def test_item_10_list(execd, place):
    execd.out(f"cd {place}; mkdir -p b/c/d a; touch b/f b/c/g z .hidden; ln -s b link")

    def listed(query=""):
        return [entry["path"][len(place) + 1 :] for entry in execd.call("GET", f"/directories/list?path={place}{query}").json]

    assert listed() == [".hidden", "a", "b", "link", "z"]
    assert listed("&depth=2") == [".hidden", "a", "b", "b/c", "b/f", "link", "z"]
    assert listed("&depth=99") == [".hidden", "a", "b", "b/c", "b/c/d", "b/c/g", "b/f", "link", "z"]
    assert listed("&depth=0") == []
    for query, status, code in (("&depth=-1", 400, "INVALID_REQUEST_BODY"), ("&depth=x", 400, "INVALID_REQUEST_BODY"),
                                ("/link", 400, "INVALID_REQUEST_BODY"), ("/z", 400, "INVALID_REQUEST_BODY"), ("/nope", 404, "FILE_NOT_FOUND")):  # fmt: skip
        execd.refused(status, code, "GET", f"/directories/list?path={place}{query}")


def test_item_10_a_large_list(execd, place):
    execd.out(f"cd {place}; seq -f %05.0f 1 5000 | xargs touch")
    entries = execd.call("GET", f"/directories/list?path={place}").json
    assert [entry["path"][-5:] for entry in entries] == [f"{i:05d}" for i in range(1, 5001)]


@pytest.mark.parametrize(
    "pattern, names",
    [("*.txt", ["a.txt", "d/b.txt", "d/e/c.txt"]), ("**", ["a.txt", "d/b.txt", "d/e/c.txt", "d/e/x.py", "d/x.md", "link"]),
     ("", ["a.txt", "d/b.txt", "d/e/c.txt", "d/e/x.py", "d/x.md", "link"]), ("**/x.*", ["d/e/x.py", "d/x.md"]), ("?.txt", ["a.txt", "d/b.txt", "d/e/c.txt"]),
     ("[ab].txt", ["a.txt", "d/b.txt"]), ("[!ab].txt", ["d/e/c.txt"]), ("*.{py,md}", ["d/e/x.py", "d/x.md"]), ("nothing", []), ("d/*", []), ("A.txt", [])],
)  # fmt: skip
def test_item_10_search_by_base_name(execd, place, pattern, names):
    execd.out(f"cd {place}; mkdir -p d/e; touch a.txt d/b.txt d/e/c.txt d/x.md d/e/x.py; ln -s d link")
    found = execd.call("GET", f"/files/search?path={place}&pattern={quote(pattern)}").json
    assert [entry["path"][len(place) + 1 :] for entry in found] == names


def test_item_10_search_refused(execd, place):
    execd.put(f"{place}/f")
    execd.refused(500, "RUNTIME_ERROR", "GET", f"/files/search?path={place}&pattern=%5B")
    execd.refused(404, "FILE_NOT_FOUND", "GET", f"/files/search?path={place}/nope")
    execd.refused(400, "MISSING_QUERY", "GET", "/files/search")


def test_item_10_replace_counts(execd, place):
    execd.put(f"{place}/f", b"a b a b a", mode=640)
    (inode,) = execd.out(f"stat -c %i {place}/f")
    for old, count in (("zz", 0), ("a b a b", 1), ("a", 1)):
        assert execd.call("POST", "/files/replace?verbose=true", json={f"{place}/f": {"old": old, "new": "a"}}).json == {f"{place}/f": {"replacedCount": count}} or old == "a"
    execd.put(f"{place}/f", b"x.x.x")
    assert execd.call("POST", "/files/replace", json={f"{place}/f": {"old": "x", "new": "yy"}}).json == {f"{place}/f": {"replacedCount": 3}}
    assert execd.get(f"{place}/f").body == b"yy.yy.yy"
    execd.put(f"{place}/g", b"\xff\0bin")
    reply = execd.call("POST", "/files/replace", json={f"{place}/f": {"old": "yy", "new": ""}, f"{place}/g": {"old": "bin", "new": "ü"}})
    assert reply.json == {f"{place}/f": {"replacedCount": 3}, f"{place}/g": {"replacedCount": 1}}
    assert execd.get(f"{place}/f").body == b".." and execd.get(f"{place}/g").body == b"\xff\0\xc3\xbc"
    execd.refused(400, "INVALID_REQUEST_BODY", "POST", "/files/replace", json={f"{place}/f": {"old": "", "new": "x"}})
    execd.refused(404, "FILE_NOT_FOUND", "POST", "/files/replace", json={f"{place}/nope": {"old": "a", "new": "x"}})
    del inode


def test_item_10_replace_keeps_inode_and_mode(execd, place):
    execd.put(f"{place}/f", b"one", mode=640)
    before = execd.out(f"stat -c '%i %a' {place}/f")
    execd.call("POST", "/files/replace", json={f"{place}/f": {"old": "one", "new": "another"}})
    assert execd.out(f"stat -c '%i %a' {place}/f; cat {place}/f") == [*before, "another"]


def test_item_10_make_directories(execd, place):
    execd.empty("POST", "/directories", json={f"{place}/d/e": {"mode": 700}, f"{place}/x": {"mode": None, "owner": None, "group": None}})
    assert execd.info(f"{place}/d/e")["mode"] == 700
    execd.empty("POST", "/directories", json={f"{place}/d/e": {"mode": 755}})
    assert execd.info(f"{place}/d/e")["mode"] == 700, "what was there keeps what it has"


def test_item_10_as_somebody_else(execd, place):
    """The same routes under /v1/filesystem/{uid}/{gid}: ownership and refusals are the kernel's."""
    execd.out(f"chmod 755 {place}; mkdir -m 700 {place}/mine; chown 4242:4343 {place}/mine")
    base = "/v1/filesystem/4242/4343"
    body, media_type = form([("metadata", {"path": f"{place}/mine/f"}), ("file", b"x")])
    execd.empty("POST", base + "/files/upload", body=body, headers={"Content-Type": media_type})
    assert execd.out(f"stat -c '%u %g' {place}/mine/f") == ["4242 4343"]
    assert execd.call("GET", f"{base}/files/download?path={place}/mine/f").body == b"x"
    assert execd.call("GET", f"/v1/filesystem/5555/5555/files/download?path={place}/mine/f").status == 500
    assert execd.call("GET", f"/v1/filesystem/5555/5555/directories/list?path={place}/mine").status == 500
    assert execd.call("POST", f"{base}/files/permissions", json={f"{place}/mine/f": {"owner": "root"}}).status == 500
    assert execd.call("GET", "/v1/filesystem/x/1/files/info").status == 400


def test_item_10_watching_a_tree(execd, place):
    """+ Our own: changes below a directory as they happen."""
    with rawhttp.Connection(execd.address, 15) as connection:
        connection.send_request("GET", f"{execd.prefix}/files/watch?path={place}&recursive=true", execd.headers)
        assert connection.read_head().status == 200
        data = b""

        def next_event():
            nonlocal data
            while b"\n\n" not in data:
                data += connection.read_chunk()
            frame, _, data = data.partition(b"\n\n")
            return json.loads(frame)

        assert next_event()["type"] == "ready"
        execd.put(f"{place}/f", b"x")
        seen = []
        while not any(event.get("path") == f"{place}/f" for event in seen):
            seen.append(next_event())
    execd.refused(404, "FILE_NOT_FOUND", "GET", "/files/watch?path=/nope")


def test_item_10_deleting_much_does_not_delay_a_ping(execd, place):
    execd.out(f"cd {place}; mkdir many; cd many; for d in $(seq 20); do mkdir $d; (cd $d; seq 1 1000 | xargs touch); done")
    from daemon import Thread

    deleting = Thread(lambda: execd.empty("DELETE", f"/directories?path={place}/many"))
    slowest = 0.0
    while deleting.is_alive():
        started = time.monotonic()
        execd.empty("GET", "/ping")
        slowest = max(slowest, time.monotonic() - started)
    deleting.join()
    assert slowest < 0.5
