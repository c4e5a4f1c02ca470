"""`Transform`, the base of all transforms, their inverses and compositions."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.utils import lazy_property, sum_rightmost

MODULE = "torchshim.distributions.transforms"


class Transform:
    """An invertible map with a known change of volume.

    Subclasses define `_call`, `_inverse` and, if `bijective`, `log_abs_det_jacobian`.
    With `cache_size=1` the latest pair is kept, so that the inverse of a result is the
    very argument it came from. `domain` and `codomain` are constraints; `sign` is +1 or
    -1 for maps of numbers that rise or fall. ValueError for other cache sizes.
    https://docs.pytorch.org/docs/2.13/distributions.html#torch.distributions.transforms.Transform
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = None, None
        elif cache_size != 0:
            raise ValueError("cache_size must be 0 or 1")
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of an event, if they are as many before as after."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform; `t.inv.inv is t`."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    if TYPE_CHECKING:
        # An attribute or a property of subclasses.
        sign: Any
    else:

        @property
        def sign(self) -> Any:
            """+1 for rising maps of numbers, -1 for falling ones."""
            raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with this cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    __hash__: Any = None

    def __call__(self, x: Any) -> Any:
        return self._through(x, 0, self._call)

    def _inv_call(self, y: Any) -> Any:
        return self._through(y, 1, self._inverse)

    def _through(self, value: Any, side: int, compute: Any) -> Any:
        if self._cache_size == 0:
            return compute(value)
        if value is self._cached_x_y[side]:
            return self._cached_x_y[1 - side]
        result = compute(value)
        self._cached_x_y = (result, value) if side else (value, result)
        return result

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |det dy/dx|, given a point and its image."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of something of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what has an image of this shape."""
        return shape


class _InverseTransform(Transform):
    """The inverse of one transform, as `inv` gives it."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Any:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Transforms one after the other; each keeps its own cache.

    >>> import torchshim as torch
    >>> from torchshim.distributions import AffineTransform, ExpTransform
    >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(torch.zeros(1))
    tensor([3.])
    """

    def __init__(self, parts: list[Any], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._end("domain", "codomain", self.parts)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._end("codomain", "domain", self.parts[::-1])

    def _end(self, name: str, other: str, parts: list[Any]) -> Any:
        """The constraint at the first part's end, over as many dimensions as the
        others need there."""
        if not parts:
            return constraints.real
        dims = getattr(parts[-1], other).event_dim
        for part in reversed(parts):
            own = getattr(part, name).event_dim
            dims = max(dims + own - getattr(part, other).event_dim, own)
        end = getattr(parts[0], name)
        if dims < end.event_dim:
            raise AssertionError(
                f"event_dim {dims} must be >= {name}.event_dim {end.event_dim}"
            )
        more = dims - end.event_dim
        return constraints.independent(end, more) if more else end

    @lazy_property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        if not self.parts:
            return torchshim.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for i, part in enumerate(self.parts):
            term = part.log_abs_det_jacobian(points[i], points[i + 1])
            terms.append(sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{self.__class__.__name__}(\n    {parts}\n)"


for _class in (Transform, _InverseTransform, ComposeTransform):
    _class.__module__ = MODULE

identity_transform = ComposeTransform([])
