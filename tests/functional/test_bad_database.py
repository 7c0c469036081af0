"""A state database that is damaged, somebody else's, or out of reach: rows that can be read are served, and what no restart
cures ends the service with its cause."""

import os
import sqlite3

import pytest
from lib.api import Api
from lib.service import CANNOT_START
from lib.waiting import wait_for


def store_at(service, path):
    with open(service.config_path, "a", encoding="utf-8") as file:
        file.write(f'\n[store]\npath = "{path}"\n')


def database(service):
    return service.state_dir / "db" / "opensandbox.db"


def change(service, *statements):
    connection = sqlite3.connect(database(service))
    for statement in statements:
        connection.execute(*statement)
    connection.commit()
    connection.close()


class TestDamage:
    def test_rows_that_cannot_be_read_spoil_nothing(self, new_service):
        service = new_service()
        api = Api(service)
        text, state, fine = (api.create(metadata={"team": "x"})["id"] for _ in range(3))
        service.stop()
        change(
            service,
            ("UPDATE sandboxes SET metadata = '{\"team\":' WHERE id = ?", [text]),
            ("UPDATE sandboxes SET state = 'Dancing' WHERE id = ?", [state]),
        )
        service.start()
        assert {item["id"] for item in api.list_all()} == {text, state, fine}
        found = api.call("GET", "/sandboxes?metadata=team%3Dx")
        assert found.status == 200 and {item["id"] for item in found.json["items"]} == {state, fine}, found
        assert text in service.log_tail() and state in service.log_tail()
        for name in (text, state, fine):
            assert api.status(name)["state"] == "Running", "its processes run"
            assert api.run(name, "echo here").stdout == "here"
            assert api.delete(name).status == 204
        assert api.list_all() == []

    def test_a_newer_schema_ends_the_service(self, new_service):
        service = new_service()
        service.stop()
        change(service, ("PRAGMA user_version = 999",))
        assert service.ends() == CANNOT_START
        assert "schema 999" in service.log_tail() and "store.path" in service.log_tail()

    def test_no_database_ends_the_service(self, new_service):
        service = new_service()
        service.stop()
        for path in database(service).parent.iterdir():
            if path.is_file():
                path.write_bytes(b"x" * 8192)
        assert service.ends() == CANNOT_START
        assert str(database(service)) in service.log_tail()

    def test_it_ends_also_when_that_is_found_at_a_restart_of_the_server(self, new_service):
        service = new_service()
        change(service, ("PRAGMA user_version = 999",))
        os.kill(service.server_pid(), 9)
        assert service.process.wait(15) == CANNOT_START


class TestPlace:
    def test_a_place_that_may_not_be_written_ends_the_service(self, new_service):
        service = new_service(start=False)
        place = service.directory / "private"
        place.mkdir(mode=0o700)
        store_at(service, place / "state.db")
        assert service.ends() not in (0, None)
        assert str(place) in service.log_tail()

    def test_a_file_that_may_not_be_written_ends_the_service(self, new_service):
        service = new_service(start=False)
        place = service.directory / "open"
        place.mkdir()
        place.chmod(0o777)
        (place / "state.db").touch(mode=0o600)
        store_at(service, place / "state.db")
        assert service.ends() not in (0, None)
        assert str(place) in service.log_tail()

    def test_another_service_user_owns_the_files(self, new_service):
        service = new_service(native={"user": "daemon"})
        api = Api(service)
        name = api.create()["id"]
        service.stop()
        text = service.config_path.read_text()
        service.config_path.write_text(text.replace('"daemon"', '"games"'))
        service.start()
        assert api.status(name)["state"] == "Running"
        assert api.delete(name).status == 204

    def test_links_beside_the_database_are_left_alone(self, new_service):
        service = new_service(native={"user": "daemon"})
        service.stop()
        mine = service.directory / "mine"
        mine.write_text("root's own")
        (database(service).parent / "link").symlink_to(mine)
        os.link(mine, database(service).parent / "name")
        text = service.config_path.read_text()
        service.config_path.write_text(text.replace('"daemon"', '"games"'))
        service.start()
        assert mine.stat().st_uid == 0
        service.stop()


class TestTwoServices:
    @pytest.fixture
    def pair(self, new_service):
        # With accounts of their own they could not even open each other's database.
        first, second = (new_service(start=False, native={"user": "daemon"}) for _ in range(2))
        place = first.directory / "shared"
        place.mkdir()
        place.chmod(0o777)
        for service in (first, second):
            store_at(service, place / "state.db")
        return first, second

    def test_the_second_one_ends(self, pair):
        first, second = pair
        api = Api(first.start())
        name = api.create()["id"]
        assert second.ends() == CANNOT_START
        assert "another service" in second.log_tail() and "store.path" in second.log_tail()
        assert api.status(name)["state"] == "Running"
        assert api.delete(name).status == 204

    def test_the_second_one_ends_also_while_the_first_is_down(self, pair):
        first, second = pair
        api = Api(first.start())
        name = api.create()["id"]
        first.stop()
        second.directory.chmod(0o755)
        assert second.ends() == CANNOT_START
        assert str(first.state_dir) in second.log_tail()
        first.start()
        assert api.status(name)["state"] == "Running"
        first.kill_server()
        wait_for(first.is_healthy, 10, "its own server opens it again")
        assert api.delete(name).status == 204

    def test_a_database_inside_another_services_directory(self, new_service):
        first, second = new_service(), new_service(start=False)
        store_at(second, database(first))
        assert second.ends() not in (0, None)
        assert Api(first).list_all() == []
