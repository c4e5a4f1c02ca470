"""`torch.testing._internal.common_utils` and its kin, as test files use them."""

from __future__ import annotations

import enum
import importlib
import os
import sys
import tempfile
import types
import unittest

import hypothesis
import numpy as np

from tests.oracle import attempt, case


def _module(torch, name):
    return importlib.import_module(f"{torch.__name__}.testing._internal.{name}")


@case
def what_is_equal(torch):
    class Check(_module(torch, "common_utils").TestCase):
        pass

    def equal(*args, **kwargs):
        return attempt(Check().assertEqual, *args, **kwargs)

    one = torch.ones(2)
    yield equal(one, [1.0, 1.0]), equal(torch.tensor(3), 3), equal(1, 1.0)
    kind = enum.Enum("kind", "first second")
    yield equal(kind.first, kind.first), equal({"a": kind.first}, {"a": kind.second})
    yield equal(enum.IntEnum("count", "one").one, 1), equal(kind.first, 1)
    yield equal(np.ones(2), one.double()), equal(one * float("nan"), one * float("nan"))
    yield equal(torch.Size([1, 2]), (1, 2)), equal(True, torch.tensor(True))
    yield equal(one, one + 0.01), equal(one, one + 0.01, atol=0.1, rtol=0)
    yield equal(one, one.double()), equal(one, one.double(), exact_dtype=False)
    for a, b in ((1, 2), ("a", "b"), ({1}, {2}), (None, 1), ([1, 2], [1, 3])):
        yield equal(a, b, "said")
    yield equal({"a": 1}, {"b": 1}), equal(one, torch.ones(3)), equal(torch.ones(3), 1)
    yield equal(np.array(["a"]), np.array(["b"])), equal(1.0, 1.1), equal(int, float)


@case
def arrays_that_hypothesis_draws(torch):
    drawn = _module(torch, "hypothesis_utils")
    found = set()

    @hypothesis.settings(max_examples=20, deadline=None, derandomize=True)
    @hypothesis.given(
        drawn.tensor(shapes=((2, 3), (4,)), dtype=np.double),
        drawn.tensor(shapes=(6,)),
        drawn.tensor(drawn.array_shapes(1, 2), elements=drawn.floats(0, 1)),
    )
    def look(either, line, small):
        for x, qparams in (either, line, small):
            assert np.isfinite(x).all() and qparams is None
        assert small[0].ndim < 3 and ((small[0] >= 0) & (small[0] <= 1)).all()
        assert (np.abs(either[0]) <= 1e6).all()
        found.update(("either", either[0].dtype, n) for n in either[0].shape)
        found.add(("line", line[0].dtype, *line[0].shape))

    look()
    yield sorted(map(str, found))


@case(warnings=False)
def nested_tensors_are_equal(torch):
    class Check(_module(torch, "common_utils").NestedTensorTestCase):
        pass

    nested, pieces = torch.nested.nested_tensor, [torch.ones(2, 3), torch.ones(1, 3)]
    jagged = [nested(pieces, layout=torch.jagged) for _ in range(2)]
    check, x = Check(), nested(pieces)
    yield attempt(check.assertEqual, x, x.clone()), attempt(check.assertEqual, x, x * 2)
    yield attempt(check.assertEqual, x, nested(pieces[:1]))
    yield attempt(check.assertEqual, x, nested([])), attempt(check.assertEqual, x, x.mT)
    yield attempt(check.assertEqualIgnoringNestedInts, *jagged)
    yield attempt(check.assertEqualIgnoringNestedInts, {"a": jagged}, {"a": jagged})
    yield attempt(check.assertEqualIgnoringNestedInts, jagged[0], jagged[1] * 2)
    yield attempt(check.assertEqualNoncontigAware, jagged[0], jagged[0] * 1)
    core = _module(torch, "opinfo.core")
    yield attempt(core.SkipRule), core.SkipRule(lambda *_: True).type
    rule = core.XFailRule(lambda *_: True, error_type=ValueError, error_msg="no.")
    yield rule.type, rule.name, rule.sample_match_fn(None, None)
    with rule.get_context(check):
        raise ValueError("not")
    yield attempt(core.SkipRule(lambda *_: True).get_context(check).__enter__)
    marked = core.sample_skips_and_xfails([rule])(lambda: None)
    yield len(marked.sample_skips_and_xfails)
    yield attempt(core.sample_skips_and_xfails([rule]), marked)


@case
def what_is_logged_as_text(torch):
    logs = _module(torch, "logging_utils")
    text, context = logs.logs_to_string("torch._dynamo.mine", "recompiles")
    log = torch._logging.getArtifactLogger("torch._dynamo.mine", "recompiles")
    with context():
        log.debug("seen %s", 1)
    log.debug("not seen")
    yield text.getvalue()


