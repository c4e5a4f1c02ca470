"""Transforms, constraints and the registries between them."""

# ruff: noqa: E501  (lines of cases)

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

TRANSFORMS = {
    "exp": lambda D, t: D.ExpTransform(),
    "power": lambda D, t: D.PowerTransform(t([2.0, 0.5, 3.0])),
    "sigmoid": lambda D, t: D.SigmoidTransform(),
    "softplus": lambda D, t: D.SoftplusTransform(),
    "tanh": lambda D, t: D.TanhTransform(),
    "abs": lambda D, t: D.AbsTransform(),
    "affine": lambda D, t: D.AffineTransform(t([1.0, 2.0, 3.0]), -2.0),
    "affine_event": lambda D, t: D.AffineTransform(1.0, t([2.0, -1.0, 0.5]), 1),
    "softmax": lambda D, t: D.SoftmaxTransform(),
    "stick": lambda D, t: D.StickBreakingTransform(),
    "corr": lambda D, t: D.CorrCholeskyTransform(),
    "reshape": lambda D, t: D.ReshapeTransform((3,), (1, 3)),
    "independent": lambda D, t: D.IndependentTransform(D.ExpTransform(), 1),
    "compose": lambda D, t: D.ComposeTransform(
        [D.AffineTransform(1.0, 2.0), D.ExpTransform(), D.StickBreakingTransform()]
    ),
    "identity": lambda D, t: D.identity_transform,
    "cat": lambda D, t: D.CatTransform(
        [D.ExpTransform(), D.TanhTransform()], -1, [1, 2]
    ),
    "stack": lambda D, t: D.StackTransform([D.ExpTransform()] * 2, 0),
    "cdf": lambda D, t: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)),
    "inverse": lambda D, t: D.SigmoidTransform().inv,
}


@case.over(*TRANSFORMS)
def transform(torch, name):
    D = torch.distributions
    step = TRANSFORMS[name](D, torch.tensor)
    x = torch.tensor([[0.3, 0.1, 0.2], [0.6, 0.9, 0.4]], requires_grad=True)
    y = step(x)
    seen = [str(step), step.bijective, attempt(getattr, step, "sign"), y]
    seen += [step.inv(y), attempt(step.log_abs_det_jacobian, x, y)]
    seen += [str(step.domain), str(step.codomain), attempt(getattr, step, "event_dim")]
    seen += [attempt(step.forward_shape, x.shape), attempt(step.inverse_shape, y.shape)]
    seen += [step.inv.inv is step, step == step, step != D.ExpTransform()]
    seen.append(torch.autograd.grad(y.square().sum(), x, retain_graph=True))
    cached = attempt(step.with_cache)
    if not isinstance(cached, Exception):
        image = cached(x)
        seen += [
            cached.inv(image) is x,
            cached._cache_size,
            cached.with_cache() is cached,
        ]
    return seen


@case(raises=AssertionError).lines("""
D.ExpTransform(cache_size=2)
D.ReshapeTransform((2,), (3,))
D.SoftmaxTransform().forward_shape(())
D.StickBreakingTransform().inverse_shape(())
D.CorrCholeskyTransform().forward_shape((4,))
D.CorrCholeskyTransform().inverse_shape((2, 3))
D.CatTransform([3])
D.CatTransform([D.ExpTransform()], lengths=[1, 2])
D.CatTransform([D.ExpTransform()])(torch.ones(2))
D.StackTransform([D.ExpTransform()])(torch.ones(2))
D.StackTransform([D.ExpTransform()], dim=3)(torch.ones(2))
D.IndependentTransform(D.ExpTransform(), 2)(torch.ones(2))
D.AffineTransform(1., 2.) == D.AffineTransform(1., 2.), D.ExpTransform() == D.ExpTransform()
D.PowerTransform(2.) == D.PowerTransform(2.), D.PowerTransform(2.) == D.ExpTransform()
C.independent(3, 1)
C.independent(C.real, -1)
C.independent(C.real, 2).check(torch.ones(2))
C.dependent.check(torch.ones(2))
C.dependent.event_dim
C.dependent(event_dim=1).event_dim, C.is_dependent(C.dependent), C.is_dependent(C.real)
C.simplex.check(torch.tensor([[.5, .5], [.5, .6]])), C.one_hot.check(torch.eye(2))
C.boolean.check(torch.tensor([0, 1, 2])), C.real.check(torch.tensor([1., float('nan')]))
C.integer_interval(0, 2).check(torch.tensor([0., 1.5, 3.])), C.positive_integer
C.half_open_interval(0, 1).check(torch.tensor([0., 1.])), C.less_than(2).check(torch.ones(1))
C.lower_triangular.check(torch.ones(2, 2)), C.lower_cholesky.check(torch.eye(2))
C.corr_cholesky.check(torch.eye(2)), C.corr_cholesky.check(2 * torch.eye(2))
C.square.check(torch.ones(3, 2, 2)), C.square.check(torch.ones(2, 3))
C.symmetric.check(torch.ones(2, 2)), C.positive_semidefinite.check(torch.ones(1, 1))
C.positive_definite.check(torch.stack([torch.eye(2), -torch.eye(2)]))
C.multinomial(2).check(torch.tensor([[1, 1], [2, 1]])), C.cat([C.real]), C.stack([C.real])
C.cat([C.positive, C.real], 0, [1, 2]).check(torch.tensor([-1., 2., 3.]))
C.stack([C.positive, C.real], 1).check(torch.tensor([[-1., 2.]]))
D.biject_to(C.positive), D.transform_to(C.unit_interval), D.biject_to(C.interval(1, 3))
D.biject_to(C.simplex), D.transform_to(C.simplex), D.transform_to(C.lower_cholesky)
D.biject_to(C.less_than(3.))(torch.zeros(2)), D.biject_to(C.real_vector)
D.transform_to(C.positive_definite)(torch.eye(2)), D.biject_to(C.corr_cholesky)
D.biject_to(C.cat([C.positive, C.real]))(torch.zeros(2)), D.transform_to(C.nonnegative)
D.biject_to(C.stack([C.positive, C.real]))(torch.zeros(2, 1))
D.biject_to(C.boolean)
D.biject_to.register(3)(4)
D.utils.vec_to_tril_matrix(torch.ones(3), -1), D.utils.tril_matrix_to_vec(torch.ones(2, 2), -1)
D.utils.vec_to_tril_matrix(torch.ones(2))
D.utils.tril_matrix_to_vec(torch.ones(2, 2), 2)
sorted(D.__all__)
""")
def line(torch, text):
    D = torch.distributions
    return evaluate(torch, text, D=D, C=D.constraints)
