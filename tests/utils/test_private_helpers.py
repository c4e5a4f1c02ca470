"""Helpers of `torch.utils` and `torch.autograd` that libraries call."""

from __future__ import annotations

import collections
import gzip
import importlib
import io
import pickle
import tempfile
import types
from pathlib import Path

from tests.oracle import attempt, case


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@case
def decorated_by_a_context(torch):
    made = module(torch, "utils._contextlib")
    seen = []

    class Noted(made._DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(f"+{self.name}")

        def __exit__(self, *args):
            seen.append(f"-{self.name}")

        def clone(self):
            return type(self)(self.name)

    @Noted("a")
    def twice(x):
        seen.append(x)
        return 2 * x

    @Noted("b")
    def count():
        for i in range(2):
            seen.append(i)
            yield i

    yield twice(3), list(count()), seen[:], twice.__name__
    seen.clear()
    yield made.context_decorator(lambda: Noted("c"), lambda: seen.append("in"))(), seen
    yield attempt(made.context_decorator, Noted("d"), collections.OrderedDict)
    both = types.new_class(
        "Both",
        (Noted,),
        exec_body=lambda ns: ns.update(
            __call__=lambda self: self, __str__=lambda self: "both"
        ),
    )
    yield attempt(made.context_decorator, both("e"), len)

    class Plain(made._NoParamDecoratorContextManager):
        def __enter__(self):
            seen.append("+")

        def __exit__(self, *args):
            seen.append("-")

    @Plain
    def one():
        return 1

    yield one(), seen
    yield (
        made._DecoratorContextManager
        is torch.autograd.grad_mode._DecoratorContextManager
    )
    yield issubclass(torch.no_grad, made._DecoratorContextManager)


@case
def small_helpers(torch):
    cached = module(torch, "utils._functools")
    runs = []

    class Owner:
        @cached.cache_method
        def square(self, x):
            runs.append(x)
            return x * x

    owner = Owner()
    yield owner.square(3), owner.square(3), owner.square(4), runs
    yield attempt(lambda: owner.square(x=3))

    @cached.prefetchable_cache
    def value():
        runs.append("value")
        return 5

    value.prefetch()
    yield value(), value(), runs, attempt(value.set, 6)
    value.clear()
    value.set(7)
    yield value(), runs
    short = module(torch, "utils._dtype_abbrs").dtype_abbrs
    yield sorted((str(dtype), name) for dtype, name in short.items())
    stats = module(torch, "utils._stats")

    @stats.count
    def called():
        return 1

    called(), called(), stats.count_label("label")
    counted = stats.simple_call_counter  # of all that this process counted
    yield [counted[name] for name in (called.__qualname__, "label")]
    thunk = module(torch, "utils._thunk").Thunk(lambda: runs.append("thunk") or 3)
    yield thunk.force(), thunk.force(), runs, thunk.f
    typing = module(torch, "utils._typing_utils")
    yield typing.not_none(0), attempt(typing.not_none, None)
    yield typing.copy_func_params(len)(called) is called
    yield module(torch, "utils._exposed_in").exposed_in("there")(called).__module__


@case
def ordered_sets(torch):
    Ordered = module(torch, "utils._ordered_set").OrderedSet
    a, b = Ordered([3, 1, 2, 3]), Ordered([2, 5, 1, 7])
    for other in (b, Ordered([1]), {1}, [2, 9, 1], Ordered()):
        for name in (
            *("union", "difference", "intersection", "symmetric_difference"),
            *("issubset", "issuperset", "__or__", "__and__", "__sub__", "__xor__"),
            *("__le__", "__gt__", "__eq__", "__ne__", "isdisjoint"),
        ):
            yield name, attempt(lambda: getattr(a, name)(other))  # noqa: B023
        for name in ("update", "difference_update", "intersection_update"):
            changed = a.copy()
            yield attempt(getattr(changed, name), other), changed
    changed = a.copy()
    changed.symmetric_difference_update(b)
    yield changed, list(reversed(a)), len(a), 3 in a, 4 in a
    changed.discard(9), changed.add(3), changed.add(10)
    yield changed.pop(), changed, attempt(changed.remove, 77)
    changed -= {5}
    changed |= [8]
    changed &= Ordered([8, 3])
    yield changed, attempt(Ordered().pop), attempt(hash, a)
    yield pickle.loads(pickle.dumps(a)) == a, repr(a), a == {1, 2, 3}, {1, 2, 3} == a
    changed.clear()
    yield changed, bool(changed)


@case
def batons(torch):
    place = Path(tempfile.mkdtemp())
    baton = module(torch, "utils.file_baton").FileBaton
    one, two = baton(str(place / "lock")), baton(str(place / "lock"))
    yield one.try_acquire(), two.try_acquire()
    one.release()
    two.wait()
    yield two.try_acquire(), two.release()


@case
def nested_tensors(torch):
    function = torch.autograd.function
    a, b = torch.ones(1), torch.zeros(1, requires_grad=True)
    pair = collections.namedtuple("pair", "x y")
    given = [a, (b, None), {"k": a}]
    yield list(function._iter_tensors(given)), list(function._iter_None_tensors(given))
    yield list(function._iter_tensors_permissive([a, 3, None]))
    yield attempt(lambda: list(function._iter_tensors([a, 3])))
    yield attempt(lambda: list(function._iter_filter(callable)([3])))
    yield function._map_tensor_data(pair(b, [b, {"k": b}]))
    yield attempt(function._map_tensor_data, [b, "s"])
    yield function._unflatten([1, 2, 3, 4], [0, (0, None), [0]])

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    yield function.custom_function_call(Twice, b).requires_grad
    yield issubclass(Twice, function._SingleLevelFunction)
    yield function._is_setup_context_defined(Twice.setup_context)
    yield function._ContextMethodMixin is function.FunctionCtx
    hooks, handle = function._HookMixin._register_hook(None, len)
    yield list(hooks.values()) == [len], handle.remove(), list(hooks)
    utils = module(torch, "autograd._functions.utils")
    x = torch.arange(24.0).view(2, 3, 4)
    for size in ((2, 3, 4), (3, 1), (1, 3, 4), (4,), ()):
        yield utils.maybe_unexpand(x, size)
    yield utils.maybe_view(x, (6, 4)).shape, utils.maybe_view(x, x.shape) is x


@case
def helpers_of_functional(torch):
    F = torch.autograd.functional
    x, y = torch.ones(2, requires_grad=True), torch.zeros(3)
    yield F._as_tuple_nocheck(x), F._as_tuple_nocheck([x, y]), F._as_tuple(x)
    yield F._as_tuple((x,), "inputs", "f"), attempt(F._as_tuple, (x, 3), "inputs", "f")
    for create in (False, True):
        made = F._grad_preprocess((x, y), create, True)
        yield [(t.requires_grad, t.is_leaf) for t in made]
        yield (
            F._grad_postprocess((x * 2,), create),
            F._grad_postprocess(((x,),), create),
        )
    for unpack in (True, False, (True, False), (False, True), (True, True, True)):
        yield attempt(F._tuple_postprocess, ((x,), (y,)), unpack)
    yield (
        attempt(F._validate_v, (x,), (y,), True),
        attempt(F._validate_v, (), (y,), False),
    )
    yield F._autograd_grad((x * 2, None, y), (x,), (y[:2] + 1, None, None))
    yield F._autograd_grad((y,), (x,)), attempt(F._autograd_grad, [y], (x,))
    yield attempt(F._autograd_grad, (y,), (x,), (None, None))
    yield F._fill_in_zeros((None, x), (x, y), False, False, "back")
    for stage in ("back", "double_back_trick", "nothing"):
        yield attempt(F._fill_in_zeros, (None,), (x,), True, False, stage)
        yield attempt(F._fill_in_zeros, (y,), (x,), True, True, stage)
    check = module(torch, "autograd.gradcheck")
    yield check._as_tuple([x, y]), check._differentiable_outputs((x * 2, y))
    yield torch.autograd._make_grads((x.sum(), y), (None, None), False)
    yield torch.autograd._tensor_or_tensors_to_tuple(None, 2)
    yield torch.autograd._tensor_or_tensors_to_tuple(x, 1)


@case
def helpers_of_checkpoint(torch):
    checkpoint = module(torch, "utils.checkpoint")
    yield (
        checkpoint._get_autocast_kwargs("cpu"),
        attempt(checkpoint._get_autocast_kwargs, "nothing"),
    )
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        yield checkpoint._get_autocast_kwargs("cpu")
    yield checkpoint._get_device_module("cuda") is torch.cuda
    yield checkpoint._get_device_module("meta")
    yield checkpoint._default_meta_extractor(torch.ones(2))
    yield checkpoint._policy_from_bool(True), checkpoint._policy_from_bool(False)
    yield sorted(checkpoint._allowed_determinism_checks_to_fns)
    yield checkpoint._DEFAULT_DETERMINISM_MODE


@case
def dispatch_modes(torch):
    dispatch = module(torch, "utils._python_dispatch")
    with dispatch._disable_current_modes() as modes:
        yield list(modes)
    yield dispatch._len_torch_dispatch_stack()


@case
def flattened_by_kind(torch):
    tree = module(torch, "utils._pytree")
    pair = collections.namedtuple("pair", "x y")
    for kind, value in (
        ("dict", {"a": 1, "b": 2}),
        ("odict", collections.OrderedDict(a=1, b=2)),
        ("ordereddict", collections.OrderedDict(a=1, b=2)),
        ("defaultdict", collections.defaultdict(int, a=1)),
        ("deque", collections.deque([1, 2], 3)),
        ("list", [1, 2]),
        ("tuple", (1, 2)),
    ):
        leaves, context = getattr(tree, f"_{kind}_flatten")(value)
        made = getattr(tree, f"_{kind}_unflatten")([10 * x for x in leaves], context)
        yield kind, leaves, made, type(made) is type(value)
    leaves, context = tree._namedtuple_flatten(pair(1, 2))
    yield leaves, context is pair, tree._namedtuple_unflatten([3, 4], context) == (3, 4)


@case
def helpers_of_loaders(torch):
    loader = module(torch, "utils.data.dataloader")
    yield loader._get_distributed_settings()
    yield loader._share_dist_seed(torch.Generator().manual_seed(3), None)
    watchdog = module(torch, "utils.data._utils.worker").ManagerWatchdog()
    yield watchdog.is_alive(), module(torch, "utils.data._utils").IS_WINDOWS


@case
def helpers_of_files(torch):
    files = torch.serialization
    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer)
    buffer.seek(0)
    yield files._is_zipfile(buffer), files._is_zipfile(io.BytesIO(b"no")), buffer.tell()
    path = Path(tempfile.mkdtemp()) / "file"
    with files._open_file_like(str(path), "wb") as file:
        file.write(b"text")
    with files._open_file_like(path, "rb") as file:
        yield file.read(), files._should_read_directly(file)
    yield file.closed, files._is_path(path), files._is_path(buffer)
    with files._open_file_like(buffer, "w") as file:
        yield file is buffer, files._should_read_directly(file)
    yield attempt(files._open_file_like, buffer, "x")
    yield attempt(files._open_file_like, 3, "r"), files._check_seekable(buffer)
    with gzip.open(path, "wb") as file:
        yield files._is_compressed_file(file), files._should_read_directly(file)
    yield files._maybe_decode_ascii(b"a"), files._maybe_decode_ascii("b")
    yield torch.hub._is_legacy_zip_format(str(path))


