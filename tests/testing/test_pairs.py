"""The classes of pairs that `assert_close` and `TestCase.assertEqual` compare by."""

from __future__ import annotations

import importlib

import numpy as np

from tests.oracle import attempt, case


def parts(torch):
    names = ("testing._comparison", "testing._internal.common_utils")
    return [importlib.import_module(f"{torch.__name__}.{name}") for name in names]


def told(function):
    """What a call gives, or all that its error says."""
    try:
        return function()
    except Exception as error:
        kind = getattr(error, "type", None)
        more = (
            kind and kind.__name__,
            getattr(error, "msg", ""),
            getattr(error, "id", 0),
        )
        return type(error).__name__, str(error), *more


def compared(make):
    def run():
        pair = make()
        return repr(pair), told(pair.compare)

    return told(run)


@case
def kinds_of_values(torch):
    c, _ = parts(torch)
    one, two, nan = torch.ones(2), torch.zeros(2), float("nan")
    for make in (
        lambda: c.ObjectPair(1, 2),
        lambda: c.ObjectPair(1, 1, id=(0,)),
        lambda: c.ObjectPair(one, one),
        lambda: c.NonePair(None, 1),
        lambda: c.NonePair(1, 2),
        lambda: c.BooleanPair(True, np.bool_(False), id=(1,)),
        lambda: c.BooleanPair(1, True, id=()),
        lambda: c.NumberPair(1, 1.0, check_dtype=True),
        lambda: c.NumberPair(1, 2, rtol=0, atol=0, id=("a", 1)),
        lambda: c.NumberPair(1j, np.complex64(2)),
        lambda: c.NumberPair(nan, nan),
        lambda: c.NumberPair(nan, nan, equal_nan=True),
        lambda: c.NumberPair("a", 1),
        lambda: c.NumberPair(1, 2, rtol=1),
        lambda: c.TensorLikePair(one, two, id=("a", 0), rtol=0.5, atol=0.25),
        lambda: c.TensorLikePair(one, torch.ones(3)),
        lambda: c.TensorLikePair(torch.tensor(1), torch.tensor(2)),
        lambda: c.TensorLikePair([1], [2.0], check_dtype=False),
        lambda: c.TensorLikePair([1], [2.0]),
        lambda: c.TensorLikePair(np.ones(2), np.zeros(2)),
        lambda: c.TensorLikePair(1, one),
        lambda: c.TensorLikePair(torch.nn.Parameter(one), one, allow_subclasses=False),
        lambda: c.TensorLikePair("a", "a"),
        lambda: c.TensorLikePair(torch.eye(2), torch.eye(2).t(), check_stride=True),
    ):
        yield compared(make)
    yield c.TensorLikePair(one, two, more=1)._unknown_parameters


@case
def classes_of_a_program(torch):
    c, _ = parts(torch)

    class ImagePair(c.TensorLikePair):
        def __init__(self, actual, expected, *, mae=False, **other):
            super().__init__(actual, expected, **other)
            self.mae = mae

        def extra_repr(self):
            return (*super().extra_repr(), "mae", ("more", 5))

        def compare(self):
            self._compare_attributes(self.actual, self.expected)
            a, b = self._equalize_attributes(self.actual, self.expected)
            if self.mae:
                mae = float((a - b).abs().float().mean())
                if mae > self.atol:
                    self._fail(AssertionError, f"off by {mae}")
            else:
                self._compare_values(a, b)

    class Broken(c.Pair):
        def compare(self):
            return 1 / 0

    class Refusing(c.Pair):
        def __init__(self, *args, **kwargs):
            raise TypeError("never")

        compare = Broken.compare

    one, two = torch.ones(3), torch.zeros(3)
    close = {"rtol": 0, "atol": 0.5}
    for actual, expected, options in (
        ([one, 1, None], [two, 2, None], close),
        (one, two, close | {"mae": True}),
        (one, two, {"rtol": 0, "atol": 1.5, "mae": True}),
        (one, one.double(), {"check_dtype": False}),
        ({"a": one}, {"b": one}, {}),
        ([1], [1, 2], {}),
        ([1, True], [1, False], {}),
        ("a", "b", {}),
        ([1], [2], {"rtol": 1}),
    ):
        kinds = (c.NonePair, c.BooleanPair, c.NumberPair, ImagePair)
        found = told(
            lambda a=actual, b=expected, o=options, kinds=kinds: (
                c.not_close_error_metas(a, b, pair_types=kinds, **o)
            )
        )
        if isinstance(found, list):
            found = [(e.type.__name__, e.msg, e.id, str(e.to_error())) for e in found]
        yield found
    yield repr(ImagePair(one, two))
    for kind in (Broken, Refusing):
        for given in (([1], [2]), (1, 2)):
            yield told(
                lambda g=given, k=kind: c.not_close_error_metas(*g, pair_types=(k,))
            )
    yield list(map(repr, c.originate_pairs([1], [2], pair_types=(c.ObjectPair,))))
    yield told(lambda: c.originate_pairs([1, [2]], [1, []], pair_types=(Broken,)))
    yield told(lambda: c.Pair(1, 2))