@case
def what_is_expected_as_text(torch):
    check = _module(torch, "common_utils").TestCase()
    yield (
        check.assertExpectedInline("a", """a"""),
        check.assertExpectedInline(2, """2"""),
    )
    yield check.assertExpectedInline(torch.ones(1), """tensor([1.])""")
    yield check.assertExpectedRaisesInline(ValueError, int, str(attempt(int, "a")), "a")
    yield type(
        attempt(check.assertExpectedRaisesInline, ValueError, int, "", 2)
    ).__name__


@case
def tests_made_of_one(torch):
    utils = _module(torch, "common_utils")
    devices = _module(torch, "common_device_type")
    ran = []

    class TestPlain(utils.TestCase):
        @utils.parametrize("x,y", [(1, 2), utils.subtest((3, 4), name="big")])
        @utils.parametrize("z", ["u", 1.5])
        def test_pair(self, x, y, z):
            ran.append((x, y, z))

        @utils.slowTest
        def test_slow(self):
            raise AssertionError

    class TestDevice(utils.TestCase):
        @devices.dtypes(torch.float32, torch.half)
        @devices.dtypesIfCPU(torch.float32, torch.float64)
        @devices.precisionOverride({torch.float32: 1e-2})
        def test_close(self, device, dtype):
            ran.append((device, dtype, self.precision))

        @devices.onlyCUDA
        def test_elsewhere(self, device):
            raise AssertionError

        @devices.expectedFailureCPU
        def test_fails(self, device):
            self.assertEqual(1, 2)

    utils.instantiate_parametrized_tests(TestPlain)
    scope = {"TestDevice": TestDevice}
    devices.instantiate_device_type_tests(TestDevice, scope, only_for="cpu")
    for made in (TestPlain, scope["TestDeviceCPU"]):
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(made)
        names = sorted(test.id().rpartition(".")[2] for test in suite)
        result = unittest.TestResult()
        suite.run(result)
        yield names, result.testsRun, len(result.failures), len(result.errors)
        yield sorted(reason for _, reason in result.skipped)
    yield sorted(map(str, ran))


@case
def dtypes_and_state(torch):
    found = _module(torch, "common_dtype")
    utils = _module(torch, "common_utils")
    yield [*found.floating_types_and(torch.half)], [*found.all_types_and_complex()]
    yield found.get_all_dtypes(), [*found.integral_types()]
    with utils.freeze_rng_state():
        before = torch.rand(2)
    yield bool((torch.rand(2) == before).all())
    with utils.set_default_dtype(torch.float64):
        yield torch.ones(1).dtype
    x = utils.noncontiguous_like(torch.arange(6.0).view(2, 3))
    yield x, x.is_contiguous(), list(utils.iter_indices(x))
    yield utils.gradcheck(torch.sin, [torch.ones(2).double().requires_grad_()])


@case(warnings=False)
def errors_that_depend_on_data_come_in_time(torch):
    TestCase = _module(torch, "common_utils").TestCase
    x, far = torch.ones(3), torch.tensor([3])

    def read(index):
        return x[index]

    def write(index):
        x[index] = 2

    class TestErrors(TestCase):
        def test_expected(self):
            self.assertRaises(IndexError, read, far)
            self.assertRaisesRegex(IndexError, "index 3", write, far)
            with self.assertRaises(IndexError) as caught:
                read(far)
            assert "index 3" in str(caught.exception)

        def test_another(self):
            self.assertRaises(ValueError, read, far)

        def test_none(self):
            self.assertRaises(IndexError, read, far - 1)

        def test_unexpected(self):
            read(far)

        def test_untouched(self):
            self.assertEqual(read(far - 1), 1, exact_dtype=False)

    for name in ("expected", "another", "none", "unexpected", "untouched"):
        result = unittest.TestResult()
        TestErrors(f"test_{name}").run(result)
        yield name, ["IndexError: index 3" in text for _, text in result.errors]
        yield ["IndexError not raised" in text for _, text in result.failures]


@case
def texts_in_files(torch):
    class Check(_module(torch, "common_utils").TestCase):
        def test(self):
            self.assertExpected("two\nlines\n", "part")

    with tempfile.TemporaryDirectory() as folder:
        made = types.ModuleType("made_for_a_test")
        made.__file__ = f"{folder}/test_made.py"
        sys.modules[made.__name__] = made
        Check.__module__, Check.__qualname__ = made.__name__, "Check"
        try:
            yield attempt(Check("test").assertExpected, 3)
            os.mkdir(f"{folder}/expect")
            for text in ("two\nlines\n", "others"):
                with open(f"{folder}/expect/Check.test-part.expect", "w") as file:
                    file.write(text)
                result = unittest.TestResult()
                Check("test").run(result)
                yield len(result.errors), len(result.failures)
        finally:
            del sys.modules[made.__name__]


