"""No end is lost: entry processes with codes and last words of their own end around a stop and around kill -9 of the service."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import leaks
from lib.api import Api
from lib.waiting import process_gone, wait_for

WINDOW = 1.5  # seconds in which they end


def stop(service):
    service.stop()
    service.start()


def terminate_server(service):
    """A stop of the server alone; the launcher starts another one."""
    old = service.server_pid()
    os.kill(old, signal.SIGTERM)
    wait_for(lambda: process_gone(old), 15, "the server ends")
    service.wait_healthy(20)


def kill_server(service):
    service.kill_server(timeout=20)


def kill_launcher(service):
    service.kill_launcher()
    service.start()


def kill_both(service):
    service.kill_both()
    service.start()


WAYS = {"stop": stop, "stop of the server": terminate_server, "server": kill_server, "launcher": kill_launcher, "both": kill_both}


def run(new_service, way, count, rounds):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(rounds):
            # Enough time to make all of them before the first one ends.
            first = time.time() + 1 + count * service.create_seconds

            def make(number, first=first):
                code = number % 200 + 1
                end = first + WINDOW * number / count
                wait = max(end - time.time(), 0)
                made = api.create(entrypoint=["sh", "-c", f"sleep {wait:.3f}; echo words of {number}; exit {code}"])
                return made["id"], code, f"words of {number}"

            made = list(pool.map(make, range(count)))
            kills = 0
            while time.time() < first + WINDOW:
                time.sleep(max(0.0, min(first + WINDOW * 0.3 - time.time(), 60)))
                WAYS[way](service)
                kills += 1

            def settled(name):
                return api.status(name)["state"] in ("Terminated", "Failed")

            for name, _, _ in made:
                wait_for(lambda name=name: settled(name), 30, "they end")
            wrong = []
            for name, code, words in made:
                status = api.status(name)
                logs = api.call("GET", f"/sandboxes/{name}/diagnostics/logs").body.decode()
                if status["reason"] != "ENTRYPOINT_FAILED" or not status["message"].endswith(f"code {code}") or words not in logs:
                    wrong.append((status["reason"], status["message"], logs[-80:]))
            assert not wrong, f"{len(wrong)} of {count} ends are wrong after {kills} kills: {wrong[:3]}"
            assert list(pool.map(lambda one: api.delete(one[0]).status, made)) == [204] * count
    leaks.assert_nothing_leaked(service, baseline)


@pytest.mark.parametrize("way", WAYS)
def test_no_end_is_lost(new_service, way):
    run(new_service, way, 60, 1)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_no_end_of_five_hundred_is_lost(new_service, way):
    run(new_service, way, 100, 5)
