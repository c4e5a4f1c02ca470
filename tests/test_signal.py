"""Windows, `stft` and `istft`, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@case.over(*WINDOWS)
def window(torch, name):
    function = getattr(torch, f"{name}_window")
    for n in (0, 1, 2, 5, 6):
        yield function(n), function(n, False), function(n, periodic=True)
    yield function(5, dtype=torch.float64), function(5, dtype=torch.half).dtype
    yield function(window_length=4, requires_grad=True)
    yield attempt(function)
    yield attempt(function, -1)
    yield attempt(function, 2.5)
    yield attempt(function, 3, 0.5)
    yield attempt(function, 3, dtype=torch.int64)
    yield attempt(function, 3, dtype=torch.uint8)
    yield attempt(function, 3, dtype=torch.complex64)


@case
def ends_of_windows(torch):
    """What rounding leaves of terms that cancel, which the texts show."""
    for dtype in (torch.float32, torch.float64):
        for made in (torch.blackman_window, torch.hann_window, torch.hamming_window):
            yield str(made(4, dtype=dtype)), str(made(5, False, dtype=dtype))
        made = torch.signal.windows
        yield str(made.blackman(5, dtype=dtype)), str(made.hann(5, dtype=dtype))


@case
def windows_with_numbers(torch):
    yield torch.hamming_window(4, True, 0.3), torch.hamming_window(4, False, 0.3, 0.6)
    yield torch.kaiser_window(4, True, 5.0), torch.kaiser_window(6, False, beta=0.5)
    yield attempt(torch.kaiser_window, 6, beta=0.5)
    yield torch.kaiser_window(6, True, 0.0)


@case.over(*WINDOWS, "cosine", "exponential", "gaussian", "nuttall", "general_hamming")
def signal_window(torch, name):
    function = getattr(torch.signal.windows, name)
    for n in (0, 1, 2, 5):
        yield function(n), function(n, sym=False), function(n, dtype=torch.float64)
    yield attempt(function, -1)
    yield attempt(function, 3, dtype=torch.float16)


@case.lines("""
torch.signal.windows.exponential(4, tau=2.5), torch.signal.windows.gaussian(4, std=0.5)
torch.signal.windows.exponential(4, center=1, sym=False)
torch.signal.windows.exponential(4, center=1)
torch.signal.windows.exponential(4, tau=0)
torch.signal.windows.gaussian(3, std=0)
torch.signal.windows.kaiser(4, beta=3.0), torch.signal.windows.kaiser(4, beta=0)
torch.signal.windows.kaiser(3, beta=-1)
torch.signal.windows.general_cosine(5, a=[0.5, 0.3, 0.2])
torch.signal.windows.general_cosine(5, a=3)
torch.signal.windows.general_cosine(5, a=[])
torch.signal.windows.general_hamming(5, alpha=0.7)
torch.signal.windows.hamming(torch.tensor(10), sym=False)
torch.signal.windows.kaiser(torch.tensor(4)), torch.signal.windows.hann(torch.tensor(1))
torch.signal.windows.bartlett(True, sym=False)
torch.signal.windows.hann(-1.5)
torch.signal.windows.hann(5, requires_grad=None)
sorted(torch.signal.windows.__all__)
""")
def signal_windows(torch, line):
    return evaluate(torch, line)


def _signal(torch):
    return torch.sin(torch.arange(20.0, dtype=torch.float64) ** 1.5)


@case
def short_time_transforms(torch):
    x, w = _signal(torch), torch.hann_window(8, dtype=torch.float64)
    pair = torch.stack([x, x.flip(0)])
    for args in (
        {"window": w},
        {"window": w[:6], "win_length": 6, "hop_length": 3, "normalized": True},
        {"window": w, "center": False},
        {"window": w, "pad_mode": "constant", "onesided": False},
        {"win_length": 4, "window": w[:4], "center": False, "align_to_window": True},
        {"win_length": 4, "window": w[:4], "center": False, "align_to_window": False},
    ):
        yield torch.stft(x, 8, return_complex=True, **args)
    yield pair.stft(8, window=w, return_complex=True)
    yield torch.stft(torch.complex(x, x), 8, window=w)
    yield torch.stft(x, 8, window=torch.complex(w, w))
    leaf = x.clone().requires_grad_()
    out = torch.stft(leaf, 8, window=w, return_complex=True)
    (out.real**2 + 2 * out.imag).sum().backward()
    yield out.detach(), leaf.grad, out.grad_fn.name(), out._base is None


@case
def inverse_short_time_transforms(torch):
    x, w = _signal(torch), torch.hann_window(8, dtype=torch.float64)
    ones = torch.ones(8, dtype=torch.float64)
    s = torch.stft(x, 8, window=w, return_complex=True)
    yield torch.istft(s, 8, window=w), s.istft(8, window=w, length=18)
    yield torch.istft(s, 8, window=w, length=30)
    yield torch.istft(s, 8, window=ones, center=False, length=13)
    yield torch.istft(s, 8, window=w[:6], win_length=6, normalized=True)
    yield torch.istft(s, 8, hop_length=6, window=w)
    yield torch.istft(s[None], 8, 1, window=w, onesided=True)
    full = torch.stft(torch.complex(x, x), 8, window=w)
    yield torch.istft(full, 8, window=w, return_complex=True)
    yield torch.istft(full, 8, window=w, onesided=False)
    leaf = s.clone().requires_grad_()
    out = torch.istft(leaf, 8, window=w)
    (out**2 * x).sum().backward()
    yield out, leaf.grad


@case
def without_a_window(torch):
    x = _signal(torch)
    yield torch.stft(x, 8, return_complex=True)
    yield torch.stft(x, 8, win_length=5, return_complex=False)
    yield torch.istft(torch.stft(x, 8, return_complex=True), 8)


@case(warnings=False)
def refusals(torch):
    x, w = torch.ones(20), torch.hann_window(8)
    for args, kwargs in (
        ((x, 8), {"return_complex": None}),
        ((x, 8), {"onesided": True, "window": w + 0j}),
        ((x, 8), {"align_to_window": True}),
        ((x, 0), {}),
        ((x, 50), {}),
        ((x, 30), {"center": False}),
        ((x, 8, 0), {}),
        ((x, 8, 2, 9), {}),
        ((x, 8, 2, 0), {"window": w}),
        ((x, 8), {"window": w[:5]}),
        ((x.long(), 8), {"window": w}),
        ((x.half(), 8), {}),
        ((x, 8), {"pad_mode": "foo"}),
    ):
        yield attempt(torch.stft, *args, **{"return_complex": True, **kwargs})
    s = torch.stft(x, 8, window=w, return_complex=True)
    for args, kwargs in (
        ((s, 8), {"window": w, "return_complex": True}),
        ((s, 8), {"window": w, "length": 0}),
        ((x.view(5, 4), 8), {}),
        ((s, 9), {"window": w}),
        ((s, 8, 2, 9), {"window": w}),
        ((s, 8, 9), {"window": w}),
        ((s, 8, 0), {"window": w}),
        ((s, 8), {"window": w + 0j}),
        ((s, 8), {"window": w, "onesided": False}),
        ((s[:, :0], 8), {"window": w}),
        ((s[0], 8), {"window": w}),
        ((s, 8), {"window": [1]}),
    ):
        yield attempt(torch.istft, *args, **kwargs)
    yield attempt(lambda: torch.istft(s, 8, window=w, center=False).tolist())
