"""`TestCase`, as PyTorch's test files use it."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import sys
import unittest
import unittest.case
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim._core.record import local
from torchshim._errors import Unsupported
from torchshim.testing import make_tensor
from torchshim.testing._internal._equality import assert_equal

SEED = 1234


def set_rng_seed(seed: int | None = None) -> None:
    """Seeds torch, `random` and NumPy."""
    seed = SEED if seed is None else seed
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextlib.contextmanager
def set_warn_always_context(new_val: bool) -> Iterator[None]:
    """Whether warnings that are given once are given every time."""
    old = torch.is_warn_always_enabled()
    torch.set_warn_always(new_val)
    try:
        yield
    finally:
        torch.set_warn_always(old)


def _raise_deferred() -> None:
    """Raises an error that depends on data and is due at the next read."""
    local.rec.flush()
    local.rec.raise_failed_checks()


def _pieces(value: Any) -> Any:
    nested = isinstance(value, torch.Tensor) and value.is_nested
    return value.unbind() if nested and value.layout is torch.strided else value


class _Raises(unittest.case._AssertRaisesContext):
    """Takes errors for the block's that are deferred beyond its end, too."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if kind is not None:
            return super().__exit__(kind, error, traceback)
        try:
            _raise_deferred()
        except Exception as late:
            if not super().__exit__(type(late), late, late.__traceback__):
                raise
            return True
        return super().__exit__(None, None, None)


