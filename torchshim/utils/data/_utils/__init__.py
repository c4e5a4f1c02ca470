"""The parts of the loader: collating, fetching, pinning, workers."""

from torchshim.utils.data._utils import collate as collate
from torchshim.utils.data._utils import fetch as fetch
from torchshim.utils.data._utils import pin_memory as pin_memory
from torchshim.utils.data._utils import worker as worker

# Seconds between a worker's looks at whether its program still runs.
MP_STATUS_CHECK_INTERVAL = 5.0
python_exit_status = False
