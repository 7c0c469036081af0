"""What a sandbox under runsc reaches: the same as any other, by the same policy. In a small internet of its own (lib/netlab.py)."""

from lib.netlab import lab  # noqa: F401
from lib.runsc import runsc_service

from test_egress import SECTIONS, Net

RUNSC = {"extensions": {"opensandbox.extensions.runtime": "runsc"}}


def test_what_it_reaches(lab, bin_dir):  # noqa: F811
    made = runsc_service(bin_dir, sections=SECTIONS)
    try:
        net = Net(made.start(timeout=60), lab)
        with net.create("allow allowed.test", **RUNSC) as box:
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            assert box.resolve("other.test") == "gaierror -2"
            assert box.get("http://1.2.3.11/").startswith("403 "), "an address that nobody looked up"
            assert [line for line in box.log() if line.get("name", line.get("host")) == "other.test"], box.log()
        with net.create_plain(**RUNSC) as box:
            assert box.get("http://other.test/") == "200 hello other.test"
            assert box.get("http://10.9.8.7/").startswith("403 "), "nothing private"
    finally:
        made.destroy()
