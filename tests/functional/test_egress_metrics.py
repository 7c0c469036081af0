"""What the egress process counts (GET /metrics), and whom it tells of denials (egress.deny_webhook)."""

import json
import os
import signal
import textwrap
import time

import pytest
from lib import rawhttp
from lib.api import Api
from lib.netlab import DNS, lab, wait_egress  # noqa: F401
from lib.waiting import wait_for

POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "allowed.test"}]}


def service_with(bin_dir, request, env=None, **egress):
    from lib.plugin import service_class

    service = service_class(request)(bin_dir, sections={"egress": {"name_servers": [DNS], **egress}}, env=env)
    request.addfinalizer(service.destroy)
    service.start()
    return Api(service)


@pytest.fixture
def counted(lab, bin_dir, request):  # noqa: F811
    lab.seen()
    return service_with(bin_dir, request)


def scrape(api):
    return rawhttp.request(api.address, "GET", "/metrics")


def metrics(api):
    reply = scrape(api)
    assert reply.status == 200, reply
    assert reply.header("Content-Type").startswith("text/plain; version=0.0.4")
    values = {}
    for line in reply.body.decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name.removeprefix("opensandbox_egress_")] = int(value)
    return values


def look_up(api, sandbox, name):
    program = f"import socket\ntry: print(socket.gethostbyname({name!r}))\nexcept OSError as e: print('none')"
    return api.run(sandbox, ["python3", "-c", program]).stdout.strip()


