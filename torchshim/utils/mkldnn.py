"""Modules whose weights are in oneDNN's layouts, which are not here."""

from torchshim._errors import unsupported

to_mkldnn = unsupported("utils.mkldnn.to_mkldnn", "XLA chooses the layouts of weights")
