"""What pages can do, in a real browser: those that a sandbox serves under the server's own origin, and those of other sites.

Every attempt is made beside a control that differs in its target alone: the page's own sandbox, or its own server.
"""

import shutil
import threading
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api
from lib.waiting import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

from page_server import make_server  # noqa: E402

PORT = 8231
REBOUND = "rebound.example"

FETCH = """async ([url, options]) => {
  try { const r = await fetch(url, options); return [r.status, r.type === 'opaque' ? '' : await r.text()] }
  catch (e) { return [0, String(e)] }
}"""
SOCKET = """url => new Promise(done => {
  const s = new WebSocket(url)
  s.onopen = () => { s.close(); done('open') }
  s.onerror = () => done('refused')
})"""
# What the page can read of a document in a frame of its own.
FRAME = """url => new Promise(done => {
  const f = document.createElement('iframe')
  f.onload = () => { try { done(f.contentDocument.body.innerText) } catch (e) { done('unreadable') } }
  f.src = url
  document.body.append(f)
})"""
# The same for a window.
WINDOW = """async ([url, name]) => {
  const w = window.open(url, name)
  for (let i = 0; i < 100; i++) {
    await new Promise(r => setTimeout(r, 20))
    try {
      if (w.location.href === 'about:blank' || w.document.readyState !== 'complete') continue
      return w.document.body.innerText
    } catch (e) { return 'unreadable' }
  }
  return 'never loaded'
}"""
FORM = """([url, value]) => new Promise(done => {
  const target = document.createElement('iframe')
  target.name = 'target-' + Math.random()
  document.body.append(target)
  const form = document.createElement('form')
  Object.assign(form, {method: 'POST', action: url, enctype: 'text/plain', target: target.name})
  const field = document.createElement('input')
  Object.assign(field, {name: value})
  form.append(field)
  document.body.append(form)
  target.onload = () => { try { done(target.contentDocument.body.innerText) } catch (e) { done('unreadable') } }
  form.submit()
})"""
REGISTER = """async ([script, scope]) => {
  try { await navigator.serviceWorker.register(script, {scope}); return 'registered' } catch (e) { return String(e) }
}"""


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"])
        yield browser
        browser.close()


@pytest.fixture
def tab(browser):
    with browser.new_context() as context:
        yield context.new_page()


class Site:
    """A sandbox that serves pages."""

    def __init__(self, api):
        self.api = api
        self.id = api.create()["id"]
        api.upload(self.id, "/tmp/page_server.py", Path(__file__).with_name("page_server.py").read_bytes())
        assert api.run(self.id, f"/usr/bin/python3 /tmp/page_server.py {PORT} > /tmp/page_server.log 2>&1 &").exit_code == 0
        endpoint = api.call("GET", f"/sandboxes/{self.id}/endpoints/{PORT}").json["endpoint"]
        self.path = "/" + endpoint.partition("/")[2]
        self.origin = "http://{}:{}".format(*api.address)
        self.url = self.origin + self.path
        wait_for(lambda: rawhttp.request(api.address, "GET", self.path + "/page").status == 200, 15, "the page is served", interval=0.1)

    def has(self, path):
        return self.api.run(self.id, f"test -e {path}").exit_code == 0


@pytest.fixture(scope="module")
def ours(api):
    site = Site(api)
    yield site
    api.delete(site.id)


@pytest.fixture(scope="module")
def other(api):
    site = Site(api)
    yield site
    api.delete(site.id)


