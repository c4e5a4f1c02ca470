"""The recorder: what is compiled, and how often; what a flush leaves behind."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import call, flush, learning, program, record, trie, walk
from torchshim._core.record import local


def test_a_steady_step_compiles_once(compiled):
    w = torch.tensor([0.5, -0.25], requires_grad=True)
    x = torch.tensor([1.0, 2.0])
    for _ in range(5):
        w.grad = None
        loss = (w * x).tanh().sum()
        loss.backward()
        assert w.grad is not None
        w.grad.tolist()
    assert compiled() == 1


def test_floats_are_runtime_scalars(compiled):
    x = torch.tensor([1.0, 2.0])
    found = [(x * (i + 0.5)).tolist() for i in range(5)]
    assert found[4] == [4.5, 9.0]
    assert compiled() == 1


def test_numpys_floats_are_runtime_scalars(compiled):
    x = torch.tensor([1.0, 2.0])
    for value in np.linspace(0.5, 2.0, 4):
        assert type(value) is np.float64
        (x * value).clamp(max=value).tolist()
    assert compiled() == 1


def test_integers_that_vary_are_learnt_together(compiled):
    q = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    for i in range(5):
        y = q.select(0, i) + i
        z = q.select(0, 4 - i) * (i + 2)
        assert (y * z).item() == (i + 1 + i) * ((5 - i) * (i + 2))
    assert compiled() == 2


def test_an_exponent_that_varies_is_learnt(compiled):
    q = torch.tensor([1.0, 2.0, 3.0])
    for i in range(5):
        assert (q**i).tolist() == [1.0, 2.0**i, 3.0**i]
    assert compiled() == 2


def test_exponents_with_a_way_of_their_own_are_compiled_in(compiled):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    for exponent in (0.5, 1.25, 2.0, 0.5, 0.75, 2.0, 1.5):
        y = x**exponent
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert y.tolist() == pytest.approx([1, 4**exponent])
        slopes = [exponent, exponent * 4 ** (exponent - 1)]
        assert grad.tolist() == pytest.approx(slopes)
    assert compiled() == 3  # roots, squares, and all others


def test_the_place_of_a_batch_in_its_data_is_a_runtime_scalar(compiled):
    data = torch.tensor([[i, -i] for i in range(12)], dtype=torch.float32)
    labels = torch.tensor(list(range(12)))
    w = torch.tensor([1.0, 1.0], requires_grad=True)
    for i in range(0, 12, 4):
        x, y = data[i : i + 4], labels[i : i + 4]
        loss = ((x @ w - y) ** 2).sum() + data[i, 1]
        loss.backward()
        assert w.grad is not None
        w.grad.tolist()
        w.grad = None
    assert compiled() == 1


def test_another_shape_costs_one_program(compiled):
    for n in (4, 4, 3, 4, 3):
        (torch.ones(n) * 2.0).tolist()
    assert compiled() == 2


def test_explain_names_the_first_difference():
    local.rec.flush()
    for n in (57, 60):
        x = torch.tensor([1.0] * n)
        (x * 2.25).tolist()
    entry = torch.explain().programs[-1]
    assert "shape (57,) became (60,)" in entry.reason
    assert entry.line is not None and entry.line[0].endswith("test_recorder.py")


def test_explain_names_an_operator_in_place_once():
    local.rec.flush()
    for name in ("exp_", "sin_"):
        x = torch.tensor([1.0] * 59)
        getattr(x, name)()
        x.tolist()
    assert (
        torch.explain().programs[-1].reason.endswith(": exp_(HOLE,) became sin_(HOLE,)")
    )


def test_events_say_what_they_are():
    local.rec.flush()
    x = torch.tensor([1.0] * 61, requires_grad=True)
    y = x * 2
    y[1:].mul_(3.5)
    assert list(map(repr, local.rec.state.path())) == [
        "<state 1 input float32[61]>",
        "<state 2 call mul(HOLE, 2)>",
        "<state 3 call basic_index(HOLE, (1,), ((60, 1),))>",
        "<state 4 call mul_(HOLE, FLOAT)>",
        "<state 5 call write_basic_index(HOLE, HOLE, (1,), ((60, 1),), 0)>",
        "<state 6 mark write>",
    ]
    local.rec.flush()
    assert repr(local.rec.state) == "<state 0 root>"


def test_a_read_before_backward_keeps_the_step_steady(compiled):
    w = torch.tensor([0.5, -0.25], requires_grad=True)
    grads = []
    for _ in range(5):
        w.grad = None
        loss = (w * w).tanh().sum()
        loss.item()
        loss.backward()
        grads.append(w.grad.tolist())
    assert compiled() == 2  # the forward pass, and the backward pass
    assert grads == grads[:1] * 5


def test_a_backward_through_a_closed_recording_is_walked_once(monkeypatch):
    walks = []
    run = walk.Walk.run
    monkeypatch.setattr(walk.Walk, "run", lambda self: (walks.append(1), run(self)))
    w = torch.tensor([0.5, -0.25], requires_grad=True)
    for _ in range(4):
        w.grad = None
        loss = (w * w.exp()).sin().sum()
        loss.item()
        loss.backward()
        assert w.grad is not None
        w.grad.tolist()
    assert len(walks) == 1


def test_donated_memory_goes_to_the_new_value(compiled):
    """XLA copies an input first whose memory another value gets."""
    params = [torch.nn.Parameter(torch.ones(2, 2)) for _ in range(3)]
    optimizer = torch.optim.Adam(params)
    for _ in range(3):
        optimizer.zero_grad()
        sum((p**2).sum() for p in params).backward()
        optimizer.step()
    (state, outputs, _), found = list(program.CACHE._programs.items())[-1]
    successors = program.replaced_inputs(state, outputs)
    gifts, _ = found.inputs
    assert len(gifts) == 9
    assert [successors[slot] for slot in outputs[:9]] == list(gifts)


def test_lists_are_arguments_where_an_entrance_is_known():
    x = torch.tensor([[1.0, 2.0]])
    for dims in ((0,), [0], (0,), [0]):
        assert x.sum(dim=dims).tolist() == [1.0, 2.0]


def in_place(w):
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()


def by_data(w):
    w.data.add_(w.grad, alpha=-0.1)
    w.grad = None


def new_data(w):
    w.data = w.data - 0.1 * w.grad.data
    w.grad.data.zero_()


@pytest.mark.parametrize("update", [in_place, by_data, new_data])
def test_steps_written_by_hand_are_programs_without_a_read(compiled, update):
    weights = [torch.full((2,), 0.5, requires_grad=True) for _ in range(2)]
    x = torch.tensor([1.0, 2.0])
    for _ in range(8):
        loss = (weights[0] * x + weights[1]).tanh().sum()
        loss.backward()
        for w in weights:
            update(w)
    loss.item()
    assert 1 <= compiled() <= 4
    assert max(p.events for p in torch.explain().programs[-compiled() :]) < 40


def test_the_first_step_has_the_program_of_all_others(compiled):
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.AdamW(p),
        lambda p: torch.optim.RMSprop(p, momentum=0.5),
    ):
        before = compiled()
        optimizer = make([torch.nn.Parameter(torch.ones(2, 2))])
        for _ in range(3):
            optimizer.zero_grad()
            (optimizer.param_groups[0]["params"][0] ** 2).sum().backward()
            optimizer.step()
        assert compiled() == before + 1
        # JAX compiles a program again where it is called with committed arrays.
        newest = list(program.CACHE._programs.values())[-1]
        assert newest._jitted._cache_size() == 1


def test_an_operator_with_which_tensors_enter_is_one_look_up(own_trie, monkeypatch):
    calls = []
    call = learning.Learning.call
    monkeypatch.setattr(
        learning.Learning, "call", lambda *a: (calls.append(a[1].public), call(*a))[1]
    )
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for a, b in ((x, y), (y, x), (x, x), (x, y), (x, x)):
        assert torch.sub(a, b, alpha=0.5).tolist() == [
            p - 0.5 * q for p, q in zip(a.tolist(), b.tolist(), strict=True)
        ]
    # `x, x` enters another way than `x, y`, and is no entrance.
    assert calls == ["sub", "sub", "sub"]


def test_a_value_with_a_history_enters_in_one_look_up(monkeypatch):
    calls = []
    call = learning.Learning.call
    monkeypatch.setattr(
        learning.Learning, "call", lambda *a: (calls.append(a[1].public), call(*a))[1]
    )
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        calls.clear()
        w.grad = None
        loss = (w * 4.0).sum()
        assert loss.item() == 12.0
        (loss * 0.5).backward()
        assert w.grad.tolist() == [2.0, 2.0]
    assert calls == []
    # The same without a history is another entrance.
    other = (w * 4.0).sum().detach()
    other.item()
    assert not (other * 0.5).requires_grad


def test_dead_values_are_not_outputs():
    local.rec.flush()
    x = torch.tensor([1.0, 2.0])
    y = ((x * 3.25).exp() + 1.0).sum()
    y.item()
    assert torch.explain().programs[-1].outputs == 1


def test_results_die_with_their_tensors():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    refs = [weakref.ref(y)]
    y.item()
    del y
    gc.collect()
    assert refs[0]() is None


def test_an_error_leaves_the_recording_as_it_was():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    with pytest.raises(RuntimeError):
        y + torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError):
        x.add_(1.0)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.tolist() == [1.0, 2.0]


def test_an_error_says_nothing_of_jax():
    convolve = torch.nn.functional.conv2d
    with pytest.raises(RuntimeError) as info:
        convolve(torch.ones(1, 3, 4, 4), torch.ones(2, 2, 3, 3))
    assert not hasattr(info.value, "__notes__")
    assert info.value.__context__ is None
    assert not any("/jax/" in str(entry.path) for entry in info.traceback)


def test_an_error_is_gone_once_it_was_handled():
    class Held:
        pass

    gc.collect()
    held = Held()
    gone = weakref.ref(held)
    try:
        torch.nn.functional.conv2d(torch.ones(1, 3, 4, 5), torch.ones(2, 2, 3, 3))
    except RuntimeError as error:
        error.held = held  # type: ignore[attr-defined]
    del held
    assert gone() is None


def test_an_interrupt_loses_nothing(monkeypatch):
    x = torch.tensor([1.0, 2.0])
    y = x + 1.0

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(record, "flush", interrupted)
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert (y * 2.0).tolist() == [4.0, 6.0]
    assert y.tolist() == [2.0, 3.0]


def test_an_interrupt_while_histories_are_handed_out(monkeypatch):
    class Interrupted(list):
        calls = 0

        def __iter__(self):
            Interrupted.calls += 1
            for each in super().__iter__():
                yield each
                if Interrupted.calls == 2:  # the first time asks for the roots
                    raise KeyboardInterrupt

    found = flush.find_alive

    def find_alive(rec):
        alive, placed = found(rec)
        alive.histories = Interrupted(alive.histories)
        return alive, placed

    local.rec.flush()
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, z = x * 2.0, x.exp()
    with monkeypatch.context() as patch:
        patch.setattr(flush, "find_alive", find_alive)
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert Interrupted.calls > 2
    (y.sum() + z.log().sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_long_recordings_are_flushed():
    y = x = torch.tensor([1.0], requires_grad=True)
    flushes = local.rec.flushes
    n = record.LENGTH_BOUND + record.SEARCH_BOUND + 50
    for _ in range(n):
        y = y + 1.0
    assert local.rec.flushes > flushes
    y.backward()
    assert y.item() == n + 1
    assert x.grad.item() == 1.0


def test_the_trie_is_bounded(own_trie, monkeypatch):
    monkeypatch.setattr(trie, "STATE_BOUND", 200)
    local.rec.flush()
    for n in range(1, 200):
        torch.tensor([1.0] * n) * 2.0
        local.rec.flush()
        kept = local.rec.root.next.values()
        assert local.rec.states == sum(top.size for top in kept)
    assert local.rec.states < 300


def test_branches_that_are_forgotten_are_not_entered_again(own_trie, monkeypatch):
    x = torch.ones(3)
    for _ in range(3):  # from the second time on by an entrance
        (x * 7.0).sum().item()
    monkeypatch.setattr(trie, "STATE_BOUND", 20)
    for n in range(1, 30):
        torch.tensor([1.0] * n).neg()
        local.rec.flush()
    (x * 7.0).exp().tolist()
    kept = local.rec.root.next.values()
    assert local.rec.states == sum(top.size for top in kept)


def test_what_jax_keeps_for_each_shape_is_let_go_of(own_trie, monkeypatch):
    trace = program.partial_eval.trace_to_jaxpr
    monkeypatch.setattr(trie, "STATE_BOUND", 200)
    x = torch.ones(3)
    (x * 2.0).sum().item()
    kept = next(reversed(program.CACHE._programs.values()))
    sizes = []
    for n in range(1, 160):
        torch.tensor([1.0] * n) * 2.0
        local.rec.flush()
        (x * 2.0).sum().item()
        sizes.append(trace.cache_info().currsize)
    assert any(b < a for a, b in itertools.pairwise(sizes))
    # What is used all the time is neither traced nor compiled again.
    assert next(reversed(program.CACHE._programs.values())) is kept
    assert kept._jitted._cache_size() == 1


@pytest.mark.parametrize("attempt", range(8))  # each a race of its own
def test_threads_train_at_once(attempt):
    shared = torch.tensor([0.5, 2.0], requires_grad=True)
    losses: dict[int, list[float]] = {}

    def train(k: int) -> None:
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        seen = losses.setdefault(k, [])
        for _ in range(20):
            w.grad = None
            loss = (w * shared * 0.1).sum()
            loss.backward()
            seen.append(loss.item())

    threads = [threading.Thread(target=train, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(v) for v in losses.values()] == [20, 20, 20]
    assert shared.grad.tolist() == pytest.approx([0.1 * 60, 0.2 * 60], rel=1e-5)


def test_a_graph_made_in_another_thread():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    made = []
    thread = threading.Thread(target=lambda: made.append((x * x).sum()))
    thread.start()
    thread.join()
    made[0].backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_reports_of_checks_stay_few():
    table = torch.ones(4, 2)
    index = torch.tensor([0, 3])
    for _ in range(100):
        rows = torch.nn.functional.embedding(index, table)
        local.rec.flush()
    assert len(local.rec.reports) <= 65
    assert rows.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_an_index_out_of_range_is_raised_at_the_next_read():
    table = torch.ones(4, 2)
    rows = torch.nn.functional.embedding(torch.tensor([0, 9]), table)
    with pytest.raises(IndexError) as caught:
        rows.tolist()
    assert "index out of range" in str(caught.value)
    assert any("embedding" in note for note in caught.value.__notes__)
    assert table.sum().item() == 8.0


def test_the_note_of_an_error_says_that_other_lines_may_have_done_the_same():
    table, good, bad = torch.ones(4), torch.tensor([1]), torch.tensor([9])
    for each in (table, good, bad):
        each.tolist()
    first = table.index_select(0, good)
    assert first.tolist() == [1.0]
    second = table.index_select(0, bad)  # found in the trie: a state has one line
    with pytest.raises(IndexError) as caught:
        second.tolist()
    [note] = caught.value.__notes__
    line = test_the_note_of_an_error_says_that_other_lines_may_have_done_the_same
    assert note == (
        f"raised by index_select, first called so in {__file__}, line "
        f"{line.__code__.co_firstlineno + 4}"
    )


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: x,
        lambda x: x.unbind(1),
        lambda x: x.split(1),
        lambda x: x.split([2, 2, 2, 2], 1),
        lambda x: [x[i] for i in range(8)],
    ],
)
def test_rows_with_a_history_are_one_program(compiled, all_compiled, rows):
    leaf = torch.arange(64.0).view(8, 8).requires_grad_()
    x = leaf * 2.0
    expected = [row.sum().item() for row in rows(x.detach())]
    before = compiled()
    for row, total in zip(rows(x), expected, strict=True):
        assert row.sum() == total
    assert compiled() - before <= 3
    assert [row.storage_offset() for row in rows(x)] == [
        row.storage_offset() for row in rows(leaf)
    ]
    pieces = list(rows(x))
    pieces[1].tolist()
    offsets = [row.storage_offset() for row in rows(leaf)]
    assert [piece.storage_offset() for piece in pieces] == offsets
    assert [piece.grad_fn for piece in pieces[:2]] != [None, None]
    (pieces[1].sum() * 3.0 + pieces[0].sum()).backward()
    [expected] = torch.autograd.grad(
        (rows(leaf * 2.0)[1].sum() * 3.0 + rows(leaf * 2.0)[0].sum()), leaf
    )
    assert torch.equal(leaf.grad, expected)


def test_pieces_that_are_read_in_a_loop_are_not_recorded(own_trie):
    x, rec = torch.arange(100), local.rec
    x.tolist()
    before = rec.states
    assert sum(x[k].item() for k in range(100)) == 4950
    assert rec.states - before < 12
    pieces = [x[k] for k in range(100)]
    assert torch.stack(pieces).tolist() == x.tolist()


def test_pieces_that_are_used_in_a_loop_are_the_same_recording(compiled):
    x = torch.arange(90.0).reshape(30, 3).clone()
    x.tolist()

    def step():
        pieces = [x[k] for k in range(30)]
        return sum(piece.sin() for piece in pieces).tolist()

    first, made = step(), compiled()
    assert first == step() == step()
    assert compiled() == made


@pytest.fixture
def traced(monkeypatch):
    """The calls whose results' shapes a trace has to tell."""
    calls = []
    usual = call.infer_avals

    def counted(each, avals):
        calls.append(each)
        return usual(each, avals)

    monkeypatch.setattr(call, "infer_avals", counted)
    return calls