@case
def errors_and_texts(torch):
    c, _ = parts(torch)
    error = c.ErrorMeta(ValueError, "text", id=(1, "a"))
    yield error.to_error(), error.to_error("own"), error.to_error(str.upper), str(error)
    for options in ({}, {"rtol": 1.0}, {"rtol": 1.0, "atol": 2.0}):
        given = {"rtol": None, "atol": None} | options
        yield told(lambda g=given: c.get_tolerances(torch.float32, **g, id=(1,)))
    a, b = torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 3, 5])
    for name in (None, "Images", lambda usual: f"My {usual}"):
        options = {"rtol": 0.1, "atol": 0.2, "identifier": name}
        yield c.make_scalar_mismatch_msg(1.0, 2, **options)
        yield c.make_tensor_mismatch_msg(a, b, a == b, **options)


@case
def pairs_of_test_cases(torch):
    _, u = parts(torch)
    one = torch.ones(1)
    for make in (
        lambda: u.StringPair("a", "b"),
        lambda: u.StringPair("a", 1),
        lambda: u.SetPair({1}, {2}),
        lambda: u.TypePair(int, float),
        lambda: u.ObjectPair(1, 2),
        lambda: u.RelaxedBooleanPair(True, torch.tensor(1), id=()),
        lambda: u.RelaxedBooleanPair(True, 0, id=(2,)),
        lambda: u.RelaxedBooleanPair(1, 0, id=()),
        lambda: u.RelaxedBooleanPair(True, torch.ones(2), id=(2,)),
        lambda: u.RelaxedNumberPair(1, one),
        lambda: u.RelaxedNumberPair(1, 1.1),
        lambda: u.RelaxedNumberPair(1, 1.1, rtol_override=0.5),
        lambda: u.RelaxedNumberPair(1, np.ones(2), id=(3,)),
        lambda: u.RelaxedNumberPair(one, one),
        lambda: u.TensorOrArrayPair(np.ones(1), one),
        lambda: u.TensorOrArrayPair(one, one + 1, atol_override=1),
        lambda: u.TensorOrArrayPair([1], [2]),
    ):
        yield compared(make)
    yield [
        (getattr(kind, "CLS", None), kind.TYPE_NAME)
        for kind in (u.UnittestPair, u.StringPair, u.SetPair, u.TypePair, u.ObjectPair)
    ]


@case(warnings=False)
def sparse_pairs(torch):
    close = torch.testing.assert_close
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
    others = [x * 2, x.t(), torch.eye(2), x + torch.tensor([[0.0, 1.0], [0.0, 0.0]])]
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        own = x.to_sparse(layout=layout)
        yield close(own, own.clone())
        for other in others:
            yield attempt(close, own, other.to_sparse(layout=layout))
        yield attempt(close, own, x)
        yield close(own, x, check_layout=False)
    yield attempt(close, x.to_sparse(1), x.to_sparse(2))
    yield close(x.to_sparse_csr(), x.to_sparse_coo(), check_layout=False)
