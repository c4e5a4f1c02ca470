# compat: rtol=1e-3 atol=1e-5 seconds=12 (a few steps of training)
# ruff: noqa: B007, B023, B905, C408, C416, E501, E731, F841, RUF005
"""Learning to act by models and from others: IMPALA, MuZero, world models."""

import collections
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim


def impala_vtrace():
    VTraceFromLogitsReturns = collections.namedtuple(
        "VTraceFromLogitsReturns",
        [
            "vs",
            "pg_advantages",
            "log_rhos",
            "behavior_action_log_probs",
            "target_action_log_probs",
        ],
    )
    VTraceReturns = collections.namedtuple("VTraceReturns", "vs pg_advantages")

    def action_log_probs(policy_logits, actions):
        return -F.nll_loss(
            F.log_softmax(torch.flatten(policy_logits, 0, -2), dim=-1),
            torch.flatten(actions),
            reduction="none",
        ).view_as(actions)

    @torch.no_grad()
    def from_importance_weights(
        log_rhos,
        discounts,
        rewards,
        values,
        bootstrap_value,
        clip_rho_threshold=1.0,
        clip_pg_rho_threshold=1.0,
    ):
        with torch.no_grad():
            rhos = torch.exp(log_rhos)
            clipped_rhos = (
                torch.clamp(rhos, max=clip_rho_threshold)
                if clip_rho_threshold is not None
                else rhos
            )
            cs = torch.clamp(rhos, max=1.0)
            values_t_plus_1 = torch.cat(
                [values[1:], torch.unsqueeze(bootstrap_value, 0)], dim=0
            )
            deltas = clipped_rhos * (rewards + discounts * values_t_plus_1 - values)
            acc = torch.zeros_like(bootstrap_value)
            result = []
            for t in range(discounts.shape[0] - 1, -1, -1):
                acc = deltas[t] + discounts[t] * cs[t] * acc
                result.append(acc)
            result.reverse()
            vs_minus_v_xs = torch.stack(result)
            vs = torch.add(vs_minus_v_xs, values)
            broadcasted_bootstrap_values = torch.ones_like(vs[0]) * bootstrap_value
            vs_t_plus_1 = torch.cat(
                [vs[1:], broadcasted_bootstrap_values.unsqueeze(0)], dim=0
            )
            clipped_pg_rhos = (
                torch.clamp(rhos, max=clip_pg_rho_threshold)
                if clip_pg_rho_threshold is not None
                else rhos
            )
            pg_advantages = clipped_pg_rhos * (
                rewards + discounts * vs_t_plus_1 - values
            )
            return VTraceReturns(vs=vs, pg_advantages=pg_advantages)

    def compute_baseline_loss(advantages):
        return 0.5 * torch.sum(advantages**2)

    def compute_entropy_loss(logits):
        policy = F.softmax(logits, dim=-1)
        log_policy = F.log_softmax(logits, dim=-1)
        return torch.sum(policy * log_policy)

    def compute_policy_gradient_loss(logits, actions, advantages):
        ce = F.nll_loss(
            F.log_softmax(torch.flatten(logits, 0, 1), dim=-1),
            target=torch.flatten(actions, 0, 1),
            reduction="none",
        )
        ce = ce.view_as(advantages)
        return torch.sum(ce * advantages.detach())

    class AtariNet(nn.Module):
        def __init__(self, observation_shape, num_actions, use_lstm=True):
            super().__init__()
            self.num_actions = num_actions
            self.conv1 = nn.Conv2d(observation_shape[0], 8, kernel_size=4, stride=2)
            self.conv2 = nn.Conv2d(8, 8, 3)
            self.fc = nn.Linear(8 * 25, 32)
            core = 32 + num_actions + 1
            self.core = nn.LSTM(core, core, 2)
            self.policy = nn.Linear(core, num_actions)
            self.baseline = nn.Linear(core, 1)

        def initial_state(self, batch_size):
            return tuple(
                torch.zeros(self.core.num_layers, batch_size, self.core.hidden_size)
                for _ in range(2)
            )

        def forward(self, inputs, core_state=()):
            x = inputs["frame"]
            T, B, *_ = x.shape
            x = torch.flatten(x, 0, 1)
            x = x.float() / 255.0
            x = F.relu(self.conv1(x))
            x = F.relu(self.conv2(x))
            x = x.view(T * B, -1)
            x = F.relu(self.fc(x))
            one_hot = F.one_hot(
                inputs["last_action"].view(T * B), self.num_actions
            ).float()
            clipped_reward = torch.clamp(inputs["reward"], -1, 1).view(T * B, 1)
            core_input = torch.cat([x, clipped_reward, one_hot], dim=-1).view(T, B, -1)
            core_output_list = []
            notdone = (~inputs["done"]).float()
            for input, nd in zip(core_input.unbind(), notdone.unbind()):
                nd = nd.view(1, -1, 1)
                core_state = tuple(nd * s for s in core_state)
                output, core_state = self.core(input.unsqueeze(0), core_state)
                core_output_list.append(output)
            core_output = torch.flatten(torch.cat(core_output_list), 0, 1)
            policy_logits = self.policy(core_output)
            baseline = self.baseline(core_output)
            if self.training:
                action = torch.multinomial(
                    F.softmax(policy_logits, dim=1), num_samples=1
                )
            else:
                action = torch.argmax(policy_logits, dim=1)
            return dict(
                policy_logits=policy_logits.view(T, B, self.num_actions),
                baseline=baseline.view(T, B),
                action=action.view(T, B),
            ), core_state

    T, B, A = 6, 3, 4
    specs = dict(
        frame=dict(size=(T + 1, 1, 16, 16), dtype=torch.uint8),
        reward=dict(size=(T + 1,), dtype=torch.float32),
        done=dict(size=(T + 1,), dtype=torch.bool),
        policy_logits=dict(size=(T + 1, A), dtype=torch.float32),
        action=dict(size=(T + 1,), dtype=torch.int64),
        last_action=dict(size=(T + 1,), dtype=torch.int64),
    )
    buffers = {key: [] for key in specs}
    for _ in range(4):
        for key in buffers:
            buffers[key].append(torch.empty(**specs[key]))
    actor, learner = AtariNet((1, 16, 16), A), AtariNet((1, 16, 16), A)
    actor.load_state_dict(learner.state_dict())
    optimizer = torch.optim.RMSprop(
        learner.parameters(), lr=5e-4, momentum=0, eps=0.01, alpha=0.99
    )

    def lr_lambda(epoch):
        return 1 - min(epoch * T * B, 1000) / 1000

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
    g = np.random.RandomState(0)
    for it in range(4):
        for m in range(4):
            st = actor.initial_state(1)
            la = torch.zeros(1, 1, dtype=torch.int64)
            rew = torch.zeros(1, 1)
            dn = torch.ones(1, 1, dtype=torch.uint8).bool()
            for t in range(T + 1):
                env_output = dict(
                    frame=torch.from_numpy(
                        g.randint(0, 255, (1, 1, 1, 16, 16)).astype(np.uint8)
                    ),
                    reward=rew,
                    done=dn,
                    last_action=la,
                )
                with torch.no_grad():
                    out, st = actor(env_output, st)
                for k in env_output:
                    buffers[k][m][t, ...] = env_output[k]
                for k in ("policy_logits", "action"):
                    buffers[k][m][t, ...] = out[k]
                la = out["action"]
                rew = torch.tensor(float(la.item() == 2)).view(1, 1)
                dn = torch.tensor(bool(g.rand() < 0.1)).view(1, 1)
        idx = [0, 2, 3]
        batch = {
            key: torch.stack([buffers[key][m] for m in idx], dim=1) for key in buffers
        }
        outs, _ = learner(batch, learner.initial_state(B))
        boot = outs["baseline"][-1]
        batch = {k: t[1:] for k, t in batch.items()}
        lo = {k: t[:-1] for k, t in outs.items()}
        rewards = torch.clamp(batch["reward"], -1, 1)
        discounts = (~batch["done"]).float() * 0.99
        tl, bl = (
            action_log_probs(lo["policy_logits"], batch["action"]),
            action_log_probs(batch["policy_logits"], batch["action"]),
        )
        vt = from_importance_weights(tl - bl, discounts, rewards, lo["baseline"], boot)
        pg = compute_policy_gradient_loss(
            lo["policy_logits"], batch["action"], vt.pg_advantages
        )
        bs = 0.5 * compute_baseline_loss(vt.vs - lo["baseline"])
        en = 0.0006 * compute_entropy_loss(lo["policy_logits"])
        total = pg + bs + en
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), 40.0)
        optimizer.step()
        scheduler.step()
        actor.load_state_dict(learner.state_dict())
        print(
            it, total.item(), pg.item(), bs.item(), en.item(), scheduler.get_last_lr()
        )


