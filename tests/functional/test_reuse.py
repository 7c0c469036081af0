"""File systems and networks that a sandbox left as it found them serve the next one; all others must not."""

import platform

import pytest

pytestmark = pytest.mark.usefixtures("no_leaks")

can_reuse = pytest.mark.skipif(
    tuple(int(part) for part in platform.release().split(".")[:2]) < (6, 15), reason="this kernel cannot copy a detached mount"
)

LOOK = "stat -c '%a %u %g %h %y' / /usr; ls -A / /tmp /root /usr/local /run | sort; getfattr -d -m - / /usr 2>/dev/null; cat /etc/passwd"
PLACE = "stat -c %d /"
NETWORK = "readlink /proc/self/ns/net; cat /proc/net/dev /proc/net/snmp"


def one_life(api, *commands):
    """The output of each command in a sandbox of its own."""
    made = api.create()["id"]
    try:
        return [api.run(made, command).stdout for command in commands]
    finally:
        assert api.delete(made).status == 204


@can_reuse
def test_what_was_left_alone_is_used_again(api):
    # Each by itself, for they are kept in stocks of their own; and not at once, for what is complete is taken first.
    left = set(one_life(api, PLACE, NETWORK))
    for _ in range(40):
        left -= set(one_life(api, PLACE, NETWORK))
    assert not left


TRACES = {
    "a file in the root": "echo 1 > /trace",
    "a file that is gone again": "touch /trace; rm /trace",
    "a file deeper down": "echo 1 > /tmp/trace",
    "a file deeper down that is gone again": "echo 1 > /tmp/trace; rm /tmp/trace",
    "a file in /usr": "echo 1 > /usr/local/trace",
    "a removed file": "rm -rf /usr/share/doc /etc/motd /etc/hostname /usr/bin/[",
    "a changed file": "echo trace:x:0:0::/:/bin/sh >> /etc/passwd",
    "the mode of the root": "chmod 777 /",
    "the owner of the root": "chown 1000:1000 /",
    "the times of the root": "touch -d 2001-01-01 /",
    "an attribute of the root": "python3 -c 'import os; os.setxattr(\"/\", \"user.trace\", b\"1\")' || chmod 700 /",
    "the mode of /usr": "chmod 777 /usr",
    "a directory in place of one": "mkdir /trace.d && mv /trace.d /tmp/trace.d",
    "an open file without a name": "exec 9> /trace; rm /trace; echo secret >&9; sleep 1000 > /dev/null 2>&1 &",
}


@pytest.mark.parametrize("trace", TRACES)
def test_traces_do_not_reach_the_next(api, trace):
    clean = one_life(api, LOOK)[0].splitlines()
    one_life(api, TRACES[trace])
    for _ in range(8):
        look = one_life(api, LOOK)[0].splitlines()
        # Two that are new differ in the times at which they were made, and in nothing else.
        assert [line.split()[:4] for line in look[:2]] == [line.split()[:4] for line in clean[:2]]
        assert look[2:] == clean[2:]
        assert "2001-01-01" not in look[0]


@can_reuse
def test_a_network_that_was_used_is_not_used_again(api):
    quiet = one_life(api, NETWORK)[0]
    talk = "python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))\"; " + NETWORK
    noroute = "python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))\"; " + NETWORK
    for command in (talk, noroute):
        loud = one_life(api, command)[0]
        assert loud.splitlines()[1:] != quiet.splitlines()[1:], "the counters tell"
        for _ in range(8):
            later = one_life(api, NETWORK)[0]
            assert later.splitlines()[0] != loud.splitlines()[0]
            assert later.splitlines()[1:] == quiet.splitlines()[1:]


GROUPS = """
import socket, struct, sys, time

def counters():
    return [open("/proc/net/" + name).read() for name in ("dev", "snmp", "snmp6", "netstat", "dev_snmp6/lo", "igmp6")]

def join(i):
    if sys.argv[1] == "6":
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        group = socket.inet_pton(socket.AF_INET6, f"ff02::1:{i + 16:x}") + struct.pack("@I", 1)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(f"239.1.2.{i + 1}") + socket.inet_aton("127.0.0.1"))
    return s

held = [join(i) for i in range(19)]
for s in held:
    s.close()
left = counters()
time.sleep(2.5)  # more than twice the longest delay of the kernel
print("nothing more" if counters() == left else f"{left} became {counters()}")
"""


@pytest.mark.parametrize("version", ["4", "6"])
def test_groups_that_were_joined_and_left_send_nothing_later(api, make_sandbox, version):
    """The end of a sandbox leaves its groups, and then the counters are read. What the kernel sends later would be sent in, and
    counted in, the network of somebody else."""
    assert api.run(make_sandbox()["id"], ["python3", "-c", GROUPS, version]).stdout == "nothing more"


@can_reuse
def test_times_of_access_do_not_tell(api):
    """Neither what a sandbox looked at, nor what the launcher did to find out."""
    before = one_life(api, PLACE, "stat -c %x / /usr", "ls / /usr", "find / -xdev -maxdepth 2", "stat -c %x / /usr")
    assert before[1] == before[4], "looking leaves a trace"
    for _ in range(8):
        place, times = one_life(api, PLACE, "stat -c %x / /usr")
        if place == before[0]:
            assert times == before[1]


def test_a_network_that_was_proxied_into_is_not_used_again(api, service):
    made = api.create()["id"]
    network = api.run(made, "readlink /proc/self/ns/net").stdout
    # As long as this is open no other one gets its number.
    with open(f"/proc/{service.scope.sandbox_pids(made)[0]}/ns/net"):
        api.call("GET", f"/sandboxes/{made}/proxy/8099/")  # nobody listens: the host side went in and came back
        assert api.delete(made).status == 204
        assert network not in [one_life(api, "readlink /proc/self/ns/net")[0] for _ in range(8)]


def test_mount_tables_name_nothing_of_others(api):
    before = api.create()["id"]
    assert api.delete(before).status == 204
    for _ in range(3):
        table = one_life(api, "cat /proc/self/mountinfo")[0]
        assert before not in table and "spares" not in table
