# compat: rtol=1e-3 atol=1e-5 seconds=19 (many steps of float32 sums in another order)
"""Proximal policy optimization on four cart poles."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical


class CartPole:
    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.astype(np.float32)

    def step(self, a):
        x, xd, th, thd = self.s
        f = 10.0 if a == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (f + 0.05 * thd**2 * s) / 1.1
        tha = (9.8 * s - c * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * c**2 / 1.1))
        xa = tmp - 0.05 * tha * c / 1.1
        self.s = np.array(
            [x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha]
        )
        self.t += 1
        done = bool(
            abs(self.s[0]) > 2.4
            or abs(self.s[2]) > 12 * 2 * math.pi / 360
            or self.t >= 200
        )
        return self.s.astype(np.float32), 1.0, done


seed = 1
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)
torch.backends.cudnn.deterministic = True


def layer_init(layer, std=2**0.5, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 32)),
            nn.Tanh(),
            layer_init(nn.Linear(32, 32)),
            nn.Tanh(),
            layer_init(nn.Linear(32, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 32)),
            nn.Tanh(),
            layer_init(nn.Linear(32, 32)),
            nn.Tanh(),
            layer_init(nn.Linear(32, 2), std=0.01),
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


num_envs, num_steps, updates, minib = 4, 32, 3, 4
batch_size = num_envs * num_steps
minibatch_size = batch_size // minib
envs = [CartPole(i) for i in range(num_envs)]
agent = Agent()
print(agent)
optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((num_steps, num_envs, 4))
actions = torch.zeros((num_steps, num_envs))
logprobs = torch.zeros((num_steps, num_envs))
rewards = torch.zeros((num_steps, num_envs))
dones = torch.zeros((num_steps, num_envs))
values = torch.zeros((num_steps, num_envs))
next_obs = torch.Tensor(np.stack([e.reset() for e in envs]))
next_done = torch.zeros(num_envs)
ep_ret, finished = np.zeros(num_envs), []
for update in range(1, updates + 1):
    frac = 1.0 - (update - 1.0) / updates
    optimizer.param_groups[0]["lr"] = frac * 2.5e-4
    for step in range(num_steps):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        rs = []
        for i, (e, a) in enumerate(zip(envs, action.cpu().numpy(), strict=True)):
            o, r, d = e.step(a)
            ep_ret[i] += r
            if d:
                finished.append(ep_ret[i])
                ep_ret[i] = 0
                o = e.reset()
            rs.append((o, r, d))
        next_o, reward, done = map(np.array, zip(*rs, strict=True))
        rewards[step] = torch.tensor(reward).view(-1)
        next_obs, next_done = torch.Tensor(next_o), torch.Tensor(done)
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards)
        lastgaelam = 0
        for t in reversed(range(num_steps)):
            if t == num_steps - 1:
                nextnonterminal = 1.0 - next_done
                nextvalues = next_value
            else:
                nextnonterminal = 1.0 - dones[t + 1]
                nextvalues = values[t + 1]
            delta = rewards[t] + 0.99 * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = (
                delta + 0.99 * 0.95 * nextnonterminal * lastgaelam
            )
        returns = advantages + values
    b_obs = obs.reshape((-1, 4))
    b_logprobs = logprobs.reshape(-1)
    b_actions = actions.reshape((-1,))
    b_advantages = advantages.reshape(-1)
    b_returns = returns.reshape(-1)
    b_values = values.reshape(-1)
    b_inds = np.arange(batch_size)
    clipfracs = []
    for _ in range(4):
        np.random.shuffle(b_inds)
        for start in range(0, batch_size, minibatch_size):
            mb_inds = b_inds[start : start + minibatch_size]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                b_obs[mb_inds], b_actions.long()[mb_inds]
            )
            logratio = newlogprob - b_logprobs[mb_inds]
            ratio = logratio.exp()
            with torch.no_grad():
                old_approx_kl = (-logratio).mean()
                approx_kl = ((ratio - 1) - logratio).mean()
                clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
            mb_advantages = b_advantages[mb_inds]
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (
                mb_advantages.std() + 1e-8
            )
            pg_loss = torch.max(
                -mb_advantages * ratio, -mb_advantages * torch.clamp(ratio, 0.8, 1.2)
            ).mean()
            newvalue = newvalue.view(-1)
            v_loss_unclipped = (newvalue - b_returns[mb_inds]) ** 2
            v_clipped = b_values[mb_inds] + torch.clamp(
                newvalue - b_values[mb_inds], -0.2, 0.2
            )
            v_loss = (
                0.5
                * torch.max(
                    v_loss_unclipped, (v_clipped - b_returns[mb_inds]) ** 2
                ).mean()
            )
            entropy_loss = entropy.mean()
            loss = pg_loss - 0.01 * entropy_loss + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    y_pred, y_true = b_values.cpu().numpy(), b_returns.cpu().numpy()
    var_y = np.var(y_true)
    explained_var = np.nan if var_y == 0 else 1 - np.var(y_true - y_pred) / var_y
    print(
        f"update {update}: v {v_loss.item():.3f} pg {pg_loss.item():.4f} "
        f"ent {entropy_loss.item():.4f} kl {approx_kl.item():.5f} "
        f"clip {np.mean(clipfracs):.3f} ev {explained_var:.3f} "
        f"episodes {len(finished)} mean {np.mean(finished):.1f}"
    )
