"""Two processes that meet in a store, in several ways."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from told import leave, told

rank, folder = int(os.environ["RANK"]), sys.argv[1]
short = timedelta(milliseconds=30)
port = int(os.environ["MASTER_PORT"])
store = dist.TCPStore("127.0.0.1", port, 2, rank == 0, timedelta(seconds=60))
print(store.host, store.timeout)
store.set(f"mine{rank}", str(rank))
print(store.get(f"mine{1 - rank}"), store.add("sum", rank + 1) in (1, 2, 3))
store.add("ready", 1)
store.wait(["mine0", "mine1"])
part = dist.PrefixStore("part", store)
if rank == 0:
    part.set("a", b"\x00x")
    print(store.compare_set("free", "", "q"), store.compare_set("free", "z", "r"))
    store.append("free", "!")
    store.queue_push("queue", "1")
    store.set("done", "")
else:
    store.wait(["done"])
    print(part.get("a"), store.get("part/a"), store.get("free"), store.get("sum"))
    print(store.queue_len("queue"), store.queue_pop("queue"))
    told(store.queue_pop, "queue", False)
    print(store.check(["a"]), store.delete_key("free"), store.delete_key("free"))
    store.multi_set(["m", "n"], ["1", "2"])
    print(store.multi_get(["m", "n"]), sorted(store.list_keys())[:3])
    told(store.wait, ["done", "never"], short)
    store.set_timeout(short)
    told(part.get, "never")
    told(part.wait, ["u", "v"])
    store.set_timeout(timedelta(seconds=60))
    store.set("over", "")
store.wait(["over"])

file = dist.FileStore(f"{folder}/store", 2)
file.set(f"key{rank}", f"value{rank}")
print(file.get(f"key{1 - rank}"), file.add("both", 2) in (2, 4))
file.set(f"through{rank}", "")
file.wait(["through0", "through1"])
print(file.get("both"), file.check(["key0", "key2"]), file.num_keys(), file.path[-5:])
file.set_timeout(short)
told(file.get, "never")
told(file.wait, ["never"], short)

for url in (f"file://{folder}/meet", f"tcp://127.0.0.1:{port + 1}"):
    dist.init_process_group(
        "gloo", url, rank=rank, world_size=2, timeout=timedelta(seconds=50)
    )
    x = torch.ones(1)
    dist.all_reduce(x)
    print(x)
    dist.destroy_process_group()
dist.init_process_group(store=store, rank=rank, world_size=2)
x = torch.ones(1) * 3
dist.all_reduce(x)
print(x, dist.group.WORLD.name())
dist.barrier()
dist.destroy_process_group()
told(dist.TCPStore, "127.0.0.1", 1, 2, False, timeout=timedelta(milliseconds=100))
if rank == 0:
    told(dist.TCPStore, "127.0.0.1", 0, 2, True, timeout=timedelta(milliseconds=100))
leave()
