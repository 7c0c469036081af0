"""Files through the published client."""

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models import filesystem as models

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
def files(shared):
    shared.run(shared.sandbox, "rm -rf /tmp/f; mkdir /tmp/f")
    return shared.sandbox.files


def test_write_and_read(shared, files):
    entries = [
        models.WriteEntry(path="/tmp/f/a.txt", data="text ☃\n", mode=644),
        models.WriteEntry(path="/tmp/f/deep/er/b.bin", data=bytes(range(256)), mode=600),
        models.WriteEntry(path="/tmp/f/empty", data=""),
    ]
    shared.go(files.write_files(entries))
    assert shared.go(files.read_file("/tmp/f/a.txt")) == "text ☃\n"
    assert shared.go(files.read_bytes("/tmp/f/deep/er/b.bin")) == bytes(range(256))
    assert shared.go(files.read_file("/tmp/f/empty")) == ""


def test_large(shared, files):
    data = b"0123456789abcdef" * 500_000
    shared.go(files.write_file("/tmp/f/large", data))
    assert shared.go(files.read_bytes("/tmp/f/large")) == data


def test_range(shared, files):
    shared.go(files.write_file("/tmp/f/ten", "0123456789"))
    assert shared.go(files.read_file("/tmp/f/ten", range_header="bytes=2-4")) == "234"


def test_info(shared, files):
    shared.go(files.write_file("/tmp/f/x", "12345", mode=640, owner="nobody", group="nogroup"))
    info = shared.go(files.get_file_info(["/tmp/f/x", "/tmp/f"]))
    entry = info["/tmp/f/x"]
    assert (entry.path, entry.size, entry.mode, entry.owner, entry.group) == ("/tmp/f/x", 5, 640, "nobody", "nogroup")
    assert entry.modified_at.tzinfo is not None
    if hasattr(entry, "entry_type"):
        assert (entry.entry_type, info["/tmp/f"].entry_type) == ("file", "directory")


def test_missing(shared, files):
    with pytest.raises(SandboxApiException) as caught:
        shared.go(files.get_file_info(["/tmp/f/none"]))
    assert caught.value.status_code == 404
    assert caught.value.error.code == "FILE_NOT_FOUND"
    with pytest.raises(SandboxApiException) as caught:
        shared.go(files.read_file("/tmp/f/none"))
    assert caught.value.status_code == 404


def test_names(shared, files):
    for name in ("ü ☃", "a b+c", "100%", "q\"uote"):
        shared.go(files.write_file(f"/tmp/f/{name}", name))
        assert shared.go(files.read_file(f"/tmp/f/{name}")) == name


def test_directories_move_delete(shared, files):
    shared.go(files.create_directories([models.WriteEntry(path="/tmp/f/d/e", mode=750)]))
    shared.go(files.write_file("/tmp/f/d/x", "1"))
    shared.go(files.move_files([models.MoveEntry(src="/tmp/f/d/x", dest="/tmp/f/y")]))
    assert shared.go(files.read_file("/tmp/f/y")) == "1"
    shared.go(files.delete_files(["/tmp/f/y"]))
    shared.go(files.delete_directories(["/tmp/f/d"]))
    assert shared.run(shared.sandbox, "ls -A /tmp/f").logs.stdout == []


def test_permissions_replace_search(shared, files):
    shared.go(files.write_file("/tmp/f/one.txt", "x1x"))
    shared.go(files.set_permissions([models.SetPermissionEntry(path="/tmp/f/one.txt", mode=600)]))
    assert shared.go(files.get_file_info(["/tmp/f/one.txt"]))["/tmp/f/one.txt"].mode == 600
    shared.go(files.replace_contents([models.ContentReplaceEntry(path="/tmp/f/one.txt", old_content="x", new_content="yy")]))
    assert shared.go(files.read_file("/tmp/f/one.txt")) == "yy1yy"
    found = shared.go(files.search(models.SearchEntry(path="/tmp/f", pattern="*.txt")))
    assert [entry.path for entry in found] == ["/tmp/f/one.txt"]


def test_list_directory(shared, files):
    if not hasattr(files, "list_directory"):
        pytest.skip("this client cannot list directories")
    shared.go(files.write_files([models.WriteEntry(path=f"/tmp/f/{name}", data="") for name in ("b", "a/x")]))
    found = shared.go(files.list_directory(models.DirectoryListEntry(path="/tmp/f", depth=2)))
    assert [entry.path for entry in found] == ["/tmp/f/a", "/tmp/f/a/x", "/tmp/f/b"]


def test_with_identity(shared, files):
    if not hasattr(shared.sandbox, "files_with_identity"):
        pytest.skip("this client has no file identities")
    shared.run(shared.sandbox, "chmod 777 /tmp/f")
    as_nobody = shared.sandbox.files_with_identity(65534, 65534)
    shared.go(as_nobody.write_file("/tmp/f/theirs", "x"))
    assert shared.go(files.get_file_info(["/tmp/f/theirs"]))["/tmp/f/theirs"].owner == "nobody"
