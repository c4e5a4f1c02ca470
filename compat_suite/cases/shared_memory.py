# compat: rtol=1e-4 atol=1e-6 seconds=5 (steps of training)
"""Memory that processes share: a model trained by one of them, tensors in queues."""

import io
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing as mp
from torch import nn


def add(tensor, value):
    tensor.add_(value)


def fill(queue, event):
    queue.put({"tensor": torch.arange(3.0), "half": torch.ones(2).bfloat16()})
    event.wait()  # the memory is this process's until it is received


def change(queue, event):
    received = queue.get()
    received[0] = 42
    event.set()


def train(model, counts):
    x, y = torch.ones(5, 4), torch.zeros(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        counts[1:] += 1


def run(context, target, *args):
    process = context.Process(target=target, args=args)
    process.start()
    return process


def forked():
    context = mp.get_context("fork")
    tensor, own = torch.zeros(3).share_memory_(), torch.zeros(3)
    view = tensor[1:]
    print(tensor.is_shared(), view.is_shared(), own.is_shared())
    for each in (tensor, view, own):
        run(context, add, each, 2).join()
    print(tensor, view, own)
    turned = torch.zeros(2, 3).t()
    print(turned.share_memory_() is turned, turned.stride())
    run(context, add, turned, torch.arange(6.0).view(3, 2)).join()
    print(turned, turned.stride(), turned.untyped_storage().is_shared())
    halves = torch.ones(4, dtype=torch.bfloat16).share_memory_()
    run(context, add, halves[::2], 1).join()
    print(halves)

    queue, event = context.Queue(), context.Event()
    process = run(context, fill, queue, event)
    received = queue.get()
    event.set()
    process.join()
    print(received, received["tensor"].is_shared())
    sent = torch.arange(6.0)[2:]
    event = context.Event()
    process = run(context, change, queue, event)
    queue.put(sent)
    event.wait()
    process.join()
    print(sent, sent.is_shared())
    with context.Pool(1) as pool:
        print(pool.apply(torch.add, (torch.ones(2), torch.ones(2))))


def spawned():
    torch.manual_seed(0)
    model, counts = nn.Linear(4, 2), torch.zeros(2, dtype=torch.int64)
    before = model.weight.clone()
    assert model.share_memory() is model
    print(all(p.is_shared() for p in model.parameters()), counts.is_shared())
    process = run(mp.get_context("spawn"), train, model, counts)
    process.join()
    print(process.exitcode, counts, counts.is_shared())
    print(model.weight, model.bias, torch.equal(model.weight, before))
    model(torch.ones(1, 4)).sum().backward()
    torch.optim.Adam(model.parameters()).step()
    print(model.weight, model.weight.grad, model.weight.is_shared())
    try:
        ForkingPickler(io.BytesIO()).dump(model.weight * 2)
    except RuntimeError as error:
        print(error)


if __name__ == "__main__":
    forked()
    spawned()
