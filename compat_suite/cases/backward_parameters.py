"""Every parameter of torch.autograd.backward, and its errors."""

import warnings

import torch
from torch.autograd import backward
from torch.autograd.graph import GradientEdge, get_gradient_edge


def fresh():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    return a, b


def told(function, *arguments, **keywords):
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(function(*arguments, **keywords))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    for warning in caught:
        text = str(warning.message).partition(" (Triggered internally")[0]
        print(f"{warning.category.__name__}: {text}")


print("one root, several roots")
a, b = fresh()
told(backward, (a * b).sum())
print(a.grad, b.grad)
told(backward, [(a * b).sum(), (a**2).sum()])
print(a.grad, b.grad)

print("grad_tensors")
a, b = fresh()
told(backward, a * b, torch.tensor([1.0, 10.0]))
print(a.grad, b.grad)
a, b = fresh()
told(backward, (a * b, (a * 2).sum()), (torch.tensor([0.0, 1.0]), None))
print(a.grad, b.grad)
told(backward, (a * b, (a * 2).sum()), (None, None))
told(backward, (a * b,), (torch.ones(2), torch.ones(2)))
told(backward, (a * b,), (torch.ones(3),))
told(backward, a * b, 1.0)

print("retain_graph")
a, b = fresh()
y = (a * b).sum()
told(backward, y, retain_graph=True)
told(backward, y)
print(a.grad)
told(backward, y)

print("create_graph")
a, b = fresh()
y = (a**3 * b).sum()
told(backward, y, create_graph=True)
print(a.grad)
second = a.grad.sum()
a.grad = None
second.backward()
print(a.grad)

print("grad_variables")
a, b = fresh()
told(backward, a * b, grad_variables=[torch.ones(2)])
print(a.grad)
told(backward, a * b, torch.ones(2), grad_variables=torch.ones(2))

print("inputs")
a, b = fresh()
told(backward, (a * b).sum(), inputs=a)
print(a.grad, b.grad)
a, b = fresh()
told(backward, (a * b).sum(), inputs=[b])
print(a.grad, b.grad)
a, b = fresh()
c = a * b
told(backward, (c * c).sum(), inputs=(a, c))
print(a.grad, b.grad)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(c.grad)
a, b = fresh()
edge = get_gradient_edge(a)
print(type(edge).__name__, isinstance(edge, GradientEdge), edge.output_nr)
told(backward, (a * b).sum(), inputs=[edge, b])
print(a.grad, b.grad)
told(backward, (a * b).sum(), inputs=[])
told(backward, (a * b).sum(), inputs=[torch.ones(2)])

print("roots without a graph")
told(backward, torch.ones(()))
told(backward, (torch.ones(()), a.sum()))

print("the method")
a, b = fresh()
(a * b).backward(gradient=torch.ones(2), retain_graph=True, inputs=[a])
print(a.grad, b.grad)
