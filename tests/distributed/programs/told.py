"""What programs print: results, and errors by type and first line."""

import os
import re
import sys


def told(call, *args, **kwargs):
    """Calls, and prints what comes of it."""
    try:
        found = call(*args, **kwargs)
    except Exception as error:
        first = str(error).split("\n")[0]
        first = re.sub(r"<[\w.]* object at 0x\w+>", "<object>", first)
        print(getattr(call, "__name__", "call"), type(error).__name__, first[:200])
    else:
        print(getattr(call, "__name__", "call"), "gives", found)


def leave():
    """Ends the process, under PyTorch at once: its threads may fail in order."""
    sys.stdout.flush()
    if "torchshim" not in sys.modules:
        os._exit(0)