@case
def shapes_of_outputs_and_gradients(torch):
    shapes = torch.autograd._calculate_shape
    x, g = torch.ones(2, 3), torch.ones(4, 3, 2)
    yield shapes(x, g, False), shapes(x, g, True)
    nested = torch.nested.nested_tensor
    x, g = nested([torch.ones(2, 3), torch.ones(1, 3)]), nested([torch.ones(3, 2)])
    yield shapes(x, g, False), attempt(shapes, x, g, True)


@case
def sparse_tensors_of_a_test(torch):
    utils = _module(torch, "common_utils")
    checked = torch.sparse.check_sparse_tensor_invariants
    seen = []

    class Check(utils.TestCase):
        def test(self):
            seen.append(checked.is_enabled())
            with self.assertRaisesRegex(RuntimeError, "size is inconsistent with"):
                torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
            for size, dims, nnz in (([3, 4, 2], 2, 5), ([3, 0], 2, 0), ([6], 1, 4)):
                for twice in (False, True):
                    made, indices, values = self.genSparseTensor(
                        size, dims, nnz, twice, "cpu", torch.double
                    )
                    seen.append((made.is_coalesced(), made._nnz(), indices, values))
                    seen.append(self.safeToDense(made))

    result = unittest.TestResult()
    Check("test").run(result)
    yield result.wasSuccessful(), checked.is_enabled()
    yield seen


@case
def operators_that_skip_tests(torch):
    utils = _module(torch, "common_utils")
    devices = _module(torch, "common_device_type")
    OpInfo = _module(torch, "opinfo.core").OpInfo
    ran = []

    class TestSkipped(utils.TestCase):
        @devices.ops(
            [OpInfo("sin", dtypes={torch.float32}, variant_test_name="v")]
            + [OpInfo(n, dtypes={torch.float32}) for n in ("cos", "tan", "exp")]
        )
        @devices.skipOps(
            [
                devices.xfail("sin", "v"),
                devices.xfail("exp"),
                devices.skip("cos", dtypes=[torch.float32], device_type="cpu"),
                devices.skip("tan", dtypes=[torch.float64]),
            ]
        )
        def test_ran(self, device, dtype, op):
            ran.append(op.name)
            if op.name == "sin":
                self.assertEqual(1, 2)

    scope = {"TestSkipped": TestSkipped}
    devices.instantiate_device_type_tests(TestSkipped, scope, only_for="cpu")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestSkippedCPU"])
    result = unittest.TestResult()
    suite.run(result)
    yield ran, [reason for _, reason in result.skipped]
    for kept in ("failures", "errors", "expectedFailures", "unexpectedSuccesses"):
        yield kept, len(getattr(result, kept))


@case
def gradients_of_samples(torch):
    utils = _module(torch, "common_utils")
    core = _module(torch, "opinfo.core")

    def samples(op, device, dtype, requires_grad, **kwargs):
        def made(*shape):
            return torch.full(shape, 0.5, dtype=dtype, requires_grad=requires_grad)

        yield core.SampleInput([made(2), made(2)], args=(0,))
        yield core.SampleInput([made(2), made(1).detach()], kwargs={"dim": 0})

    class TestCat(utils.TestGradients):
        def runTest(self):
            pass

    wrong = core.OpInfo(
        "cat",
        dtypes={torch.float64},
        sample_inputs_func=samples,
        check_batched_grad=True,
        gradcheck_wrapper=lambda op, *args, **kwargs: _halved(
            torch, op(*args, **kwargs)
        ),
    )
    cat = core.OpInfo("cat", dtypes={torch.float64}, sample_inputs_func=samples)
    place = "cpu", torch.float64
    for op in (cat, wrong):
        for check in ("gradcheck", "bwgrad_bwgrad"):
            found = attempt(TestCat()._check_helper, *place, op, op.get_op(), check)
            yield type(found).__name__, str(found)[:40]
    yield attempt(TestCat()._check_helper, *place, cat, None, "gradcheck")
    yield attempt(TestCat()._check_helper, *place, cat, torch.cat, "other")
    yield attempt(TestCat()._skip_helper, cat, "cpu", torch.float32)