def muzero():
    # werner-duvaud/muzero-general, fully connected
    def mlp(i, sizes, o, output_activation=torch.nn.Identity, activation=torch.nn.ELU):
        sizes = [i] + sizes + [o]
        layers = []
        for k in range(len(sizes) - 1):
            act = activation if k < len(sizes) - 2 else output_activation
            layers += [torch.nn.Linear(sizes[k], sizes[k + 1]), act()]
        return torch.nn.Sequential(*layers)

    def support_to_scalar(logits, support_size):
        probabilities = torch.softmax(logits, dim=1)
        support = (
            torch.tensor([x for x in range(-support_size, support_size + 1)])
            .expand(probabilities.shape)
            .float()
            .to(device=probabilities.device)
        )
        x = torch.sum(support * probabilities, dim=1, keepdim=True)
        x = torch.sign(x) * (
            ((torch.sqrt(1 + 4 * 0.001 * (torch.abs(x) + 1 + 0.001)) - 1) / (2 * 0.001))
            ** 2
            - 1
        )
        return x

    def scalar_to_support(x, support_size):
        x = torch.sign(x) * (torch.sqrt(torch.abs(x) + 1) - 1) + 0.001 * x
        x = torch.clamp(x, -support_size, support_size)
        floor = x.floor()
        prob = x - floor
        logits = torch.zeros(x.shape[0], x.shape[1], 2 * support_size + 1).to(x.device)
        logits.scatter_(
            2, (floor + support_size).long().unsqueeze(-1), (1 - prob).unsqueeze(-1)
        )
        indexes = floor + support_size + 1
        prob = prob.masked_fill_(2 * support_size < indexes, 0.0)
        indexes = indexes.masked_fill_(2 * support_size < indexes, 0.0)
        logits.scatter_(2, indexes.long().unsqueeze(-1), prob.unsqueeze(-1))
        return logits

    S, A, E = 5, 3, 8

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.representation_network = torch.nn.DataParallel(mlp(4, [16], E))
            self.dynamics_encoded = torch.nn.DataParallel(mlp(E + A, [16], E))
            self.dynamics_reward = torch.nn.DataParallel(mlp(E, [16], 2 * S + 1))
            self.pi = torch.nn.DataParallel(mlp(E, [16], A))
            self.v = torch.nn.DataParallel(mlp(E, [16], 2 * S + 1))

        def norm(self, e):
            mn = e.min(1, keepdim=True)[0]
            mx = e.max(1, keepdim=True)[0]
            scale = mx - mn
            scale[scale < 1e-5] += 1e-5
            return (e - mn) / scale

        def prediction(self, e):
            return self.pi(e), self.v(e)

        def initial_inference(self, obs):
            e = self.norm(self.representation_network(obs.view(obs.shape[0], -1)))
            pl, v = self.prediction(e)
            reward = torch.log(
                torch.zeros(1, 2 * S + 1)
                .scatter(1, torch.tensor([[(2 * S + 1) // 2]]).long(), 1.0)
                .repeat(len(obs), 1)
                .to(obs.device)
            )
            return v, reward, pl, e

        def recurrent_inference(self, e, action):
            oh = torch.zeros((action.shape[0], A)).to(action.device).float()
            oh.scatter_(1, action.long(), 1.0)
            n = self.dynamics_encoded(torch.cat((e, oh), dim=1))
            r = self.dynamics_reward(n)
            n = self.norm(n)
            pl, v = self.prediction(n)
            return v, r, pl, n

    class Node:
        def __init__(self, prior):
            self.n, self.prior, self.vs, self.children, self.h, self.r = (
                0,
                prior,
                0,
                {},
                None,
                0,
            )

        def value(self):
            return self.vs / self.n if self.n else 0

        def expand(self, actions, reward, pl, h):
            self.r, self.h = reward, h
            pv = torch.softmax(
                torch.tensor([pl[0][a] for a in actions]), dim=0
            ).tolist()
            for i, a in enumerate(actions):
                self.children[a] = Node(pv[i])

    def mcts(model, obs, sims, rng):
        root = Node(0)
        o = torch.tensor(obs).float().unsqueeze(0).to(next(model.parameters()).device)
        rv, rw, pl, h = model.initial_inference(o)
        rv = support_to_scalar(rv, S).item()
        rw = support_to_scalar(rw, S).item()
        root.expand(range(A), rw, pl, h)
        noise = rng.dirichlet([0.25] * A)
        for a, n in zip(root.children, noise):
            root.children[a].prior = root.children[a].prior * 0.75 + n * 0.25
        for _ in range(sims):
            node, path = root, [root]
            while node.children:

                def ucb(a):
                    c = node.children[a]
                    pb = math.log((node.n + 19652 + 1) / 19652) + 1.25
                    return pb * math.sqrt(node.n) / (c.n + 1) * c.prior + (
                        c.r + 0.99 * c.value() if c.n else 0
                    )

                a = max(node.children, key=ucb)
                node = node.children[a]
                path.append(node)
            v, r, pl, h = model.recurrent_inference(
                path[-2].h, torch.tensor([[a]]).to(path[-2].h.device)
            )
            v = support_to_scalar(v, S).item()
            r = support_to_scalar(r, S).item()
            node.expand(range(A), r, pl, h)
            for n in reversed(path):
                n.vs += v
                n.n += 1
                v = n.r + 0.99 * v
        return root, rv

    rng = np.random.RandomState(0)
    model = Net()
    model.eval()
    print(scalar_to_support(torch.tensor([[0.3, -4.2, 40.0, -2.0]]), S))
    with torch.no_grad():
        for k in range(2):
            root, rv = mcts(model, rng.rand(1, 1, 4).tolist(), 12, rng)
            print(
                [c.n for c in root.children.values()],
                round(root.value(), 4),
                round(rv, 4),
            )
    model.train()
    opt = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-4)
    for step in range(6):
        for g in opt.param_groups:
            g["lr"] = 0.02 * 0.8 ** (step / 10)
        obs, act = (
            torch.tensor(rng.rand(8, 1, 1, 4)).float(),
            torch.tensor(rng.randint(0, A, (8, 4))).long().unsqueeze(-1),
        )
        tv, tr, tp = (
            scalar_to_support(torch.tensor(rng.randn(8, 4) * 2).float(), S),
            scalar_to_support(torch.tensor(rng.randn(8, 4)).float(), S),
            torch.tensor(rng.dirichlet([1] * A, (8, 4))).float(),
        )
        gs = torch.tensor([[4, 3, 2, 1]] * 8).float()
        v, r, p, h = model.initial_inference(obs)
        preds = [(v, r, p)]
        for i in range(1, act.shape[1]):
            v, r, p, h = model.recurrent_inference(h, act[:, i])
            h.register_hook(lambda grad: grad * 0.5)
            preds.append((v, r, p))
        vl, rl, pl = 0, 0, 0
        lf = lambda x, t: (-t * torch.nn.LogSoftmax(dim=1)(x)).sum(1)
        for i in range(len(preds)):
            v, r, p = preds[i]
            cv, cr, cp = (
                lf(v.squeeze(-1), tv[:, i]),
                lf(r.squeeze(-1), tr[:, i]),
                lf(p.squeeze(-1), tp[:, i]),
            )
            cv.register_hook(lambda grad: grad / gs[:, i] if i else grad)
            vl += cv
            if i:
                cr.register_hook(lambda grad: grad / gs[:, i])
                rl += cr
            pl += cp
        loss = (vl * 0.25 + rl + pl).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        pri = (
            (
                torch.abs(
                    support_to_scalar(preds[0][0], S)
                    - tv[:, 0].argmax(-1, keepdim=True)
                )
                ** 0.5
            )
            .detach()
            .cpu()
            .numpy()
        )
        print(
            step,
            loss.item(),
            vl.mean().item(),
            rl.mean().item(),
            pl.mean().item(),
            pri.mean().round(4),
        )


def world_models():
    # ctallec/world-models
    from torch.distributions.normal import Normal as N_

    def gmm_loss(batch, mus, sigmas, logpi, reduce=True):
        batch = batch.unsqueeze(-2)
        normal_dist = N_(mus, sigmas)
        g_log_probs = normal_dist.log_prob(batch)
        g_log_probs = logpi + torch.sum(g_log_probs, dim=-1)
        max_log_probs = torch.max(g_log_probs, dim=-1, keepdim=True)[0]
        g_log_probs = g_log_probs - max_log_probs
        g_probs = torch.exp(g_log_probs)
        probs = torch.sum(g_probs, dim=-1)
        log_prob = max_log_probs.squeeze() + torch.log(probs)
        if reduce:
            return -torch.mean(log_prob)
        return -log_prob

    class MDRNN(nn.Module):
        def __init__(self, latents, actions, hiddens, gaussians):
            super().__init__()
            self.latents, self.gaussians = latents, gaussians
            self.rnn = nn.LSTM(latents + actions, hiddens)
            self.gmm_linear = nn.Linear(hiddens, (2 * latents + 1) * gaussians + 2)

        def forward(self, actions, latents):
            seq_len, bs = actions.size(0), actions.size(1)
            outs, _ = self.rnn(torch.cat([actions, latents], dim=-1))
            gmm_outs = self.gmm_linear(outs)
            stride = self.gaussians * self.latents
            mus = gmm_outs[:, :, :stride].view(
                seq_len, bs, self.gaussians, self.latents
            )
            sigmas = torch.exp(
                gmm_outs[:, :, stride : 2 * stride].view(
                    seq_len, bs, self.gaussians, self.latents
                )
            )
            pi = gmm_outs[:, :, 2 * stride : 2 * stride + self.gaussians].view(
                seq_len, bs, self.gaussians
            )
            return (
                mus,
                sigmas,
                F.log_softmax(pi, dim=-1),
                gmm_outs[:, :, -2],
                gmm_outs[:, :, -1],
            )

    m = MDRNN(4, 2, 16, 3)
    opt = torch.optim.RMSprop(m.parameters(), lr=1e-3, alpha=0.9)
    sched = optim.lr_scheduler.ReduceLROnPlateau(opt, "min", factor=0.5, patience=1)
    for e in range(6):
        lat, nxt, act, rw, tm = (
            torch.randn(5, 4, 4),
            torch.randn(5, 4, 4),
            torch.randn(5, 4, 2),
            torch.randn(5, 4),
            (torch.rand(5, 4) < 0.1).float(),
        )
        mus, sg, lp, rs, ds = m(act, lat)
        gmm = gmm_loss(nxt, mus, sg, lp)
        bce = F.binary_cross_entropy_with_logits(ds, tm)
        mse = F.mse_loss(rs, rw)
        loss = (gmm + bce + mse) / 6
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step(loss)
        print(
            f"loss={loss.item():10.6f} bce={bce.item():10.6f} gmm={gmm.item():10.6f} mse={mse.item():10.6f}",
            sched.num_bad_epochs,
            opt.param_groups[0]["lr"],
        )
    # controller by evolution strategies
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    c = nn.Linear(20, 2)
    best = None
    x = torch.randn(30, 20)
    y = torch.randn(30, 2)
    th = parameters_to_vector(c.parameters()).detach()
    for g in range(4):
        pop = th + 0.1 * torch.randn(10, th.numel())
        sc = []
        for p in pop:
            vector_to_parameters(p, c.parameters())
            with torch.no_grad():
                sc.append(F.mse_loss(torch.tanh(c(x)), y).item())
        th = pop[torch.tensor(sc).argsort()[:3]].mean(0)
        print(g, min(sc))


for program in (impala_vtrace, muzero, world_models):
    torch.manual_seed(0)
    print(program.__name__)
    program()