class TestCase(unittest.TestCase):
    """A test case with fixed seeds, that can compare tensors.

    `precision` and `rel_tol` are tolerances that comparisons allow at least.
    """

    precision: float = 0
    rel_tol: float = 0
    # pytest would collect this class itself.
    __test__ = True
    _default_dtype_check_enabled = False

    def __init__(
        self, method_name: str = "runTest", methodName: str = "runTest"
    ) -> None:
        super().__init__(method_name if method_name != "runTest" else methodName)

    def setUp(self) -> None:
        set_rng_seed()
        if self._default_dtype_check_enabled:
            default = torch.get_default_dtype()
            if default != torch.float:
                raise AssertionError(
                    f"expected default dtype to be torch.float, got {default}"
                )
        self._grad_mode = torch.is_grad_enabled()
        checked = torch.sparse.check_sparse_tensor_invariants
        self._check_invariants = checked.is_enabled()
        checked.enable()

    def _callTestMethod(self, method: Callable[[], Any]) -> None:
        # What torchshim knowingly lacks, and says so, is no failure of a test.
        try:
            method()
            _raise_deferred()
        except Unsupported as error:
            raise unittest.SkipTest(str(error)) from error

    # What a test found; nothing where a class has a `setUp` of its own alone.
    _grad_mode = _check_invariants = True

    def tearDown(self) -> None:
        torch.set_grad_enabled(self._grad_mode)
        if not self._check_invariants:
            torch.sparse.check_sparse_tensor_invariants.disable()
        if self._default_dtype_check_enabled:
            assert torch.get_default_dtype() == torch.float

    def assertRaises(self, expected_exception: Any, *args: Any, **kwargs: Any) -> Any:
        """As unittest's; an error that depends on data is raised in time."""
        context = _Raises(expected_exception, self)
        return context.handle("assertRaises", args, kwargs)  # type: ignore[attr-defined]

    def assertRaisesRegex(
        self, expected_exception: Any, expected_regex: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """As `assertRaises`, and the text has a part that the expression matches."""
        context = _Raises(expected_exception, self, expected_regex)
        return context.handle("assertRaisesRegex", args, kwargs)  # type: ignore[attr-defined]

    def assertEqual(
        self,
        x: Any,
        y: Any,
        msg: str | Callable[[str], str] | None = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan: bool = True,
        exact_dtype: bool = True,
        exact_device: bool = False,
        exact_layout: bool = False,
        exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:
        """Tensors, arrays and numbers within the tolerance of their dtypes, else `==`.

        Sequences and mappings item by item, nested tensors of layout strided piece by
        piece.
        """
        __tracebackhide__ = True
        x, y = _pieces(x), _pieces(y)
        own = msg
        if isinstance(msg, str) and self.longMessage:
            own = lambda text: f"{text}\n{msg}"  # noqa: E731
        assert_equal(
            x,
            y,
            own,
            rtol=rtol,
            rtol_override=self.rel_tol,
            atol=atol,
            atol_override=self.precision,
            equal_nan=equal_nan,
            check_device=exact_device,
            check_dtype=exact_dtype,
            check_layout=exact_layout,
            check_stride=exact_stride,
        )

    def assertNotEqual(
        self,
        x: Any,
        y: Any,
        msg: str | None = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Fails where `assertEqual` does not."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **kwargs)

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        """`assertEqual` without the dtypes."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualBroadcasting(
        self, x: Any, y: Any, *args: Any, **kwargs: Any
    ) -> None:
        """`assertEqual` with `y` broadcast to the shape of `x`."""
        if not isinstance(y, torch.Tensor):
            given = torch.tensor(y) if isinstance(y, Iterable) else y
            y = torch.ones_like(x) * given
        self.assertEqual(x, y, *args, **kwargs)

    def assertEqualTypeString(self, x: Any, y: Any) -> None:
        """Device, dtype and layout are the same."""
        self.assertEqual(x.device, y.device)
        self.assertEqual(x.dtype, y.dtype)
        self.assertEqual(x.layout, y.layout)

    def assertObjectIn(self, obj: Any, iterable: Iterable[Any]) -> None:
        """The object itself is among these."""
        if not any(obj is each for each in iterable):
            raise AssertionError("object not found in iterable")

    def assertNotWarn(self, callable: Callable[[], Any], msg: str = "") -> None:
        """The call gives no warning."""
        with _all_warnings() as found:
            callable()
        self.assertTrue(len(found) == 0, msg)

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: Any, regex: str = "") -> Iterator[None]:
        """The block gives a warning of this category whose text begins so."""
        with _all_warnings() as found:
            yield
        if not found:
            self.fail("no warning caught")
        self.assertTrue(any(type(w.message) is category for w in found))
        texts = [str(w.message) for w in found if type(w.message) is category]
        matches = any(re.match(regex, str(w.message)) for w in found)
        self.assertTrue(matches, f"{regex}, {texts}")

    @contextlib.contextmanager
    def maybeWarnsRegex(self, category: Any, regex: str = "") -> Iterator[None]:
        """If the block gives warnings, one of them begins so."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        if found:
            self.assertTrue(any(re.match(regex, str(w.message)) for w in found))

    def assertExpectedInline(
        self, actual: Any, expect: str, skip: int = 0, **kwargs: Any
    ) -> None:
        """The text, or what is there as text, is this one."""
        self.assertMultiLineEqual(expect, str(actual))

    def assertExpected(self, s: str, subname: str | None = None) -> None:
        """The text is that of a file beside the test's, named after the test."""
        if not isinstance(s, str):
            raise TypeError("assertExpected is strings only")
        module = type(self).__module__
        name = self.id().removeprefix(f"{module}.")
        name = f"{name}-{subname}" if subname else name
        beside = Path(os.path.realpath(str(sys.modules[module].__file__))).parent
        file = beside / "expect" / f"{name}.expect"
        if not file.exists():
            raise RuntimeError(f"{file} is missing; the text was:\n\n{s}")
        self.assertMultiLineEqual(file.read_text(), s)

    def assertExpectedRaisesInline(
        self,
        exc_type: type[Exception],
        callable: Callable[..., Any],
        expect: str,
        *args: Any,
        skip: int = 0,
        **kwargs: Any,
    ) -> None:
        """The call raises an error of this kind, with this text."""
        try:
            callable(*args, **kwargs)
        except exc_type as error:
            self.assertExpectedInline(str(error), expect)
            return
        self.fail("Did not raise when expected to")

    def assertGreaterAlmostEqual(
        self,
        first: Any,
        second: Any,
        places: int | None = None,
        msg: Any = None,
        delta: Any = None,
    ) -> None:
        """The first is larger, or almost as large."""
        if not first >= second:
            self.assertAlmostEqual(first, second, places, msg, delta)

    def compare_with_reference(
        self, torch_fn: Any, ref_fn: Any, sample_input: Any, **kwargs: Any
    ) -> None:
        """A function of torch gives for a sample what one of NumPy does."""
        made, plain = sample_input, sample_input.numpy()
        actual = torch_fn(made.input, *made.args, **made.kwargs)
        expected = ref_fn(plain.input, *plain.args, **plain.kwargs)
        self.assertEqual(actual, expected, exact_device=False, **kwargs)

    def compare_with_numpy(
        self,
        torch_fn: Callable[[Any], Any],
        np_fn: Callable[[Any], Any],
        tensor_like: Any,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """The function of torch gives what that of NumPy does."""
        if isinstance(tensor_like, torch.Tensor):
            assert device is None and dtype is None
            t = tensor_like
        else:
            t = torch.tensor(tensor_like, device=device, dtype=dtype)
        plain = t.detach().cpu()
        small = plain.dtype is torch.bfloat16
        wanted = np_fn((plain.float() if small else plain).numpy())
        result = torch_fn(t).cpu()
        if isinstance(wanted, np.ndarray):
            wanted = torch.from_numpy(wanted.copy())
            if small and result.dtype is torch.bfloat16:
                result = result.float()
        self.assertEqual(wanted, result, **kwargs)

    def genSparseTensor(
        self,
        size: Any,
        sparse_dim: int,
        nnz: int,
        is_uncoalesced: bool,
        device: Any,
        dtype: Any,
    ) -> tuple[Any, Any, Any]:
        """A random sparse tensor, copies of its indices and of its values."""
        if nnz and not all(size[:sparse_dim]):
            raise AssertionError("values in an empty dimension")
        shape = [nnz, *size[sparse_dim:]]
        values = make_tensor(shape, device=device, dtype=dtype, low=-1, high=1)
        scale = torch.tensor(size[:sparse_dim]).unsqueeze(1)
        indices = torch.rand(sparse_dim, nnz, device=device)
        indices = indices.mul_(scale.to(indices)).to(torch.long)
        if is_uncoalesced:
            twice = indices[:, : nnz // 2], indices[:, : (nnz + 1) // 2]
            indices = torch.cat(twice, 1)
        made = torch.sparse_coo_tensor(
            indices, values, torch.Size(size), dtype=dtype, device=device
        )
        if is_uncoalesced:
            made = made.detach().clone()._coalesced_(False)
        else:
            made = made.coalesce()
        return made, made._indices().clone(), made._values().clone()

    def genSparseCompressedTensor(
        self,
        size: Any,
        nnz: int,
        *,
        layout: Any,
        device: Any,
        dtype: Any,
        index_dtype: Any,
        blocksize: Any = (),
        dense_dims: int = 0,
    ) -> Any:
        """A random tensor: batches, rows and columns, then dense dimensions.

        Each matrix of the batch has so many values, in as many blocks as these fill.
        """
        if not (all(each > 0 for each in size) or nnz == 0):
            raise AssertionError(f"invalid arguments: size={size}, nnz={nnz}")
        if len(size) < 2:
            raise AssertionError(f"expected len(size) >= 2, got {len(size)}")
        cut = len(size) - dense_dims
        if cut < 2:
            raise AssertionError(f"dense_dims={dense_dims} leave no matrix of {size}")
        batch, dense = tuple(size[: cut - 2]), tuple(size[cut:])
        blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
        if blocks is not (len(blocksize) == 2):
            raise AssertionError(f"blocksize={blocksize} does not go with {layout}")
        high, wide = blocksize or (1, 1)
        nnz //= high * wide
        lines, across = size[cut - 2] // high, size[cut - 1] // wide
        if layout in (torch.sparse_csc, torch.sparse_bsc):
            lines, across = across, lines
        if not 0 <= nnz <= lines * across:
            raise AssertionError(
                "nnz out of bounds: expected 0 <= nnz <= n_rows * n_cols, got "
                f"nnz={nnz}, n_rows={lines}, n_cols={across}"
            )
        options = {"device": device, "dtype": index_dtype}
        begins, inner = [], []
        for _ in range(math.prod(batch)):
            places = torch.randperm(lines * across)[:nnz].sort().values
            counts = torch.zeros(lines + 1, dtype=torch.int64)
            if nnz:
                counts[1:] = torch.bincount(places // across, minlength=lines)
            begins.append(counts.cumsum(0))
            inner.append(places % max(across, 1))
        low, top = (0, 2) if dtype is torch.uint8 else (-1, 1)
        shape = (*batch, nnz, *blocksize, *dense)
        return torch.sparse_compressed_tensor(
            torch.stack(begins).reshape(*batch, lines + 1).to(**options),
            torch.stack(inner).reshape(*batch, nnz).to(**options),
            make_tensor(shape, device=device, dtype=dtype, low=low, high=top),
            size=tuple(size),
            dtype=dtype,
            layout=layout,
            device=device,
        )

    def genSparseCSRTensor(self, size: Any, nnz: int, **options: Any) -> Any:
        """A random matrix with so many values, row by row."""
        return self.genSparseCompressedTensor(
            size, nnz, layout=torch.sparse_csr, **options
        )

    def genSparseCSCTensor(self, size: Any, nnz: int, **options: Any) -> Any:
        """A random matrix with so many values, column by column."""
        return self.genSparseCompressedTensor(
            size, nnz, layout=torch.sparse_csc, **options
        )

    def genSparseBSRTensor(
        self, size: Any, blocksize: Any, nnz: int, **options: Any
    ) -> Any:
        """A random matrix with so many blocks, row by row."""
        return self.genSparseCompressedTensor(
            size, nnz, layout=torch.sparse_bsr, blocksize=blocksize, **options
        )

    def genSparseBSCTensor(
        self, size: Any, blocksize: Any, nnz: int, **options: Any
    ) -> Any:
        """A random matrix with so many blocks, column by column."""
        return self.genSparseCompressedTensor(
            size, nnz, layout=torch.sparse_bsc, blocksize=blocksize, **options
        )

    def safeToDense(self, t: Any) -> Any:
        """A sparse tensor in coordinates as a dense one."""
        if t.layout is torch.sparse_coo and not t.is_coalesced():
            t = t.coalesce()
        return t.to_dense()

    def check_nondeterministic_alert(
        self, fn: Callable[[], Any], caller_name: str, should_alert: bool = True
    ) -> None:
        """Whether deterministic mode refuses the call, or warns if told to."""
        before = torch.get_deterministic_debug_mode()
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            text = f"^{caller_name} does not have a deterministic implementation"
            if should_alert:
                with self.assertWarnsRegex(UserWarning, text):
                    fn()
                torch.use_deterministic_algorithms(True)
                with self.assertRaisesRegex(RuntimeError, text):
                    fn()
            else:
                torch.use_deterministic_algorithms(True)
                fn()
        finally:
            torch.set_deterministic_debug_mode(before)


@contextlib.contextmanager
def _all_warnings() -> Iterator[list[Any]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with set_warn_always_context(True):
            yield found
