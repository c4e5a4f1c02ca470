"""What `torch.save` and `torch.load` do where their arguments do not say.

``config.load.mmap``, ``config.load.endianness``, ``config.load.mmap_flags`` and
``config.save.storage_alignment`` are used; `compute_crc32` and
`use_pinned_memory_for_d2h` change nothing here: files always have checksums.
"""

from torchshim.serialization._options import load, save

__all__ = ["load", "save"]
