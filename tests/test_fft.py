"""`torch.fft`, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = tuple(f"{name}n" for name in ONE)
REAL = ("rfft", "ihfft", "rfftn", "ihfftn", "rfft2", "ihfft2")


def _signals(torch, name):
    """A complex and a real input, or the real one alone."""
    real = torch.sin(torch.arange(24.0, dtype=torch.float64)).view(2, 3, 4)
    yield real
    if name not in REAL:
        yield torch.complex(real, torch.cos(real + 1))


def _shown(torch, function, x, *args, **kwargs):
    """The result and the gradient of a sum that depends on all of it."""
    x = x.detach().requires_grad_()
    y = function(x, *args, **kwargs)
    weight = torch.cos(torch.arange(float(y.numel()), dtype=torch.float64))
    weight = weight.view(y.shape)
    parts = (y.real, y.imag) if y.is_complex() else (y,)
    torch.stack([(p * (p + 1) * weight).sum() for p in parts]).sum().backward()
    return y, x.grad


@case.over(*ONE)
def one_dimension(torch, name):
    function = getattr(torch.fft, name)
    for x in _signals(torch, name):
        yield _shown(torch, function, x)
        yield _shown(torch, function, x, 3, 0, "ortho")
        yield _shown(torch, function, x, n=5, dim=1, norm="forward")
        yield function(x, 1, norm="backward")
    yield function(torch.tensor([3, 1, 2, 5]))
    yield function(torch.tensor([True, False, True]), 4)
    yield function(torch.tensor([3.0, 1, 2, 5]))


@case.over(*SEVERAL)
def several_dimensions(torch, name):
    function = getattr(torch.fft, name)
    for x in _signals(torch, name):
        yield _shown(torch, function, x)
        yield _shown(torch, function, x, (3, 5), (2, 0), "ortho")
        yield function(x, s=(-1, 2), norm="forward")
        yield function(x, dim=1)
        yield getattr(torch.fft, f"{name[:-1]}2")(x)
    yield function(torch.tensor([[3, 1, 2, 5]]))


@case
def mirrored(torch):
    """The transform of real numbers is its own mirror image, to the last bit."""
    for n in (1, 2, 7, 12, 20, 100):
        x = torch.sin(torch.arange(3.0 * n) ** 2).view(3, n)
        y = torch.fft.fft(x)
        yield torch.equal(y[:, 1:], y[:, 1:].flip(1).conj())
        yield y[:, :: n // 2 or 1].imag.abs().max(), y


@case
def many_dimensions(torch):
    x = torch.sin(torch.arange(48.0)).view(2, 2, 3, 2, 2)
    yield torch.fft.fftn(x)
    yield torch.fft.irfftn(torch.fft.rfftn(x))
    yield torch.fft.fftn(torch.tensor(2.0)), torch.fft.fftn(x[0, 0, 0], dim=())


@case
def in_out(torch):
    x = torch.tensor([3.0, 1, 2, 5])
    for name in ONE:
        kind = torch.float32 if name in ("irfft", "hfft") else torch.complex64
        out = torch.empty(0, dtype=kind)
        yield getattr(torch.fft, name)(x, out=out) is out, out
        wrong = torch.empty(
            0, dtype=torch.complex64 if kind.is_floating_point else x.dtype
        )
        yield attempt(getattr(torch.fft, name), x, out=wrong)
    wide = torch.empty(4, dtype=torch.complex128)
    yield torch.fft.fft(x, out=wide), wide
    yield attempt(torch.fft.fft, x.requires_grad_(), out=torch.empty(0) + 0j)


@case.over(*ONE)
def refusals(torch, name):
    function = getattr(torch.fft, name)
    x = torch.ones(4, 3)
    for args in (
        (x.half(),),
        (x.bfloat16(),),
        (torch.empty(0),),
        (torch.tensor(1.0),),
        (x, 0),
        (x, -1),
        (x, 2, 5),
        (x, None, -1, "foo"),
        ([1],),
        (x, 2.5),
        (torch.ones(3, dtype=torch.complex64), 0),
    ):
        yield attempt(function, *args)


@case.over(*SEVERAL, "fft2", "rfft2", "hfft2", "ihfft2")
def refusals_of_several(torch, name):
    function = getattr(torch.fft, name)
    x = torch.ones(4, 3)
    for args in (
        (x.half(),),
        (torch.empty(0),),
        (torch.empty(0, 3),),
        (torch.ones(3) + 0j, (0, 0)),
        (x[0],),
        (x, (5,), (0, 1)),
        (x, (-2, 2)),
        (x, (0, 2)),
        (x, (2, 2), (0, 0)),
        (x, (1, 2, 3)),
        (x, None, (0, 1), "foo"),
        (x, None, (0, 5)),
        ([1],),
    ):
        result = attempt(function, *args)
        if isinstance(result, Exception):
            yield result
    if name[0] in "rh" or name[1] in "rh":
        yield attempt(function, x, None, ())


@case.lines("""
torch.fft.fftfreq(5), torch.fft.rfftfreq(5), torch.fft.fftfreq(4), torch.fft.rfftfreq(4)
torch.fft.fftfreq(5, 0.5), torch.fft.rfftfreq(5, d=0.5), torch.fft.fftfreq(0)
torch.fft.fftfreq(5, 0), torch.fft.rfftfreq(3, 0)
torch.fft.fftfreq(4, dtype=torch.float64), torch.fft.rfftfreq(3, dtype=torch.float16)
torch.fft.fftfreq(4, requires_grad=True)
x = torch.empty(0); torch.fft.rfftfreq(4, out=x) is x, x
x = torch.empty(3, 2); torch.fft.fftfreq(6, out=x), torch.fft.rfftfreq(10, out=x)
x = torch.empty(2); torch.fft.fftfreq(6, out=x)
torch.fft.fftfreq(1, out=torch.empty(()))
torch.fft.fftfreq(6, out=torch.empty(6, requires_grad=True))
torch.fft.fftfreq(-1)
torch.fft.fftfreq(4, dtype=torch.int64)
torch.fft.rfftfreq(4, dtype=torch.complex64)
torch.fft.fftfreq(2.5)
torch.fft.fftshift(torch.arange(12).view(4, 3))
torch.fft.fftshift(torch.arange(12).view(4, 3), 0), torch.fft.ifftshift(torch.arange(5))
torch.fft.ifftshift(torch.arange(12).view(4, 3), (0, -1))
torch.fft.fftshift(torch.ones(2), 5)
torch.fft.fftshift(torch.ones(2, requires_grad=True))
torch.fft.fftshift([1])
""")
def frequencies(torch, line):
    return evaluate(torch, line)


@case
def transforms_along_nothing(torch):
    names = "fftn ifftn rfftn irfftn hfftn ihfftn rfft2 irfft2 fft2".split()
    given = ({"dim": ()}, {"s": ()}, {"s": (2,)}, {"s": (), "dim": ()}, {})
    for name in names:
        function = getattr(torch.fft, name)
        for x in (torch.zeros(2, 2), torch.tensor(1.0)):
            yield name, [attempt(function, x, **options) for options in given]
        yield attempt(function, torch.ones(2, 2), out=torch.empty(0, dtype=torch.int32))
    for name in ("fftshift", "ifftshift"):
        shift = getattr(torch.fft, name)
        yield shift(torch.tensor(1.0)), attempt(shift, torch.tensor(1.0), -4)
