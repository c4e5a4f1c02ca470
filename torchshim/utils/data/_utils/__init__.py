"""The parts of the loader: collating, fetching, pinning, workers."""

from torchshim.utils.data._utils import collate as collate
from torchshim.utils.data._utils import fetch as fetch
from torchshim.utils.data._utils import pin_memory as pin_memory
from torchshim.utils.data._utils import worker as worker