@pytest.fixture(scope="module")
def elsewhere():
    """A site that has nothing to do with the server; the port of it."""
    server = make_server(0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join(10)


@pytest.fixture
def page(tab, ours):
    tab.goto(ours.url + "/page")
    return tab


class TestPageOfASandbox:
    def test_fetch(self, page, ours, other, api):
        for mode in ("cors", "same-origin", "no-cors"):
            status, text = page.evaluate(FETCH, ["/v1/sandboxes", {"mode": mode}])
            assert status == 403 and other.id not in text, (mode, status, text)
            assert page.evaluate(FETCH, [ours.path + "/x", {"mode": mode}]) == [200, "got it"]
        assert page.evaluate(FETCH, [f"/v1/sandboxes/{other.id}", {"method": "DELETE"}])[0] == 403
        assert page.evaluate(FETCH, [ours.path + "/x", {"method": "DELETE"}])[0] == 200
        assert api.status(other.id)["state"] == "Running"

    def test_redirected_fetch(self, page, ours, other, elsewhere):
        """The way around: by its own sandbox, and by another site."""
        for step in (ours.path, f"http://127.0.0.1:{elsewhere}"):
            for path in ("/v1/sandboxes", f"/sandboxes/{other.id}/proxy/44772/files/download?path=/etc/hostname"):
                status, text = page.evaluate(FETCH, [f"{step}/redirect?{ours.origin}{path}", {}])
                assert status in (0, 403) and other.id not in text, (step, path, status, text)
        assert page.evaluate(FETCH, [f"{ours.path}/redirect?{ours.url}/x", {}]) == [200, "got it"]

    def test_frame(self, page, ours, other):
        assert "a page" in page.evaluate(FRAME, ours.path + "/page")
        assert other.id not in page.evaluate(FRAME, "/v1/sandboxes")

    def test_window(self, page, ours, other):
        assert "a page" in page.evaluate(WINDOW, [ours.path + "/page", "own"])
        text = page.evaluate(WINDOW, ["/v1/sandboxes", "list"])
        assert other.id not in text, text

    def test_window_by_another_name_of_the_server(self, page, ours, other, api):
        """Under `localhost` the list is another site's link; a second page there finds that window by its name."""
        by_name = f"http://localhost:{api.address[1]}"
        page.evaluate("url => { window.open(url, 'list') }", by_name + "/v1/sandboxes")
        wait_for(lambda: (page.wait_for_timeout(50), len(page.context.pages) == 2)[1], 10, "the window is open")
        shown = page.context.pages[1]
        shown.wait_for_load_state()
        with page.expect_popup() as popup:
            page.evaluate("url => { window.open(url, 'helper') }", by_name + ours.path + "/page")
        helper = popup.value
        helper.wait_for_load_state()
        read = "name => { const w = window.open('', name); try { return w.document.body.innerText } catch (e) { return 'unreadable' } }"
        assert other.id not in helper.evaluate(read, "list")
        # The control: the same way into a window with the sandbox's own page.
        helper.evaluate("url => { window.open(url, 'own') }", ours.path + "/page")
        wait_for(lambda: (page.wait_for_timeout(50), helper.evaluate(read, "own"))[1] == "a page", 10, "its own page can be read")

    def test_form(self, page, ours, api):
        before = {item["id"] for item in api.list_all()}
        body = '{"image":{"uri":"host"},"entrypoint":["true"],"resourceLimits":{},"x":"'
        assert "POST" in page.evaluate(FORM, [ours.path + "/x", body])
        page.evaluate(FORM, ["/v1/sandboxes", body])
        status, _ = page.evaluate(FETCH, ["/v1/sandboxes", {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": body + '"}'}])
        assert status == 403
        assert {item["id"] for item in api.list_all()} == before

    @pytest.mark.parametrize("keyed", [False, True], ids=["keyless", "keyed"])
    def test_service_worker(self, tab, ours, keyed, request):
        site = ours
        if keyed:
            site = Site(Api(request.getfixturevalue("keyed_service")))
            request.addfinalizer(lambda: site.api.delete(site.id))
        tab.goto(site.url + "/page")
        script = site.path + "/worker.js"
        assert tab.evaluate(FETCH, [script, {}])[0] == 200, "the script itself can be loaded"
        for scope in ("/", "/v1/", site.path + "/"):
            assert tab.evaluate(REGISTER, [script, scope]) != "registered", scope
        assert tab.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0

    def test_another_sandboxs_commands(self, page, ours, other, api):
        for site in (other, ours):  # not even its own: a page has no business with the execution API
            path = f"/sandboxes/{site.id}/proxy/44772/command"
            body = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": '{"command":"touch /tmp/driven"}'}
            assert page.evaluate(FETCH, [path, body])[0] == 403
            assert page.evaluate(FETCH, [path.replace("44772", "044772"), body])[0] == 403
            assert not site.has("/tmp/driven")
            assert page.evaluate(FETCH, [f"/sandboxes/{site.id}/proxy/44772/files/download?path=/etc/hostname", {}])[0] == 403
        assert page.evaluate(FETCH, [ours.path + "/x", {**body, "body": "y"}]) == [200, "POST y"]
        assert api.run(other.id, "touch /tmp/driven").exit_code == 0, "a program may"
        api.run(other.id, "rm /tmp/driven")

    def test_another_sandboxs_terminal(self, page, ours, other, api):
        made = api.execd(other.id, "POST", "/pty", json={})
        assert made.status in (200, 201), made
        session = made.json["session_id"]
        address = ours.origin.replace("http:", "ws:")
        assert page.evaluate(SOCKET, f"{address}/sandboxes/{other.id}/proxy/44772/pty/{session}/ws") == "refused"
        assert page.evaluate(SOCKET, f"{address}{ours.path}/socket") == "open"

    def test_storage_is_not_cleared(self, page, ours):
        page.evaluate("() => localStorage.setItem('kept', 'yes')")
        assert page.evaluate(FETCH, [ours.path + "/clear", {}]) == [200, "cleared"]
        assert page.evaluate("() => localStorage.getItem('kept')") == "yes"

    def test_cookies_are_for_its_own_paths(self, page, ours):
        assert page.evaluate(FETCH, [ours.path + "/cookie", {}])[0] == 200
        cookies = page.context.cookies()
        assert {cookie["name"] for cookie in cookies} == {"mine", "also"}
        assert {cookie["path"] for cookie in cookies} == {ours.path + "/"}

    def test_what_is_not_stopped(self, page, other):
        """Ports of other sandboxes share the origin on a server without a key (docs/security-model.md says so)."""
        assert page.evaluate(FETCH, [f"/sandboxes/{other.id}/proxy/{PORT}/x", {}]) == [200, "got it"]


class TestPageOfAnotherSite:
    @pytest.fixture(params=["127.0.0.1", "localhost"], ids=["another port", "another site"])
    def foreign(self, request, tab, elsewhere):
        tab.goto(f"http://{request.param}:{elsewhere}/page")
        tab.own = f"http://{request.param}:{elsewhere}"
        return tab

    def test_fetch(self, foreign, ours, other, api):
        body = '{"command":"touch /tmp/driven-from-afar"}'
        for mode in ("cors", "no-cors"):
            status, text = foreign.evaluate(FETCH, [ours.origin + "/v1/sandboxes", {"mode": mode}])
            assert status == 0 and other.id not in text, (mode, status, text)
            foreign.evaluate(FETCH, [f"{ours.origin}/sandboxes/{other.id}/proxy/44772/command", {"mode": mode, "method": "POST", "body": body}])
            assert foreign.evaluate(FETCH, [foreign.own + "/x", {"mode": mode}]) == [200, "got it"]
        assert not other.has("/tmp/driven-from-afar")

    def test_frame_and_window(self, foreign, ours, other):
        assert "a page" in foreign.evaluate(FRAME, foreign.own + "/page")
        assert other.id not in foreign.evaluate(FRAME, ours.origin + "/v1/sandboxes")
        for frame in foreign.frames[1:]:
            assert other.id not in frame.content(), "the list was shown in a frame"
        assert foreign.evaluate(WINDOW, [ours.origin + "/v1/sandboxes", "list"]) == "unreadable"

    def test_form(self, foreign, ours, api):
        before = {item["id"] for item in api.list_all()}
        assert "POST" in foreign.evaluate(FORM, [foreign.own + "/x", "{}"])
        foreign.evaluate(FORM, [ours.origin + "/v1/sandboxes", '{"image":{"uri":"host"},"entrypoint":["true"],"resourceLimits":{},"x":"'])
        assert {item["id"] for item in api.list_all()} == before

    def test_terminal(self, foreign, ours, other, api):
        session = api.execd(other.id, "POST", "/pty", json={}).json["session_id"]
        address = ours.origin.replace("http:", "ws:")
        assert foreign.evaluate(SOCKET, f"{address}/sandboxes/{other.id}/proxy/44772/pty/{session}/ws") == "refused"
        assert foreign.evaluate(SOCKET, f"{address}{ours.path}/socket") == "refused"
        assert foreign.evaluate(SOCKET, foreign.own.replace("http:", "ws:") + "/socket") == "open"


def test_a_name_that_is_bound_to_loopback(tab, api, ours):
    """The browser takes it for a site of its own; only Host tells."""
    refused = tab.goto(f"http://{REBOUND}:{api.address[1]}/v1/sandboxes")
    assert refused.status == 403 and ours.id not in refused.text()
    assert tab.goto(f"http://{REBOUND}:{api.address[1]}{ours.path}/page").status == 403
    typed = tab.goto(f"http://127.0.0.1:{api.address[1]}/v1/sandboxes?pageSize=200")
    assert typed.status == 200 and ours.id in typed.text()


class TestPreview:
    @pytest.fixture
    def preview(self, tab, ours):
        host = ours.api.call("GET", f"/sandboxes/{ours.id}/endpoints/{PORT}?preview=true").json["endpoint"]
        tab.goto(f"http://{host}/page")
        return tab

    def test_it_has_an_origin_of_its_own(self, preview, ours, other):
        assert preview.evaluate("fetch('/page').then(r => r.status)") == 200, "absolute links are its own"
        assert preview.evaluate("document.cookie = 'a=1'; document.cookie") == "a=1"
        foreign = other.api.call("GET", f"/sandboxes/{other.id}/endpoints/{PORT}?preview=true").json["endpoint"]
        assert preview.evaluate(FETCH, [f"http://{foreign}/page", {}])[0] == 0
        preview.goto(f"http://{foreign}/page")
        assert preview.evaluate("document.cookie") == ""

    def test_it_reaches_neither_the_api_nor_a_sandbox(self, preview, ours):
        origin = ours.origin.replace("127.0.0.1", "localhost")
        for url in (f"{origin}/sandboxes", f"{origin}/sandboxes/{ours.id}/proxy/44772/ping", f"{origin}{ours.path}/page"):
            assert preview.evaluate(FETCH, [url, {}])[0] in (0, 403), url
        made = preview.evaluate(FETCH, [f"{origin}/sandboxes/{ours.id}/proxy/44772/command", {"method": "POST", "body": '{"command":"touch /tmp/by-preview"}'}])
        assert made[0] in (0, 403) and not ours.has("/tmp/by-preview")
