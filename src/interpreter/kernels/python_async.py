"""Cells that await: one event loop for all of them, made when the first one needs it."""

import asyncio


def run_coroutine(coroutine):
    global loop
    if hasattr(coroutine, "__aiter__"):
        raise SyntaxError("'yield' outside function")
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except (KeyboardInterrupt, SystemExit):
        # The cell ends here; let it unwind before it is reported.
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                pass
        raise


def keep_loop_running():
    """While no cell runs, tasks that earlier cells started go on until the next request arrives."""
    if loop.is_closed() or loop.is_running() or not asyncio.all_tasks(loop):
        return
    arrived = loop.create_future()

    def readable():
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(CHANNEL, readable)
    try:
        while not arrived.done():
            try:
                loop.run_until_complete(arrived)
            except BaseException:  # of somebody's callback: it must not end the kernel
                sys.excepthook(*sys.exc_info())
    finally:
        loop.remove_reader(CHANNEL)
