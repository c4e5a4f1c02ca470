"""NumPy's numbers where Python's are meant, and calls that failed for other reasons."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines("""
torch.hamming_window(5, True, np.float32(0.5))
torch.kaiser_window(5, True, np.float32(3))
torch.fft.fftfreq(np.int64(2), np.float32(0.5))
torch.fft.rfftfreq(np.int64(2), np.float64(0.5))
torch.repeat_interleave(torch.ones(2), np.int64(2))
torch.repeat_interleave(torch.ones(2, 2), np.int32(2), 1)
torch.ones(2).random_(np.int64(0), np.int64(1))
torch.ones(2).random_(np.int32(1))
F.unfold(torch.ones(1, 1, 2, 2), np.int64(2))
F.fold(torch.ones(1, 4, 1), (np.int64(2), 2), np.int64(2))
F.ctc_loss(torch.ones(2, 1, 2), torch.ones(1, 1).int(), [np.int64(2)], (np.int32(1),))
F.ctc_loss(torch.ones(2, 1, 2), torch.ones(1, 1).int(), [2], [1.0])
torch.set_num_threads(np.int64(1))
torch.linspace(np.float32(0), np.float64(1), np.int64(3))
F.interpolate(torch.ones(1, 1, 2), size=np.int64(4))
F.one_hot(torch.tensor([0]), np.int64(2))
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=np.float32(0.5))
""")
def numbers(torch, line):
    return evaluate(torch, line, np=np)


@case
def memory_of_a_subclass(torch):
    class Own(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Own)
    yield torch.from_dlpack(x)
    yield torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    shared = torch.from_dlpack(x)
    shared[0] = 5.0
    yield x
    yield torch.from_dlpack(torch.nn.Parameter(torch.ones(1)).detach())


@case.over((-1.0, 2.0), (0.0, 1.0), (-0.3, 0.7), (0.0, 7.7))
def edges_of_histograms(torch, low, high):
    for bins in (3, 10, 37, 100):
        edges = torch.linspace(low, high, bins + 1)
        found = torch.histogram(edges[1:-1], bins, range=(low, high))
        yield torch.equal(found.bin_edges, edges), found.hist
        points = torch.stack([edges[1:-1], edges[1:-1]], 1)
        grid = torch.histogramdd(points, [bins, 2], range=(low, high, low, high))
        yield torch.equal(grid.bin_edges[0], edges), grid.hist.sum(1)


@case.lines("""
torch.nn.utils.rnn.invert_permutation(torch.ones(2))
torch.nn.utils.rnn.invert_permutation(torch.ones(2).bool())
torch.nn.utils.rnn.invert_permutation(torch.zeros(2, 1).long())
torch.nn.utils.rnn.invert_permutation([0, 1])
torch.nn.utils.rnn.invert_permutation(torch.tensor([1, 0], dtype=torch.int32))
torch.nn.utils.rnn.pad_sequence([torch.ones(1)], True, "a")
torch.nn.utils.rnn.pad_sequence([torch.ones(1)], True, 0.0, 1)
torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.tensor(1.0)])
torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)], True, np.float32(3))
torch.meshgrid(torch.ones(2), indexing=True)
torch.meshgrid(torch.ones(2), indexing=["ij"])
torch.cartesian_prod(torch.ones(2), 1.5)
torch.chain_matmul(1j, torch.ones(2, 2))
""")
def told_in_torchs_words(torch, line):
    return attempt(evaluate, torch, line, np=np)
