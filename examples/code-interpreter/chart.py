"""Draws a chart with matplotlib in a sandbox and saves the PNG on the host: chart.py [FILE]"""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from code_interpreter import CodeInterpreter
from opensandbox import Sandbox

CELL = """
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

days = np.arange(90)
data = pd.DataFrame({
    "sun": 20 + 8 * np.sin(days / 14),
    "shade": 14 + 3 * np.sin(days / 14 - 1),
}, index=days)
axes = data.plot(title="Temperature", figsize=(8, 4))
axes.set_xlabel("day")
plt.savefig("/tmp/chart.png", dpi=120)
data.mean().round(1).to_dict()
"""


async def main(file):
    sandbox = await Sandbox.create(
        "opensandbox/code-interpreter:latest",
        entrypoint=["/opt/code-interpreter/code-interpreter.sh"],
        timeout=timedelta(minutes=10),
    )
    async with sandbox:
        interpreter = await CodeInterpreter.create(sandbox)
        run = await interpreter.codes.run(CELL)
        if run.error:
            sys.exit(f"{run.error.name}: {run.error.value}")
        print("means:", run.result[0].text)
        file.write_bytes(await sandbox.files.read_bytes("/tmp/chart.png"))
        print(f"wrote {file}, {file.stat().st_size} bytes")
        await sandbox.kill()


asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "chart.png")))