class TestMetrics:
    def test_verdicts_bytes_and_rules_are_counted(self, counted):
        api = counted
        before = metrics(api)
        assert before['opensandbox_metrics_up{runtime="native"}'] == 1
        assert before["attached_sandboxes"] == 0
        sandbox = api.create(networkPolicy=POLICY)["id"]
        assert look_up(api, sandbox, "allowed.test") == "1.2.3.10"
        assert look_up(api, sandbox, "other.test") == "none"
        api.run(sandbox, ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://allowed.test/bytes/100000').read()"])
        api.run(sandbox, ["python3", "-c", "import socket; s = socket.create_connection(('10.9.8.7', 7)); s.recv(1)"])
        wait_for(lambda: metrics(api)['connections_total{verdict="allowed"}'] == 1, 5, "the connection has ended")
        after = metrics(api)
        assert after['lookups_total{verdict="allowed"}'] >= 2
        assert after['lookups_total{verdict="denied"}'] >= 1
        assert after['refusals_total{rule="default"}'] >= 1
        assert after['connections_total{verdict="denied"}'] == 1
        assert after['refusals_total{rule="address"}'] == 1
        assert after["received_bytes_total"] >= 100000 and after["sent_bytes_total"] > 10
        assert after["attached_sandboxes"] == 1
        api.delete(sandbox)
        wait_for(lambda: metrics(api)["attached_sandboxes"] == 0, 5, "nothing is attached")

    def test_labels_are_the_same_whatever_happens(self, counted):
        """No name, address or id of a sandbox is in them."""
        api = counted
        names = set(metrics(api))
        sandbox = api.create(networkPolicy=POLICY)["id"]
        look_up(api, sandbox, "other.test")
        text = scrape(api).body.decode()
        assert set(metrics(api)) == names
        assert sandbox not in text and "other.test" not in text
        api.delete(sandbox)

    def test_a_server_without_a_network_has_none(self, lab, bin_dir, request):  # noqa: F811
        api = service_with(bin_dir, request, enabled=False)
        assert {name.split("{")[0] for name in metrics(api)} == {"opensandbox_metrics_up"}


def posts(lab, seconds=10, count=1):  # noqa: F811
    """Those that arrive, until there are so many; or all that arrive within a time."""
    found, end = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        found += [seen for seen in lab.seen() if seen["what"] == "post"]
        time.sleep(0.05)
    return found


class TestWebhook:
    def test_a_denied_lookup_is_told_once(self, lab, bin_dir, request):  # noqa: F811
        lab.seen()
        api = service_with(bin_dir, request, deny_webhook="http://other.test:8080/denied?x=1")
        sandbox = api.create(networkPolicy=POLICY)["id"]
        for _ in range(3):
            assert look_up(api, sandbox, "Secret.Test") == "none"
        assert look_up(api, sandbox, "allowed.test") == "1.2.3.10"
        told = posts(lab, seconds=2, count=9)
        assert [(one["host"], one["path"], one["type"]) for one in told] == [("other.test:8080", "/denied?x=1", "application/json")]
        body = json.loads(told[0]["body"])
        assert body.pop("timestamp").endswith("Z")
        assert body == {"hostname": "secret.test", "source": "opensandbox-egress", "sandboxId": sandbox}
        assert metrics(api)['webhook_total{outcome="delivered"}'] == 1

    def test_one_that_fails_is_tried_again(self, lab, bin_dir, request):  # noqa: F811
        lab.seen()
        api = service_with(bin_dir, request, deny_webhook="http://1.2.3.11:8080/flaky-once")
        sandbox = api.create(networkPolicy=POLICY)["id"]
        look_up(api, sandbox, "secret.test")
        assert len(posts(lab, count=2)) == 2
        wait_for(lambda: metrics(api)['webhook_total{outcome="delivered"}'] == 1, 5, "it is delivered")

    def test_by_tls(self, lab, bin_dir, request):  # noqa: F811
        """To a server whose certificate an authority of the operator's has signed."""
        lab.seen()
        trusted = {"SSL_CERT_FILE": str(lab.directory / "ca.pem")}
        api = service_with(bin_dir, request, trusted, deny_webhook="https://other.test/flaky-tls?x=1")
        sandbox = api.create(networkPolicy=POLICY)["id"]
        look_up(api, sandbox, "secret.test")
        told = posts(lab, count=2)
        assert [(one["host"], one["path"], one["type"]) for one in told] == [("other.test", "/flaky-tls?x=1", "application/json")] * 2
        assert json.loads(told[1]["body"])["hostname"] == "secret.test"
        wait_for(lambda: metrics(api)['webhook_total{outcome="delivered"}'] == 1, 5, "it is delivered")
        # Another life of the egress process finds somebody who speaks TLS again.
        os.kill(before := wait_egress(api.service), signal.SIGKILL)
        wait_egress(api.service, other_than=before)
        look_up(api, sandbox, "further.test")
        assert json.loads(posts(lab, seconds=8, count=1)[0]["body"])["hostname"] == "further.test"

    @pytest.mark.parametrize("url", ["https://other.test/denied", "https://1.2.3.11/denied"])
    def test_by_tls_to_nobody_who_cannot_prove_himself(self, lab, bin_dir, request, url):  # noqa: F811
        """An authority that nobody knows here, and a certificate for other names."""
        lab.seen()
        trusted = {"SSL_CERT_FILE": str(lab.directory / "ca.pem")} if "1.2.3" in url else None
        api = service_with(bin_dir, request, trusted, deny_webhook=url)
        sandbox = api.create(networkPolicy=POLICY)["id"]
        look_up(api, sandbox, "secret.test")
        wait_for(lambda: metrics(api)['webhook_total{outcome="failed"}'] == 1, 20, "it is given up")
        assert not [one for one in lab.seen() if one["what"] == "post"]

    def test_nobody_else_is_called(self, lab, bin_dir, request):  # noqa: F811
        lab.seen()
        api = service_with(bin_dir, request, deny_webhook="http://1.2.3.11:8080/elsewhere")
        sandbox = api.create(networkPolicy=POLICY)["id"]
        look_up(api, sandbox, "secret.test")
        assert [one["path"] for one in posts(lab, seconds=2, count=9)] == ["/elsewhere"]
        assert metrics(api)['webhook_total{outcome="failed"}'] == 1

    def test_a_receiver_that_is_away_holds_nobody_up(self, lab, bin_dir, request):  # noqa: F811
        api = service_with(bin_dir, request, deny_webhook="http://1.2.3.99:8080/")
        sandbox = api.create(networkPolicy=POLICY)["id"]
        program = """
            import socket, time
            begin = time.monotonic()
            for i in range(400):
                try: socket.gethostbyname(f"secret{i}.test")
                except OSError: pass
            print(time.monotonic() - begin)
        """
        took = float(api.run(sandbox, ["python3", "-c", textwrap.dedent(program)]).stdout)
        assert took < 20, "a lookup waited for the webhook"
        assert metrics(api)['webhook_total{outcome="dropped"}'] >= 400 - 256 - 1