def test_new_tensors_are_traced_once_for_all_sizes(traced):
    for n in range(2, 30):
        mask, places = torch.ones(n, n + 1), torch.arange(n)
        assert (mask.shape, mask.dtype) == ((n, n + 1), torch.float32)
        assert (places.shape, places.dtype) == ((n,), torch.int64)
        assert (mask.tril() * places[-1]).shape == mask.shape
    assert len(traced) <= 4  # those that no other test has brought about
    assert torch.arange(3, dtype=torch.int8).dtype == torch.int8
    assert torch.arange(0).tolist() == []


def test_gradients_of_pieces_are_traced_once_for_all_places(traced):
    w = torch.ones(40, 7, requires_grad=True)
    x = torch.zeros(40, 7)
    for i in range(40):
        x[i] = w[i] * 2
    x[1:].sum().backward()
    assert len([each for each in traced if isinstance(each, call.VjpCall)]) < 10
    assert w.grad is not None
    assert w.grad.tolist() == [[0.0] * 7] + [[2.0] * 7] * 39


def test_gradients_of_lists_are_traced_once_for_all_lengths(traced):
    for n in range(2, 30):
        pieces = [torch.ones(3, requires_grad=True) for _ in range(n)]
        (torch.cat(pieces).sum() + torch.stack(pieces, 1).sum()).backward()
        assert all(piece.grad.tolist() == [2.0] * 3 for piece in pieces)
    assert len([each for each in traced if isinstance(each, call.VjpCall)]) < 10


def test_a_write_to_a_row_of_rows_is_one_event(own_trie):
    x = torch.zeros(3, 4, 5)
    local.rec.flush()
    for i in range(3):
        x[i][i][i] = 1
    calls = [e.call.op.name for e in local.rec.state.path() if e.call is not None]
    assert calls == ["basic_index", "basic_index", "put_piece_"] * 3
    assert x.sum().item() == 3
