"""Processes that fill one tensor together: rows, elements, a model trained by turns."""

import torch
import torch.multiprocessing as mp
from torch import nn

WORKERS = 3


def estimate(rank, results, hits, start):
    """Each worker has a row of its own in the results, and elements of the hits."""
    torch.manual_seed(rank)
    start.wait()
    for step in range(8):
        inside = (torch.rand(500, 2).pow(2).sum(1) <= 1).float().mean()
        results[rank, step] = 4 * inside
        hits[rank] += 1
        hits[torch.tensor([WORKERS + rank])] += 2
        hits[torch.arange(len(hits)) == 2 * WORKERS + rank] -= 1


def train(rank, model, losses):
    """A part of the data each, one after the other: what Hogwild does without order."""
    torch.manual_seed(100 + rank)
    inputs = torch.randn(32, 4)
    targets = inputs @ torch.tensor([1.0, -2.0, 0.5, 3.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
        loss.backward()
        optimizer.step()
    losses[rank] = loss.detach()


def run(context, target, *shared):
    """Starts the workers at once and waits for all of them."""
    workers = [
        context.Process(target=target, args=(rank, *shared)) for rank in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])


def main():
    """Everything is printed by the process that started the others."""
    context = mp.get_context("fork")
    results = torch.zeros(WORKERS, 8).share_memory_()
    hits = torch.zeros(3 * WORKERS, dtype=torch.int64).share_memory_()
    print(results.is_shared(), hits.is_shared(), torch.zeros(1).is_shared())
    run(context, estimate, results, hits, context.Barrier(WORKERS))
    print(results)
    print(f"{results.mean():.3f} from {hits.tolist()}")

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    model.share_memory()
    losses = torch.full((WORKERS,), float("nan")).share_memory_()
    for rank in range(WORKERS):
        worker = context.Process(target=train, args=(rank, model, losses))
        worker.start()
        worker.join()
    print([round(loss, 3) for loss in losses.tolist()])
    print([round(w, 2) for w in model.weight[0].tolist()], model.weight.is_shared())


if __name__ == "__main__":
    main()
