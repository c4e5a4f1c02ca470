# compat: rtol=1e-3 atol=1e-5 seconds=11 (many steps of float32 sums in another order)
"""REINFORCE and advantage actor-critic on a corridor, actions sampled by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(543)


class Corridor:
    """Walk right to the goal; each step costs a little."""

    def __init__(self, length=5, limit=10):
        self.length, self.limit = length, limit

    def reset(self):
        self.position, self.steps = 0, 0
        return self.observe()

    def observe(self):
        state = [0.0] * self.length
        state[self.position] = 1.0
        return state

    def step(self, action):
        self.steps += 1
        self.position = max(0, self.position + (1 if action == 1 else -1))
        done = self.position == self.length - 1
        reward = 1.0 if done else -0.05
        return self.observe(), reward, done or self.steps >= self.limit


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(5, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def select_action(model, state):
    state = torch.tensor(state)
    probs, value = model(state)
    action = torch.multinomial(probs.detach(), 1)
    model.saved_actions.append((torch.log(probs.gather(-1, action)), value))
    return action.item()


def finish_episode(model, optimizer, gamma=0.99):
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-7)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=True):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R.view(1)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


env, model = Corridor(), Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)
running_reward = 0.0
for episode in range(1, 9):
    state, total = env.reset(), 0.0
    for _t in range(20):
        action = select_action(model, state)
        state, reward, done = env.step(action)
        model.rewards.append(reward)
        total += reward
        if done:
            break
    running_reward = 0.1 * total + 0.9 * running_reward
    loss = finish_episode(model, optimizer)
    print(f"Episode {episode} reward {total:.2f} loss {loss:.4f} {running_reward:.3f}")

# A batch of environments at once: everything stays in tensors.
torch.manual_seed(1)
policy = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = optim.Adam(policy.parameters(), lr=5e-2)
for update in range(12):
    position = torch.zeros(16, dtype=torch.long)
    alive = torch.ones(16)
    log_probs, rewards = [], []
    for _t in range(8):
        logits = policy(F.one_hot(position, 5).float())
        log_p = F.log_softmax(logits, dim=-1)
        action = torch.multinomial(log_p.detach().exp(), 1).squeeze(-1)
        log_probs.append(log_p[torch.arange(16), action] * alive)
        position = (position + 2 * action - 1).clamp(0, 4)
        reached = (position == 4).float() * alive
        rewards.append(reached - 0.05 * alive)
        alive = alive - reached
    reward = torch.stack(rewards)
    to_go = reward.flip(0).cumsum(0).flip(0)
    baseline = to_go.mean(dim=1, keepdim=True)
    loss = -(torch.stack(log_probs) * (to_go - baseline)).sum(0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 3 == 2:
        print(f"update {update}: return {reward.sum(0).mean():.4f} loss {loss:.4f}")
