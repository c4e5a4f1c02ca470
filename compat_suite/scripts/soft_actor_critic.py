# compat: rtol=1e-3 atol=2e-3 seconds=4 (120 steps of training)
"""Soft actor-critic on a pendulum, with a replay buffer of NumPy arrays."""

import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Pendulum:
    class Box:
        def __init__(self, low, high):
            self.low, self.high, self.shape = (
                np.asarray(low, np.float32),
                np.asarray(high, np.float32),
                np.shape(low),
            )
            self._rng = np.random.default_rng(1)

        def sample(self):
            return self._rng.uniform(self.low, self.high).astype(np.float32)

    def __init__(self):
        self.observation_space = self.Box([-1, -1, -8], [1, 1, 8])
        self.action_space = self.Box([-2], [2])
        self.rng = np.random.default_rng(0)

    def reset(self):
        self.th, self.thdot = self.rng.uniform([-np.pi, -1], [np.pi, 1])
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        return np.array(
            [np.cos(self.th), np.sin(self.th), self.thdot], dtype=np.float32
        )

    def step(self, u):
        u = np.clip(u, -2, 2)[0]
        costs = (
            ((self.th + np.pi) % (2 * np.pi) - np.pi) ** 2
            + 0.1 * self.thdot**2
            + 0.001 * u**2
        )
        self.thdot = np.clip(self.thdot + (15 * np.sin(self.th) + 3 * u) * 0.05, -8, 8)
        self.th += self.thdot * 0.05
        self.t += 1
        return self._obs(), -costs, False, self.t >= 40, {}


class ReplayBufferSamples(NamedTuple):
    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor


class ReplayBuffer:
    def __init__(
        self,
        buffer_size,
        obs_shape,
        action_dim,
        device: torch.device | str = "auto",
        n_envs=1,
    ):
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.device = torch.device("cpu") if device == "auto" else device
        self.pos, self.full, self.n_envs = 0, False, n_envs
        self.observations = np.zeros(
            (self.buffer_size, n_envs, *obs_shape), dtype=np.float32
        )
        self.next_observations = np.zeros(
            (self.buffer_size, n_envs, *obs_shape), dtype=np.float32
        )
        self.actions = np.zeros(
            (self.buffer_size, n_envs, action_dim), dtype=np.float32
        )
        self.rewards = np.zeros((self.buffer_size, n_envs), dtype=np.float32)
        self.dones = np.zeros((self.buffer_size, n_envs), dtype=np.float32)

    def add(self, obs, next_obs, action, reward, done):
        self.observations[self.pos] = np.array(obs).copy()
        self.next_observations[self.pos] = np.array(next_obs).copy()
        self.actions[self.pos] = np.array(action).copy()
        self.rewards[self.pos] = np.array(reward).copy()
        self.dones[self.pos] = np.array(done).copy()
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    def to_torch(self, array: np.ndarray, copy: bool = True) -> torch.Tensor:
        if copy:
            return torch.tensor(array, device=self.device)
        return torch.as_tensor(array, device=self.device)

    def sample(self, batch_size):
        upper_bound = self.buffer_size if self.full else self.pos
        batch_inds = np.random.randint(0, upper_bound, size=batch_size)
        env_indices = np.random.randint(0, high=self.n_envs, size=(len(batch_inds),))
        data = (
            self.observations[batch_inds, env_indices, :],
            self.actions[batch_inds, env_indices, :],
            self.next_observations[batch_inds, env_indices, :],
            self.dones[batch_inds, env_indices].reshape(-1, 1),
            self.rewards[batch_inds, env_indices].reshape(-1, 1),
        )
        return ReplayBufferSamples(*tuple(map(self.to_torch, data)))


@dataclass
class Args:
    exp_name: str = "sac_continuous_action"
    seed: int = 1
    torch_deterministic: bool = True
    total_timesteps: int = 160
    buffer_size: int = int(1e4)
    gamma: float = 0.99
    tau: float = 0.005
    batch_size: int = 32
    learning_starts: int = 40
    policy_lr: float = 3e-4
    q_lr: float = 1e-3
    policy_frequency: int = 2
    target_network_frequency: int = 1
    alpha: float = 0.2
    autotune: bool = True


class SoftQNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.fc1 = nn.Linear(
            np.array(env.observation_space.shape).prod()
            + np.prod(env.action_space.shape),
            32,
        )
        self.fc2 = nn.Linear(32, 32)
        self.fc3 = nn.Linear(32, 1)

    def forward(self, x, a):
        x = torch.cat([x, a], 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x


LOG_STD_MAX = 2
LOG_STD_MIN = -5


class Actor(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.fc1 = nn.Linear(np.array(env.observation_space.shape).prod(), 32)
        self.fc2 = nn.Linear(32, 32)
        self.fc_mean = nn.Linear(32, np.prod(env.action_space.shape))
        self.fc_logstd = nn.Linear(32, np.prod(env.action_space.shape))
        self.register_buffer(
            "action_scale",
            torch.tensor(
                (env.action_space.high - env.action_space.low) / 2.0,
                dtype=torch.float32,
            ),
        )
        self.register_buffer(
            "action_bias",
            torch.tensor(
                (env.action_space.high + env.action_space.low) / 2.0,
                dtype=torch.float32,
            ),
        )

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        mean = self.fc_mean(x)
        log_std = self.fc_logstd(x)
        log_std = torch.tanh(log_std)
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
        return mean, log_std

    def get_action(self, x):
        mean, log_std = self(x)
        std = log_std.exp()
        normal = torch.distributions.Normal(mean, std)
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias
        log_prob = normal.log_prob(x_t)
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + 1e-6)
        log_prob = log_prob.sum(1, keepdim=True)
        mean = torch.tanh(mean) * self.action_scale + self.action_bias
        return action, log_prob, mean


if __name__ == "__main__":
    args = Args()
    print(
        "|param|value|\n|-|-|\n{}".format(
            "\n".join([f"|{key}|{value}|" for key, value in vars(args).items()])
        )
    )
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env = Pendulum()
    actor = Actor(env).to(device)
    qf1, qf2 = SoftQNetwork(env).to(device), SoftQNetwork(env).to(device)
    qf1_target, qf2_target = SoftQNetwork(env).to(device), SoftQNetwork(env).to(device)
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = optim.Adam(
        list(qf1.parameters()) + list(qf2.parameters()), lr=args.q_lr
    )
    actor_optimizer = optim.Adam(list(actor.parameters()), lr=args.policy_lr)
    target_entropy = -torch.prod(torch.Tensor(env.action_space.shape).to(device)).item()
    log_alpha = torch.zeros(1, requires_grad=True, device=device)
    alpha = log_alpha.exp().item()
    a_optimizer = optim.Adam([log_alpha], lr=args.q_lr)
    rb = ReplayBuffer(args.buffer_size, env.observation_space.shape, 1, device)
    obs, _ = env.reset()
    ep_ret = 0
    for global_step in range(args.total_timesteps):
        if global_step < args.learning_starts:
            actions = env.action_space.sample()
        else:
            actions, _, _ = actor.get_action(torch.Tensor(obs[None]).to(device))
            actions = actions.detach().cpu().numpy()[0]
        next_obs, rewards, terminations, truncations, infos = env.step(actions)
        ep_ret += rewards
        rb.add(obs, next_obs, actions, rewards, terminations)
        obs = next_obs
        if truncations:
            print(f"global_step={global_step}, episodic_return={ep_ret:.1f}")
            obs, _ = env.reset()
            ep_ret = 0
        if global_step > args.learning_starts:
            data = rb.sample(args.batch_size)
            with torch.no_grad():
                next_state_actions, next_state_log_pi, _ = actor.get_action(
                    data.next_observations
                )
                qf1_next_target = qf1_target(data.next_observations, next_state_actions)
                qf2_next_target = qf2_target(data.next_observations, next_state_actions)
                min_qf_next_target = (
                    torch.min(qf1_next_target, qf2_next_target)
                    - alpha * next_state_log_pi
                )
                next_q_value = data.rewards.flatten() + (
                    1 - data.dones.flatten()
                ) * args.gamma * (min_qf_next_target).view(-1)
            qf1_a_values = qf1(data.observations, data.actions).view(-1)
            qf2_a_values = qf2(data.observations, data.actions).view(-1)
            qf1_loss = F.mse_loss(qf1_a_values, next_q_value)
            qf2_loss = F.mse_loss(qf2_a_values, next_q_value)
            qf_loss = qf1_loss + qf2_loss
            q_optimizer.zero_grad()
            qf_loss.backward()
            q_optimizer.step()
            if global_step % args.policy_frequency == 0:
                for _ in range(args.policy_frequency):
                    pi, log_pi, _ = actor.get_action(data.observations)
                    qf1_pi = qf1(data.observations, pi)
                    qf2_pi = qf2(data.observations, pi)
                    min_qf_pi = torch.min(qf1_pi, qf2_pi)
                    actor_loss = ((alpha * log_pi) - min_qf_pi).mean()
                    actor_optimizer.zero_grad()
                    actor_loss.backward()
                    actor_optimizer.step()
                    if args.autotune:
                        with torch.no_grad():
                            _, log_pi, _ = actor.get_action(data.observations)
                        alpha_loss = (
                            -log_alpha.exp() * (log_pi + target_entropy)
                        ).mean()
                        a_optimizer.zero_grad()
                        alpha_loss.backward()
                        a_optimizer.step()
                        alpha = log_alpha.exp().item()
            if global_step % args.target_network_frequency == 0:
                for param, target_param in zip(
                    qf1.parameters(), qf1_target.parameters(), strict=False
                ):
                    target_param.data.copy_(
                        args.tau * param.data + (1 - args.tau) * target_param.data
                    )
                for param, target_param in zip(
                    qf2.parameters(), qf2_target.parameters(), strict=False
                ):
                    target_param.data.copy_(
                        args.tau * param.data + (1 - args.tau) * target_param.data
                    )
            if global_step % 20 == 0:
                print(
                    "losses/qf1_values",
                    round(qf1_a_values.mean().item(), 3),
                    "losses/qf_loss",
                    round(qf_loss.item() / 2.0, 3),
                    "actor",
                    round(actor_loss.item(), 3),
                    "alpha",
                    round(alpha, 4),
                )
