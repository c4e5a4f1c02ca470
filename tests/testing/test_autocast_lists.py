"""The lists of functions that autocast knows, and tests made of them."""

from __future__ import annotations

import importlib
import unittest

from tests.oracle import case


def told(value):
    """Shapes and dtypes in the place of tensors."""
    if hasattr(value, "stride"):
        return tuple(value.shape), value.dtype
    if isinstance(value, (tuple, list)):
        return [told(each) for each in value]
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    return getattr(value, "__name__", "").rpartition(".")[2] or value


@case.over("AutocastTestLists", "AutocastCPUTestLists")
def listed(torch, name):
    home = f"{torch.__name__}.testing._internal.autocast_test_lists"
    lists = getattr(importlib.import_module(home), name)("cpu")
    for attribute, entries in sorted(vars(lists).items()):
        yield attribute, [told(entry) for entry in entries]


CPU = """
torch_16 bfloat16 torch
torch_16 float16 torch
torch_fp32 float32 torch
nn_16 bfloat16 nn
nn_fp32 float32 nn
"""


@case(warnings=False)
def compared_with_casts_by_hand(torch):
    home = f"{torch.__name__}.testing._internal.autocast_test_lists"
    lib = importlib.import_module(home)
    torch.manual_seed(0)
    lists = lib.AutocastCPUTestLists("cpu")

    class Tests(lib.TestAutocast):
        def runTest(self):
            """Nothing: what it has is called by hand."""

    test = Tests()
    for line in CPU.strip().splitlines():
        name, dtype, home = line.split()
        module = torch if home == "torch" else torch._C._nn
        half = dtype if dtype != "float32" else "bfloat16"
        for entry in getattr(lists, name):
            op, args, kwargs = test.args_maybe_kwargs(entry)
            if op == "_native_multi_head_attention":
                continue
            try:
                test._run_autocast_outofplace(
                    *(op, args, getattr(torch, dtype), "cpu", None, module, kwargs),
                    amp_dtype=getattr(torch, half),
                )
                yield op, "ok"
            except unittest.TestCase.failureException as error:
                yield op, str(error)
    wrong = torch.ones(2, 2), torch.ones(2, 2)
    try:
        test._run_autocast_outofplace("mm", wrong, torch.float32, "cpu")
    except AssertionError as error:
        yield str(error).splitlines()[-1].replace("torch.mm", "mm")
