"""What the tutorial on distributed programs does, in processes that it starts."""

import os
import sys
from math import ceil
from random import Random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn import functional as F


class Partition:
    def __init__(self, data, index):
        self.data, self.index = data, index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, index):
        return self.data[self.index[index]]


class DataPartitioner:
    def __init__(self, data, sizes, seed=1234):
        self.data, self.partitions = data, []
        rng = Random(seed)
        indexes = list(range(len(data)))
        rng.shuffle(indexes)
        for fraction in sizes:
            length = int(fraction * len(data))
            self.partitions.append(indexes[:length])
            indexes = indexes[length:]

    def use(self, partition):
        return Partition(self.data, self.partitions[partition])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, kernel_size=3)
        self.fc = nn.Linear(27, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv(x), 2)).flatten(1)
        return F.log_softmax(self.fc(x), dim=1)


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def train(rank, size, log):
    torch.manual_seed(1234)
    data = [(torch.randn(1, 8, 8), i % 4) for i in range(64)]
    bsz = 32 // size
    partition = DataPartitioner(data, [1.0 / size] * size).use(rank)
    train_set = torch.utils.data.DataLoader(partition, batch_size=bsz, shuffle=True)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    num_batches = ceil(len(train_set.dataset) / float(bsz))
    for epoch in range(2):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        print("epoch", epoch, f"{epoch_loss / num_batches:.4f}", file=log)


def allreduce(send, recv):
    """The tutorial's ring, of tensors that are added up."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, recv_buff, accum = send.clone(), send.clone(), send.clone()
    left, right = (rank - 1 + size) % size, (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            request = dist.isend(send_buff, right)
            dist.recv(recv_buff, left)
            accum[:] += recv_buff[:]
        else:
            request = dist.isend(recv_buff, right)
            dist.recv(send_buff, left)
            accum[:] += send_buff[:]
        request.wait()
    recv[:] = accum[:]


def run(rank, size, log):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    print("Rank ", rank, " has data ", tensor[0], file=log)
    group = dist.new_group([0, 1])
    if rank < 2:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
        print("Rank ", rank, " has data ", tensor[0], file=log)
    received = torch.zeros(2, 2)
    allreduce(torch.arange(4.0).view(2, 2) * (rank + 1), received)
    print(received, file=log)
    train(rank, size, log)


def init_process(rank, size, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size
    )
    with open(f"{folder}/{rank}.txt", "w") as log:
        run(rank, size, log)
    dist.barrier()
    os._exit(0)  # PyTorch's threads may fail when a process ends in order


if __name__ == "__main__":
    folder = sys.argv[1]
    mp.spawn(init_process, args=(3, folder), nprocs=3, join=True)
    for rank in range(3):
        with open(f"{folder}/{rank}.txt") as log:
            print(rank, log.read())
