"""`load_url`, the older name of `torch.hub.load_state_dict_from_url`."""

from torchshim.hub import load_state_dict_from_url as load_url
from torchshim.hub import tqdm as tqdm

__all__ = ["load_url"]
