"""The egress process with many sandboxes. Run with --long."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib.api import Api
from lib.netlab import DNS, lab, wait_egress  # noqa: F401

pytestmark = pytest.mark.long

COUNT = 500
POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": f"{name}.test"} for name in ("allowed", "other", "a.wild")]}
SPEAK = "exec 3<>/dev/tcp/allowed.test/80; printf 'GET / HTTP/1.0\\r\\nHost: allowed.test\\r\\n\\r\\n' >&3; tail -n1 <&3"


def pss_kb(pid):
    return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])


@pytest.mark.alone
def test_memory_per_sandbox(lab, bin_dir, request):  # noqa: F811
    """Half with a policy of their own, half with the default; each has looked a name up and has fetched a page."""
    from lib.plugin import service_class

    service = service_class(request)(bin_dir, sections={"egress": {"name_servers": [DNS]}})
    request.addfinalizer(service.destroy)
    service.start()
    api = Api(service)

    def make(number):
        sandbox = api.create(timeout=3600, **({"networkPolicy": POLICY} if number % 2 else {}))["id"]
        done = api.run(sandbox, ["bash", "-c", SPEAK])
        assert done.stdout == "hello allowed.test", done
        return sandbox

    make(0)
    make(1)
    egress = wait_egress(service)
    before = pss_kb(egress)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, range(COUNT)))
    after = pss_kb(egress)
    assert wait_egress(service) == egress, "it is still the same process"
    each = (after - before) / COUNT
    print(f"{before} kB with 2 sandboxes, {after} kB with {COUNT + 2}: {each:.1f} kB for each")
    assert each <= 100
    # All of them are served still.
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda one: api.run(one, ["bash", "-c", SPEAK]).stdout, made[::50])) == {"hello allowed.test"}
        list(pool.map(api.delete, made))
