"""Runs in the environment "jupyter": a line of code in, the microseconds of its execution out."""

import sys
import time

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
for line in sys.stdin:
    began = time.perf_counter()
    identity = client.execute(line.rstrip("\n"))
    idle = replied = False
    while not idle:
        message = client.get_iopub_msg(timeout=30)
        mine = message["parent_header"].get("msg_id") == identity
        idle = mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
    while not replied:
        replied = client.get_shell_msg(timeout=30)["parent_header"].get("msg_id") == identity
    print((time.perf_counter() - began) * 1e6, flush=True)
client.stop_channels()
manager.shutdown_kernel(now=True)
