"""`torch.testing._internal.common_methods_invocations`: a database of operators.

Those that NumPy has, too: element-wise operators, reductions and transforms.
`compat_suite ops` compares PyTorch's whole database where PyTorch is installed.
"""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim.testing._internal._databases import DecorateInfo as DecorateInfo
from torchshim.testing._internal._foreach_database import *  # noqa: F403
from torchshim.testing._internal._op_samples import *  # noqa: F403
from torchshim.testing._internal._op_tables import binary_ufuncs, unary_ufuncs
from torchshim.testing._internal._reduction_table import reduction_ops
from torchshim.testing._internal._spectral_tables import (
    sample_inputs_spectral_ops as sample_inputs_spectral_ops,
)
from torchshim.testing._internal._spectral_tables import spectral_funcs
from torchshim.testing._internal.common_utils import freeze_rng_state
from torchshim.testing._internal.opinfo.core import (
    BinaryUfuncInfo as BinaryUfuncInfo,
)
from torchshim.testing._internal.opinfo.core import ErrorInput as ErrorInput
from torchshim.testing._internal.opinfo.core import OpInfo as OpInfo
from torchshim.testing._internal.opinfo.core import ReductionOpInfo as ReductionOpInfo
from torchshim.testing._internal.opinfo.core import (
    ReductionPythonRefInfo as ReductionPythonRefInfo,
)
from torchshim.testing._internal.opinfo.core import SampleInput as SampleInput
from torchshim.testing._internal.opinfo.core import (
    SpectralFuncInfo as SpectralFuncInfo,
)
from torchshim.testing._internal.opinfo.core import (
    SpectralFuncType as SpectralFuncType,
)
from torchshim.testing._internal.opinfo.core import UnaryUfuncInfo as UnaryUfuncInfo

# Sizes of samples, from large to tiny.
L, M, S, XS = 20, 10, 5, 3
op_db: list[OpInfo] = [*unary_ufuncs, *binary_ufuncs, *reduction_ops, *spectral_funcs]
reference_filtered_ops = [op for op in reduction_ops if op.ref is not None]
# Operators written in Python, and those of masked tensors, are not listed.
python_ref_db: list[OpInfo] = []
reference_masked_ops: list[OpInfo] = []
shape_funcs: list[OpInfo] = []
sparse_unary_ufuncs: list[OpInfo] = []
sparse_csr_unary_ufuncs: list[OpInfo] = []
sparse_masked_reduction_ops: list[OpInfo] = []
sparse_reduction_ops: list[OpInfo] = []
ops_and_refs = [*op_db, *python_ref_db]
binary_ufuncs_and_refs = binary_ufuncs


def mask_not_all_zeros(shape: Any) -> Any:
    """Random signs as 0 and 1, at least one of them 1."""
    if len(shape) <= 0:
        raise AssertionError(f"Expected len(shape) > 0, got {len(shape)}")
    while True:
        mask = torch.randn(shape).gt(0)
        if mask.sum() > 0:
            return mask


def wrapper_set_seed(op: Any, *args: Any, **kwargs: Any) -> Any:
    """What an operator gives with the seed 42; generators stay as they were."""
    with freeze_rng_state():
        torch.manual_seed(42)
        return op(*args, **kwargs)
