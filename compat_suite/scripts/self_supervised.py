# compat: rtol=1e-3 atol=1e-5 seconds=6 (steps of training)
"""Representations without labels: MoCo's queue, Barlow Twins, DINO's centre, MAE."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class MoCo(nn.Module):
    def __init__(self, dim=4, K=8, m=0.9, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = nn.Linear(6, dim), nn.Linear(6, dim)
        for param_q, param_k in zip(
            self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True
        ):
            param_k.data.copy_(param_q.data)  # initialize
            param_k.requires_grad = False  # not update by gradient
        self.register_buffer("queue", torch.randn(dim, K))
        self.queue = nn.functional.normalize(self.queue, dim=0)
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(
            self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True
        ):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0  # for simplicity
        self.queue[:, ptr : ptr + batch_size] = keys.T
        ptr = (ptr + batch_size) % self.K  # move pointer
        self.queue_ptr[0] = ptr

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            idx_shuffle = torch.randperm(im_k.shape[0])
            idx_unshuffle = torch.argsort(idx_shuffle)
            k = nn.functional.normalize(self.encoder_k(im_k[idx_shuffle]), dim=1)
            k = k[idx_unshuffle]
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


def moco():
    model = MoCo()
    learnt = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(learnt, 0.03, momentum=0.9, weight_decay=1e-4)
    for step in range(4):
        x = torch.randn(4, 6)
        output, target = model(x, x + 0.1 * torch.randn(4, 6))
        loss = F.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"moco {step} {loss.item():.4f}", model.queue_ptr.item())
    print(model.queue.norm(dim=0).mean(), sorted(model.state_dict()))


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


def barlow_twins():
    projector = nn.Sequential(nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU())
    bn = nn.BatchNorm1d(5, affine=False)
    optimizer = torch.optim.Adam(projector.parameters(), 0.01)
    x = torch.randn(8, 6)
    for step in range(3):
        z1, z2 = (projector(x + 0.1 * torch.randn_like(x)) for _ in range(2))
        c = bn(z1).T @ bn(z2)
        c.div_(8)
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        off_diag = off_diagonal(c).pow_(2).sum()
        loss = on_diag + 0.0051 * off_diag
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"barlow {step} {on_diag.item():.4f} {off_diag.item():.4f}")


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, nepochs, center_momentum=0.9):
        super().__init__()
        self.ncrops, self.center_momentum = ncrops, center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))
        self.teacher_temp_schedule = np.concatenate(
            (np.linspace(0.04, 0.07, 2), np.ones(nepochs - 2) * 0.07)
        )

    def forward(self, student_output, teacher_output, epoch):
        student_out = (student_output / 0.1).chunk(self.ncrops)
        temp = self.teacher_temp_schedule[epoch]
        teacher_out = F.softmax((teacher_output - self.center) / temp, dim=-1)
        teacher_out = teacher_out.detach().chunk(2)
        total_loss = 0
        n_loss_terms = 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:  # the same view for student and teacher
                    continue
                loss = torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1)
                total_loss += loss.mean()
                n_loss_terms += 1
        total_loss /= n_loss_terms
        self.update_center(teacher_output)
        return total_loss

    @torch.no_grad()
    def update_center(self, teacher_output):
        batch_center = torch.sum(teacher_output, dim=0, keepdim=True)
        batch_center = batch_center / len(teacher_output)
        m = self.center_momentum
        self.center = self.center * m + batch_center * (1 - m)


def dino():
    student = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5))
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad = False
    criterion = DINOLoss(5, 4, 5)
    optimizer = torch.optim.AdamW(student.parameters(), 0.01)
    for epoch in range(3):
        crops = [torch.randn(2, 6) for _ in range(4)]
        loss = criterion(
            student(torch.cat(crops)), teacher(torch.cat(crops[:2])), epoch
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for param_q, param_k in zip(
                student.parameters(), teacher.parameters(), strict=True
            ):
                param_k.data.mul_(0.9).add_((1 - 0.9) * param_q.detach().data)
        print(f"dino {epoch} {loss.item():.4f}", criterion.center)


def masked_patches():
    imgs = torch.arange(2 * 3 * 64.0).view(2, 3, 8, 8)
    x = torch.einsum("nchpwq->nhwpqc", imgs.reshape(2, 3, 4, 2, 4, 2))
    x = x.reshape(shape=(2, 16, 12))
    noise = torch.rand(2, 16)
    ids_shuffle = torch.argsort(noise, dim=1)
    ids_restore = torch.argsort(ids_shuffle, dim=1)
    ids_keep = ids_shuffle[:, :4]
    kept = torch.gather(x, dim=1, index=ids_keep.unsqueeze(-1).repeat(1, 1, 12))
    mask = torch.ones([2, 16])
    mask[:, :4] = 0
    mask = torch.gather(mask, dim=1, index=ids_restore)
    print("mae", kept[0, :, 0].tolist(), mask.int().tolist())


if __name__ == "__main__":
    torch.manual_seed(0)
    moco()
    barlow_twins()
    dino()
    masked_patches()
