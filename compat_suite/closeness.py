"""When numbers agree: the tolerances of `torch.testing.assert_close`."""

from __future__ import annotations

import numpy as np

#: (relative, absolute); other dtypes are exact.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def close(
    a: np.ndarray, b: np.ndarray, rtol: float, atol: float, exact: bool = False
) -> np.ndarray:
    """Where arrays agree; `exact` wants the same numbers and signs of zeros."""
    if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return np.asarray(a == b)
    if a.dtype.kind == "c":
        # As in `torch.isclose`, distance is measured in the plane; where a part is
        # not finite, each part is judged by itself.
        real = close(a.real, b.real, rtol, atol, exact)
        imag = close(a.imag, b.imag, rtol, atol, exact)
        if exact:
            return real & imag
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= atol + rtol * np.abs(a)
        return np.where(finite, near, real & imag)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = (x == y) & (not exact or (np.signbit(x) == np.signbit(y)))
        near = np.isfinite(x) & np.isfinite(y) & (abs(x - y) <= atol + rtol * abs(x))
    return same | (np.isnan(x) & np.isnan(y)) | (near & (not exact))
