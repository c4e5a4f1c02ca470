"""`torch.jit`: scripted and traced modules and functions run as the Python they are."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import typing
import warnings
import zipfile

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate


def add(x):
    """One more."""
    return x + 1


def declared(x):  # fmt: skip
    pass


@case(warnings=False, raises=(AssertionError, AttributeError)).lines(
    """
    torch.jit.is_scripting(), torch.jit.is_tracing()
    torch.jit.annotate(int, 3), torch.jit.Attribute(3, int)
    torch.jit.ignore(add) is add, torch.jit.ignore()(add) is add
    torch.jit.ignore(drop=True)(add) is add
    torch.jit.ignore(3)
    torch.jit.unused(add) is add, torch.jit.export(add) is add
    torch.jit.isinstance([1, 2], typing.List[int])
    torch.jit.isinstance([1, "a"], typing.List[int])
    torch.jit.isinstance({"a": 1}, typing.Dict[str, int])
    torch.jit.isinstance((1, "a"), typing.Tuple[int, str])
    torch.jit.isinstance(None, typing.Optional[int]), torch.jit.isinstance(3, int)
    torch.jit.isinstance([1], list)
    torch.jit.wait(torch.jit.fork(add, torch.ones(2)))
    torch.jit.wait(3)
    torch.wait(torch.fork(add, torch.ones(1)))
    torch.jit.script_if_tracing(add)(torch.ones(1))
    torch.jit.script(3)
    torch.jit.trace(add)
    torch.jit.trace_module(nn.Linear(1, 1), 3)
    torch.jit.freeze(nn.Linear(1, 1))
    torch.jit.freeze(torch.jit.script(nn.Linear(1, 1)))
    torch.jit.load("/nowhere")
    torch.jit._unwrap_optional(None)
    torch.jit._overload(declared) is declared
    torch.jit._overload_method(declared) is declared
    torch.jit._script_if_tracing(add)(torch.ones(1))
    torch.fx.wrap("add"), torch.fx.wrap(add) is add
    torch.fx.wrap(3)
    isinstance(torch.ones(1), torch.fx.Proxy)
    torch._C._jit_set_profiling_mode(True), torch._C._jit_set_profiling_executor(True)
    torch._C._jit_set_autocast_mode(True), torch._C._jit_set_texpr_fuser_enabled(True)
    torch._C._jit_override_can_fuse_on_cpu(True), torch._C._jit_can_fuse_on_cpu()
    torch._C._jit_override_can_fuse_on_cpu(False), torch._C._jit_can_fuse_on_cpu()
    torch._C._jit_override_can_fuse_on_gpu(False), torch._C._jit_can_fuse_on_gpu()
    torch._C._is_tracing()
    torch.jit.Final is typing.Final
    torch.jit.Error.__name__, issubclass(torch.jit.TracerWarning, Warning)
    issubclass(torch.jit.RecursiveScriptModule, torch.jit.ScriptModule)
    torch.jit.annotations.BroadcastingList2[int]
    """
)
def calls(torch, line):
    return evaluate(torch, line, add=add, declared=declared, typing=typing)


def checked(x):
    assert x.shape[0] == 5
    return x


def scaled(x, how: int, scale: float = 2):
    if how == 1:
        raise ValueError("one")
    elif how == 2:
        raise AssertionError("two")
    elif how == 3:
        return x @ x
    return x * scale


@case(warnings=False)
def what_scripts_convert_and_raise(torch):
    class Scaled(torch.nn.Module):
        def forward(self, x, how: int, scale: float = 2):
            return scaled(x, how, scale)

    x = torch.ones(2, 3, dtype=torch.long)
    for made in (torch.jit.script(scaled), torch.jit.script(Scaled())):
        for named in {}, {"scale": 3}, {"scale": 1.5}:
            yield made(x, 0, **named)
        yield made(x, 0, 4)
        for how in (1, 2, 3):
            try:
                made(x.float(), how)
            except Exception as error:
                lines = str(error).splitlines()
                yield type(error), lines[:2], lines[-1]
    yield type(attempt(torch.jit.script(checked), x))
    yield torch.jit.Error.__mro__, torch.jit.Error.__module__


@case(warnings=False)
def functions(torch):
    x = torch.ones(2)
    for made in (torch.jit.trace(add, (x,)), torch.jit.trace(add, x)):
        yield isinstance(made, torch.jit.ScriptFunction), made(x), made.name
    yield torch.jit.trace(lambda a, b: a * b, (x, x))(x, x)
    traced = torch.jit.trace(add, example_kwarg_inputs={"x": x})
    yield traced(x=x)


@case(warnings=False)
def modules(torch):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    x = torch.ones(3, 2)
    scripted, traced = torch.jit.script(net), torch.jit.trace(net, x)
    for made in (scripted, traced):
        yield type(made).__name__, isinstance(made, torch.jit.ScriptModule)
        yield made.original_name, list(made.state_dict()), made.training
        yield torch.equal(made(x), net(x)), len(list(made.parameters()))
        yield isinstance(made, torch.nn.Sequential), str(made)
    with torch.no_grad():
        net[0].bias.fill_(5.0)
    yield torch.equal(scripted(x), net(x)), scripted.state_dict()["0.bias"]
    scripted(x).sum().backward()
    yield net[0].bias.grad is not None
    scripted.eval()
    frozen = torch.jit.freeze(scripted)
    yield torch.jit.optimize_for_inference(frozen)(x).shape
    scripted.load_state_dict(
        {k: torch.zeros_like(v) for k, v in net.state_dict().items()}
    )
    yield net[0].weight
    # Parameters of such a module cannot be given with a call.
    for jitted in (torch.jit.script(net), torch.jit.trace(net, x)):
        yield attempt(torch.func.functional_call, jitted, {}, x)


@case(warnings=False)
def modules_without_shapes(torch):
    nn, jit, x = torch.nn, torch.jit, torch.ones(2, 3)

    def lazy():
        return [
            nn.LazyLinear(3),
            nn.Sequential(nn.ReLU(), nn.LazyBatchNorm1d(affine=False)),
        ]

    yield [attempt(jit.script, net) for net in lazy()]
    yield [attempt(jit.trace, net, x) for net in lazy()]
    yield [attempt(jit.trace, net.forward, x) for net in lazy()]
    yield [attempt(jit.trace_module, net, {"forward": x}) for net in lazy()]
    net = nn.LazyLinear(3)
    net(x)
    yield jit.script(net)(x).shape


@case(warnings=False)
def marks_on_methods(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            return self.helper(x)

        @torch.jit.export
        def helper(self, x):
            return x * 2

        @torch.jit.ignore
        def aside(self, x):
            return x

        @torch.jit.unused
        def never(self, x):
            return x

    net = Net()
    yield net(torch.ones(1)), net.helper(torch.ones(1)), net.aside(1), net.never(2)


@case(warnings=False)
def methods_that_modules_have(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 1

        @torch.jit.export
        def double(self, x):
            return x * 2

        @torch.jit.ignore
        def half(self, x):
            return x

    scripted = torch.jit.script(Net())
    yield scripted.double(torch.ones(1)), scripted.half(3), scripted(torch.ones(1))
    yield attempt(scripted.half) is not None, scripted.float() is scripted


@case
def futures(torch):
    future = torch.futures.Future()
    yield future.done(), attempt(future.value) is not None
    later = future.then(lambda f: f.value() + 1)
    future.set_result(2)
    yield future.done(), future.wait(), later.wait()
    failing = torch.futures.Future()
    failing.set_exception(ValueError("no"))
    yield attempt(failing.wait)
    both = torch.futures.collect_all([future, later])
    yield [f.wait() for f in both.wait()], torch.futures.wait_all([future, later])


def test_one_word_that_nothing_is_compiled():
    torchshim.set_warn_always(False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torchshim._errors._warned.clear()
        torchshim.jit.script(add)
        torchshim.jit.script(add)
    said = [w for w in caught if "nothing is compiled" in str(w.message)]
    assert len(said) == 1 and said[0].filename == __file__


@pytest.mark.filterwarnings("ignore")
def test_what_needs_torchscript_is_refused(tmp_path):
    made = torchshim.jit.script(torchshim.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="pass an instance instead"):
        torchshim.jit.script(torchshim.nn.Linear)
    path = tmp_path / "made.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("made/constants.pkl", b"")

    class Local(torchshim.nn.Linear):
        pass

    for refused in (
        lambda: torchshim.jit.script(Local(1, 1)).save(path),
        lambda: torchshim.jit.script(lambda x: x).save_to_buffer(),
        lambda: torchshim.jit.load(path),
        lambda: pickle.dumps(made),
        lambda: torchshim.jit.CompilationUnit(""),
        lambda: torchshim.export.export(made, ()),
    ):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(AttributeError, match="nothing is compiled"):
        made.graph  # noqa: B018


@case
def deprecations_are_not_of_the_script(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.script(torch.nn.ReLU())
    found = [w for w in caught if w.category is DeprecationWarning]
    yield len(found) > 0, any(w.filename == __file__ for w in found)


@case(warnings=False)
def files(torch):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2), nn.ReLU()))
    x = torch.arange(6.0).view(3, 2)
    model[0].weight.requires_grad = False
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        for made in (torch.jit.script(model), torch.jit.trace(model.eval(), x)):
            made.save(path)
            found = torch.jit.load(path, map_location="cpu")
            yield (
                repr(found),
                found.eval()(x),
                isinstance(found, torch.jit.ScriptModule),
            )
            yield [(n, p.requires_grad) for n, p in found.named_parameters()]
            yield getattr(found, "0").bias is model[0].bias, sorted(found.state_dict())
            torch.jit.save(found, path)
            yield torch.jit.load(path)(x)
        found = torch.load(path, weights_only=False)
        yield type(found).__name__
        torch.save(model.state_dict(), path)
        yield attempt(torch.jit.load, path)
        yield attempt(torch.jit.save, model, path)
    file, files = io.BytesIO(), {"notes": "some"}
    torch.jit.save(torch.jit.script(nn.ReLU()), file, _extra_files=files)
    file.seek(0)
    files["notes"] = ""
    yield torch.jit.load(file, _extra_files=files)(x - 2), files
    yield attempt(torch.jit.load, io.BytesIO(bytes(500)))
    file = io.BytesIO(torch.jit.script(add).save_to_buffer())
    yield torch.jit.load(file)(torch.ones(2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", ["os.system", "builtins.eval", "torch.load"])
def test_files_call_nothing_else(tmp_path, call):
    place, _, name = call.rpartition(".")
    path = tmp_path / "made.pt"
    torchshim.jit.script(torchshim.nn.ReLU()).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    witness = tmp_path / "witness"

    def text(value):
        data = str(value).encode()
        return b"X" + len(data).to_bytes(4, "little") + data

    for attack in (
        f"c{place}\n{name}\n(".encode() + text(witness) + b"tR.",
        b"ctorchshim.jit._files\n_function\n(" + text(place) + text(name) + b"tR.",
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for member, data in members.items():
                pickled = member.endswith("data.pkl")
                archive.writestr(member, attack if pickled else data)
        with pytest.raises(pickle.UnpicklingError, match=name):
            torchshim.jit.load(path)
