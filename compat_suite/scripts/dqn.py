# compat: rtol=1e-3 atol=1e-5 seconds=41 (many steps of float32 sums in another order)
"""Deep Q-learning on a grid: replay memory, target network, soft updates."""

import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.optim as optim

random.seed(0)
torch.manual_seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
SIZE, BATCH_SIZE, GAMMA, TAU = 3, 16, 0.9, 0.1


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 24)
        self.layer2 = nn.Linear(24, n_actions)

    def forward(self, x):
        return self.layer2(torch.relu(self.layer1(x)))


def move(place, action):
    row, column = place
    dr, dc = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
    row, column = row + dr, column + dc
    if not (0 <= row < SIZE and 0 <= column < SIZE):
        return place, -0.3, False
    done = (row, column) == (SIZE - 1, SIZE - 1)
    return (row, column), 1.0 if done else -0.05, done


def observe(place):
    return torch.tensor([place[0] / SIZE, place[1] / SIZE, 1.0]).unsqueeze(0)


policy_net, target_net = DQN(3, 4), DQN(3, 4)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
memory = ReplayMemory(100)
steps_done = 0


def select_action(state):
    global steps_done
    epsilon = max(0.1, 0.9 - steps_done * 0.01)
    steps_done += 1
    if random.random() > epsilon:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(4)]], dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE), strict=True))
    mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    next_states = torch.cat(
        [s if s is not None else torch.zeros(1, 3) for s in batch.next_state]
    )
    state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    values = policy_net(state_batch).gather(1, action_batch)
    with torch.no_grad():
        next_values = torch.where(mask, target_net(next_states).max(1).values, 0.0)
    expected = next_values * GAMMA + reward_batch
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss


for episode in range(6):
    place, loss = (0, 0), None
    state = observe(place)
    for t in count():
        action = select_action(state)
        place, reward, terminated = move(place, action.item())
        next_state = None if terminated else observe(place)
        memory.push(state, action, next_state, torch.tensor([reward]))
        state = next_state
        result = optimize_model()
        loss = loss if result is None else result
        target_state = target_net.state_dict()
        policy_state = policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        target_net.load_state_dict(target_state)
        if terminated or t >= 14:
            break
    print(f"episode {episode}: {t + 1} steps, loss", loss and f"{loss.item():.5f}")

with torch.no_grad():
    grid = torch.cat([observe((r, c)) for r in range(SIZE) for c in range(SIZE)])
    print(policy_net(grid).max(1).values.view(SIZE, SIZE))
