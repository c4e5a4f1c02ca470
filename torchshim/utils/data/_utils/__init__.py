"""The parts of the loader: collating, fetching, pinning, workers."""

import sys

from torchshim.utils.data._utils import collate as collate
from torchshim.utils.data._utils import fetch as fetch
from torchshim.utils.data._utils import pin_memory as pin_memory
from torchshim.utils.data._utils import worker as worker
from torchshim.utils.data._utils.worker import ExceptionWrapper as ExceptionWrapper

# Seconds between a worker's looks at whether its program still runs.
MP_STATUS_CHECK_INTERVAL = worker.STATUS_INTERVAL
IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = True
python_exit_status = False
