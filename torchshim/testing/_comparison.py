"""Whether two values agree: pairs of leaves, compared one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim._functions.construct import tensor
from torchshim._tensor import Tensor
from torchshim.testing._differences import OLD_TOLERANCES, largest
from torchshim.testing._differences import default_tolerances as default_tolerances
from torchshim.testing._pairs import (
    BooleanPair,
    ErrorMeta,
    Id,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    TensorLikePair,
    UnsupportedInputs,
)
from torchshim.testing._pairs import get_tolerances as get_tolerances
from torchshim.testing._pairs import (
    make_scalar_mismatch_msg as make_scalar_mismatch_msg,
)
from torchshim.testing._pairs import (
    make_tensor_mismatch_msg as make_tensor_mismatch_msg,
)

__all__ = ["assert_allclose", "assert_close"]

_UNEXPECTED = (
    "resulted in the unexpected exception above. If you are a user and see this "
    "message during normal operation please file an issue at "
    "https://github.com/pytorch/pytorch/issues. If you are a developer and working on "
    "the comparison functions, please except the previous error and raise an "
    "expressive `ErrorMeta` instead."
)


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: Id = (),
    **options: Any,
) -> list[Pair]:
    """A pair for each two leaves of nested values, of the first type that takes them.

    Raises `ErrorMeta` where lengths or keys differ, or no type takes the leaves.
    """
    both = (actual, expected)
    kinds: Any = {
        "pair_types": pair_types,
        "sequence_types": sequence_types,
        "mapping_types": mapping_types,
    }
    if all(isinstance(x, sequence_types) and not isinstance(x, str) for x in both):
        if len(actual) != len(expected):
            raise ErrorMeta(
                AssertionError,
                "The length of the sequences mismatch: "
                f"{len(actual)} != {len(expected)}",
                id=id,
            )
        return [
            pair
            for i in range(len(actual))
            for pair in originate_pairs(
                actual[i], expected[i], id=(*id, i), **kinds, **options
            )
        ]
    if all(isinstance(x, mapping_types) for x in both):
        have, want = set(actual), set(expected)
        if have != want:
            raise ErrorMeta(
                AssertionError,
                "The keys of the mappings do not match:\nMissing keys in the actual "
                f"mapping: {sorted(want - have)}\nAdditional keys in the actual "
                f"mapping: {sorted(have - want)}",
                id=id,
            )
        keys: Any = have
        # Whatever comparing keys raises: tensors of several elements are no bools.
        with contextlib.suppress(Exception):
            keys = sorted(have)
        return [
            pair
            for key in keys
            for pair in originate_pairs(
                actual[key], expected[key], id=(*id, key), **kinds, **options
            )
        ]
    for pair_type in pair_types:
        try:
            return [pair_type(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            where = "".join(str([item]) for item in id)
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() at item {where} with\n\n"
                f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                f"{type(expected).__name__}(): {expected}\n\n{_UNEXPECTED}"
            ) from error
    raise ErrorMeta(
        TypeError,
        f"No comparison pair was able to handle inputs of type {type(actual)} and "
        f"{type(expected)}.",
        id=id,
    )


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """What is wrong with each pair of leaves that are not close."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            **options,
        )
    except ErrorMeta as error:
        raise error.to_error() from None
    found: list[ErrorMeta] = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error)
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair}\n\n{_UNEXPECTED}") from error
    return found


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError where two values are not close.

    Values are numbers, tensors, what `torch.as_tensor` takes, or sequences and mappings
    of them; tolerances follow from the dtypes, `msg` replaces the text or makes it of
    the text. Follows ``torch.testing.assert_close``.

    >>> import torchshim as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    >>> torch.testing.assert_close([1, 2.0], [1, 2.5])
    Traceback (most recent call last):
    AssertionError: Scalars are not close!
    <BLANKLINE>
    Expected 2.5 but got 2.0.
    Absolute difference: 0.5 (up to 1e-07 allowed)
    Relative difference: 0.2 (up to 1e-07 allowed)
    <BLANKLINE>
    The failure occurred for item [1]
    """
    # Tracebacks of pytest leave these frames out.
    __tracebackhide__ = True
    found = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if found:
        raise found[0].to_error(msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older `assert_close`, which does not compare dtypes. Deprecated.

    Follows ``torch.testing.assert_allclose``.
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be "
        "removed in a future release. Please use `torch.testing.assert_close()` "
        "instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    a: Any = actual if isinstance(actual, Tensor) else tensor(actual)
    b: Any = expected
    if not isinstance(expected, Tensor):
        b = tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        rtol, atol = largest(OLD_TOLERANCES, a.dtype, b.dtype)
    assert_close(
        a,
        b,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