@case.over(listed=[False, True])
def samples_and_conjugates(torch, listed):
    core = _module(torch, "opinfo.core")

    def samples(op, device, dtype, requires_grad, **kwargs):
        x = torch.tensor([1 + 2j], requires_grad=requires_grad)
        yield core.SampleInput(x, args=(2,))
        yield core.SampleInput([x, x])

    def as_list(*args, **kwargs):
        return list(samples(*args, **kwargs))

    made_by = as_list if listed else samples
    op = core.OpInfo("mul", dtypes={torch.complex64}, sample_inputs_func=made_by)
    place = "cpu", torch.complex64
    for requires_grad in (False, True):
        found = op.sample_inputs(*place, requires_grad, include_conjugated_inputs=True)
        yield [(sample.input, sample.args) for sample in found]
        found = op.conjugate_sample_inputs(*place, requires_grad)
        yield [sample.input for sample in found]


def _halved(torch, x):
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g / 2

    return Halved.apply(x)


def _doubled(x, y=2):
    return x * y


@case
def private_functions_with_deprecated_names(torch):
    deprecated = importlib.import_module(f"{torch.__name__}._utils_internal").deprecated
    try:
        yield deprecated()(_doubled) is _doubled
        public = globals()["doubled"]
        yield public(2), public(2, y=3), _doubled(4)
        yield public.__name__, public.__qualname__
        yield type(attempt(deprecated(), _doubled)).__name__
    finally:
        del globals()["doubled"]
    yield type(attempt(deprecated(), torch.ones_like)).__name__


@case
def samples_and_what_they_refuse(torch):
    lib = importlib.import_module(f"{torch.__name__}.testing._internal.opinfo.core")
    make, x = lib.SampleInput, torch.ones(2, 3)
    sample = make(
        x.t(), args=(1, [x, x], (x, 2), "a"), kwargs={"b": x[0], "c": {"d": x}}
    )
    yield sample.summary(), make(x).summary(), make([x, x], 1).summary()
    yield attempt(make, x, 1, args=(1,)), attempt(make, x, args=1)
    yield attempt(make, x, kwargs=1), attempt(lambda: make(x, a=1, kwargs={}))
    yield attempt(lambda: make(x, 1, name="n")), make(x, args=(1,), name="n").name
    yield attempt(torch.testing.make_tensor, (3,), dtype=3, device="cpu")


@case(warnings=False)
def random_compressed_tensors(torch):
    utils = importlib.import_module(f"{torch.__name__}.testing._internal.common_utils")
    core = importlib.import_module(f"{torch.__name__}.testing._internal.opinfo.core")

    class Tests(utils.TestCase):
        def runTest(self):
            """Nothing: what it has is called by hand."""

    test, options = Tests(), {"device": "cpu", "index_dtype": torch.int32}
    for size, nnz in (((3, 4), 5), ((2, 5), 10), ((2, 2), 0)):
        for name in ("genSparseCSRTensor", "genSparseCSCTensor"):
            for dtype in (torch.float32, torch.uint8):
                made = getattr(test, name)(size, nnz, dtype=dtype, **options)
                yield tuple(made.shape), made._nnz(), made.dtype, made.layout
                rows = made.layout is torch.sparse_csr
                outer = made.crow_indices() if rows else made.ccol_indices()
                inner = made.col_indices() if rows else made.row_indices()
                yield outer.dtype, inner.dtype
                again = torch.sparse_compressed_tensor(
                    *(outer, inner, made.values(), made.shape),
                    layout=made.layout,
                    check_invariants=True,
                )
                yield again.layout
    options["dtype"] = torch.float32
    yield attempt(test.genSparseCSRTensor, (2, 2), 5, **options)
    yield attempt(test.genSparseCSRTensor, (2, 0), 1, **options)
    yield attempt(test.genSparseCSRTensor, (2,), 1, **options)
    sample = core.SampleInput(torch.ones(2), args=(torch.ones(2),))
    test.compare_with_reference(torch.add, np.add, sample)
    try:
        test.compare_with_reference(torch.add, np.subtract, sample)
    except AssertionError as error:
        yield str(error).splitlines()[0]


def test_tests_that_need_what_is_missing_are_not_run(monkeypatch):
    from torchshim._dynamo import test_case
    from torchshim.testing._internal import common_utils

    ran = []
    monkeypatch.setattr(common_utils, "run_tests", lambda: ran.append(1))
    test_case.run_tests(needs="no_such_module")
    test_case.run_tests(needs=("json", "no_such_module"))
    assert not ran
    test_case.run_tests(needs=("json",))
    test_case.run_tests()
    assert ran == [1, 1]
    assert issubclass(test_case.TestCase, unittest.TestCase)
    assert 0 < common_utils.find_free_port() < 65536
