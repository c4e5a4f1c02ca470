"""`torchshim.graph`: pictures of the autograd graph."""

import xml.etree.ElementTree as ElementTree

import pytest

import torchshim as torch


def network():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    x = torch.ones(2, 3)
    return net, net(x).sum()


def test_names_shapes_and_colours():
    net, loss = network()
    picture = torch.graph(loss, names=net.named_parameters())
    dot = picture.dot()
    assert '[label="SumBackward0\\n()" fillcolor="#d6f5d6"]' in dot
    assert '[label="TanhBackward0\\n(2, 4)" fillcolor="#f2f2f2"]' in dot
    assert '[label="0.weight\\n(4, 3)" fillcolor="#cfe8ff"]' in dot
    assert '[label="0.bias\\n(4,)" fillcolor="#cfe8ff"]' in dot
    assert dot.startswith("digraph {") and dot.endswith("}\n")
    assert repr(picture) == f"<graph of {dot.count('label=')} nodes and 4 edges>"


def test_svg_shows_every_box_once_and_without_overlap():
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    c, d = (a * 2).exp(), (b * 3).sin()
    picture = torch.graph((c.sum() + d.sum() + c[0]), d, names={"a<": a, "b": b})
    root = ElementTree.fromstring(picture._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    rects = [
        [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for r in root.iter(f"{space}rect")
    ]
    assert len(rects) == len(picture.boxes)
    for i, (x, y, w, h) in enumerate(rects):
        assert x >= 0 and y >= 0
        assert x + w <= float(root.get("width")) + 1
        assert y + h <= float(root.get("height")) + 1
        for x2, y2, w2, h2 in rects[:i]:
            apart = x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
            assert apart
    texts = [t.text for t in root.iter(f"{space}text")]
    assert texts.count("a<") == 1 and texts.count("b") == 1
    assert texts.count("ExpBackward0") == 1


def test_outputs_of_a_node_are_numbered():
    a = torch.ones(4, requires_grad=True)
    first, second = a.split(2)
    assert '[label="1"]' in torch.graph(first * second).dot()


def test_files(tmp_path):
    _, loss = network()
    picture = torch.graph(loss)
    picture.save(tmp_path / "a.svg")
    picture.save(str(tmp_path / "a.dot"))
    assert (tmp_path / "a.svg").read_text() == picture.svg()
    assert (tmp_path / "a.dot").read_text() == picture.dot()
    with pytest.raises(ValueError, match="expected a name"):
        picture.save(tmp_path / "a.png")


def test_deep_graphs_and_refusals():
    y = x = torch.ones((), requires_grad=True)
    for _ in range(1500):
        y = y * 1.0
    assert len(torch.graph(y).boxes) == 1501
    assert torch.graph(y).svg().count("<rect") == 1501
    assert len(torch.graph(x).boxes) == 1
    with pytest.raises(RuntimeError, match="does not require"):
        torch.graph(x.detach())