@case
def helpers_of_tensors(torch):
    utils = module(torch, "_utils")
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    yield utils._flatten_sparse_tensors([x, x])
    yield utils._handle_complex(torch.tensor([1 + 2j])), utils._handle_complex(x) is x
    for kwargs in ({}, {"async": True}, {"other": 1}):
        yield attempt(utils._get_async_or_non_blocking, "cuda", False, kwargs)


@case
def seeds_of_workers(torch):
    worker = importlib.import_module(f"{torch.__name__}.utils.data._utils.worker")
    for seed in (0, 12345, (7 << 32) + 3):
        for number in (0, 1, 17):
            yield worker._generate_state(seed, number)


@case
def updates_of_weak_dictionaries(torch):
    weak = torch.utils.weak
    a, b, c = torch.ones(2), torch.ones(2), torch.ones(2)
    found = weak.WeakIdKeyDictionary({a: 1})
    found.update([(b, 2), (a, 3)])
    found.update({c: 4})
    yield [found[key] for key in (a, b, c)], len(found)

    class Failing:
        def keys(self):
            return iter([a, b])

        def __getitem__(self, key):
            if key is b:
                raise ZeroDivisionError
            return 9

    yield attempt(found.update, Failing()), found[a], attempt(found.update, 3)
    found.update(None)
    yield attempt(found.update, name=1), len(found)
