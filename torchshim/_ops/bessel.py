"""Bessel's functions and Airy's, by the rational approximations of the Cephes library.

Of orders 0 and 1; PyTorch has no derivatives of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, op
from torchshim._core.promotion import INT_TO_FLOAT
from torchshim._ops._common import no_half_result, real_only

Table = Sequence[float]


def _bessel(fn: Any) -> Any:
    """Declares an operator of one real operand without a derivative."""
    kernel = f"{fn.__name__}_cpu"
    checked = real_only(fn, kernel)
    # PyTorch names the operand `input` or `x`.
    checked.__signature__ = inspect.signature(fn)
    op(
        promote=INT_TO_FLOAT,
        namespaces=("special",),
        method=False,
        differentiable=False,
        typecheck=no_half_result(kernel),
    )(checked)
    return fn


def _polynomial(x: Array, table: Table) -> Array:
    """A polynomial's value; the highest coefficient comes first."""
    value = jnp.zeros_like(x)
    for coefficient in table:
        value = value * x + coefficient
    return value


def _ratio(x: Array, above: Table, below: Table) -> Array:
    return _polynomial(x, above) / _polynomial(x, below)


def _chebyshev(x: Array, table: Table) -> Array:
    """A series of Chebyshev polynomials of x / 2; the highest comes first."""
    value = before = last = jnp.zeros_like(x)
    for coefficient in table:
        value, before, last = x * value - before + coefficient, value, before
    return (value - last) / 2


# Bessel functions ---------------------------------------------------------------------

_J0_PP = (
    0.0007969367292973471,
    0.08283523921074408,
    1.239533716464143,
    5.447250030587687,
    8.74716500199817,
    5.303240382353949,
    1.0,
)
_J0_PQ = (
    0.0009244088105588637,
    0.08562884743544745,
    1.2535274390105895,
    5.470977403304171,
    8.761908832370695,
    5.306052882353947,
    1.0,
)
_J0_QP = (
    -0.011366383889846916,
    -1.2825271867050931,
    -19.553954425773597,
    -93.20601521237683,
    -177.68116798048806,
    -147.07750515495118,
    -51.41053267665993,
    -6.050143506007285,
)
_J0_QQ = (
    64.3178256118178,
    856.4300259769806,
    3882.4018360540163,
    7240.467741956525,
    5930.727011873169,
    2062.0933166032783,
    242.0057402402914,
)
_J0_RP = (
    -4794432209.782018,
    1956174919465.5657,
    -249248344360967.72,
    9708622510473064.0,
)
_J0_RQ = (
    499.563147152651,
    173785.4016763747,
    48440965.83399621,
    11185553704.535683,
    2112775201154.892,
    310518229857422.56,
    3.1812195594320496e16,
    1.7108629408104315e18,
)
_Y0_YP = (
    15592.436785523574,
    -14663929.59039716,
    5435264770.518765,
    -982136065717.9115,
    87590639439536.7,
    -3466283033847297.0,
    4.4273326857256984e16,
    -1.8495080043698668e16,
)
_Y0_YQ = (
    1041.2835366425984,
    626107.330137135,
    268919633.39381415,
    86400248710.3935,
    20297961275010.555,
    3171577528429750.5,
    2.5059625617265306e17,
)
_J1_PP = (
    0.0007621256162081731,
    0.07313970569409176,
    1.1271960812968493,
    5.112079511468076,
    8.424045901417724,
    5.214515986823615,
    1.0,
)
_J1_PQ = (
    0.0005713231280725487,
    0.06884559087544954,
    1.105142326340617,
    5.073863861286015,
    8.399855543276042,
    5.209828486823619,
    1.0,
)
_J1_QP = (
    0.05108625947501766,
    4.982138729512334,
    75.82382841325453,
    366.7796093601508,
    710.8563049989261,
    597.4896124006136,
    211.68875710057213,
    25.207020585802372,
)
_J1_QQ = (
    74.23732770356752,
    1056.4488603826283,
    4986.410583376536,
    9562.318924047562,
    7997.041604473507,
    2826.1927851763908,
    336.0936078106983,
)
_J1_RP = (
    -899971225.7055594,
    452228297998.19403,
    -72749424522181.83,
    3682957328638529.0,
)
_J1_RQ = (
    620.8364781180543,
    256987.25675774884,
    83514679.14319493,
    22151159547.97925,
    4749141220799.914,
    784369607876235.9,
    8.952223361846274e16,
    5.322786203326801e18,
)
_Y1_YP = (
    1263204747.9017804,
    -647355876379.1603,
    114509511541823.73,
    -8127702555013251.0,
    2.024394757135949e17,
    -7.788771962659501e17,
)
_Y1_YQ = (
    594.3015923461282,
    235564.09294306856,
    73481194.44597217,
    18760131610.870617,
    3882312774962.3857,
    620557727146953.8,
    6.871410873553005e16,
    3.9727060811656064e18,
)
# The squares of the first two zeros.
_J0_ZEROS = (5.78318596294678452118, 30.4712623436620863991)
_J1_ZEROS = (14.6819706421238932572, 49.2184563216946036703)
_ROOT = float(np.sqrt(2 / np.pi))


def _waves(x: Array, order: int) -> tuple[Array, Array]:
    """The slowly changing factors of cosine and sine for large x."""
    tables = (_J0_PP, _J0_PQ, _J0_QP, _J0_QQ), (_J1_PP, _J1_PQ, _J1_QP, _J1_QQ)
    pp, pq, qp, qq = tables[order]
    z = (5 / x) * (5 / x)
    return _ratio(z, pp, pq), 5 / x * _ratio(z, qp, qq)


@_bessel
def bessel_j0(input: Array) -> Array:
    """The Bessel function of the first kind, of order 0."""
    x = jnp.abs(input)
    z = x * x
    small = (z - _J0_ZEROS[0]) * (z - _J0_ZEROS[1]) * _ratio(z, _J0_RP, _J0_RQ)
    small = jnp.where(x < 1e-5, 1 - z / 4, small)
    large = jnp.where(x > 5, x, 6)
    p, q = _waves(large, 0)
    phase = large - np.pi / 4
    wave = (p * jnp.cos(phase) - q * jnp.sin(phase)) * _ROOT / jnp.sqrt(large)
    wave = jnp.where(jnp.isinf(x), jnp.nan, wave)
    return jnp.where(x > 5, wave, small)


@_bessel
def bessel_j1(input: Array) -> Array:
    """The Bessel function of the first kind, of order 1."""
    x = jnp.abs(input)
    z = x * x
    small = _ratio(z, _J1_RP, _J1_RQ) * x * (z - _J1_ZEROS[0]) * (z - _J1_ZEROS[1])
    large = jnp.where(x > 5, x, 6)
    p, q = _waves(large, 1)
    phase = large - 3 * np.pi / 4
    wave = (p * jnp.cos(phase) - q * jnp.sin(phase)) * _ROOT / jnp.sqrt(large)
    wave = jnp.where(jnp.isinf(x), jnp.nan, wave)
    value = jnp.where(x > 5, wave, small)
    return jnp.where(input < 0, -value, value)


def _second_kind(x: Array, small: Array, order: int) -> Array:
    large = jnp.where(x > 5, x, 6)
    p, q = _waves(large, order)
    phase = large - (2 * order + 1) * np.pi / 4
    wave = (p * jnp.sin(phase) + q * jnp.cos(phase)) * _ROOT / jnp.sqrt(large)
    wave = jnp.where(jnp.isinf(x), jnp.nan, wave)
    value = jnp.where(x > 5, wave, small)
    return jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, value))


@_bessel
def bessel_y0(input: Array) -> Array:
    """The Bessel function of the second kind, of order 0; NaN below 0."""
    x = input
    near = _ratio(x * x, _Y0_YP, _Y0_YQ)
    small = near + 2 / np.pi * jnp.log(x) * bessel_j0(x)
    return _second_kind(x, small, 0)


@_bessel
def bessel_y1(input: Array) -> Array:
    """The Bessel function of the second kind, of order 1; NaN below 0."""
    x = input
    near = x * _ratio(x * x, _Y1_YP, _Y1_YQ)
    small = near + 2 / np.pi * (bessel_j1(x) * jnp.log(x) - 1 / x)
    return _second_kind(x, small, 1)


@_bessel
def spherical_bessel_j0(x: Array) -> Array:
    """`sin(x) / x`."""
    z = x * x
    terms = [(-1) ** k / float(np.prod(np.arange(1.0, 2 * k + 2))) for k in range(7)]
    small = _polynomial(z, terms[::-1])
    near = jnp.abs(x) < 0.5
    value = jnp.where(near, small, jnp.sin(x) / jnp.where(near, 1, x))
    return jnp.where(jnp.isinf(x), 0, value)


# Modified Bessel functions ------------------------------------------------------------

_K0_A = (
    1.374465435613523e-16,
    4.25981614279661e-14,
    1.0349695257633842e-11,
    1.904516377220209e-09,
    2.5347910790261494e-07,
    2.286212103119452e-05,
    0.001264615411446926,
    0.0359799365153615,
    0.3442898999246285,
    -0.5353273932339028,
)
_K0_B = (
    5.300433772686263e-18,
    -1.6475804301524212e-17,
    5.2103915050390274e-17,
    -1.678231096805412e-16,
    5.512055978524319e-16,
    -1.848593377343779e-15,
    6.3400764774050706e-15,
    -2.2275133269916698e-14,
    8.032890775363575e-14,
    -2.9800969231727303e-13,
    1.140340588208475e-12,
    -4.514597883373944e-12,
    1.8559491149547177e-11,
    -7.957489244477107e-11,
    3.577397281400301e-10,
    -1.69753450938906e-09,
    8.574034017414225e-09,
    -4.660489897687948e-08,
    2.766813639445015e-07,
    -1.8317555227191195e-06,
    1.39498137188765e-05,
    -0.00012849549581627802,
    0.0015698838857300533,
    -0.0314481013119645,
    2.4403030820659555,
)
_K1_A = (
    -7.023863479386288e-18,
    -2.427449850519366e-15,
    -6.666901694199329e-13,
    -1.4114883926335278e-10,
    -2.213387630734726e-08,
    -2.4334061415659684e-06,
    -0.0001730288957513052,
    -0.006975723859639864,
    -0.12261118082265715,
    -0.3531559607765449,
    1.5253002273389478,
)
_K1_B = (
    -5.756744483665017e-18,
    1.7940508731475592e-17,
    -5.689462558442859e-17,
    1.838093544366639e-16,
    -6.057047248373319e-16,
    2.038703165624334e-15,
    -7.019837090418314e-15,
    2.4771544244813043e-14,
    -8.976705182324994e-14,
    3.3484196660784293e-13,
    -1.2891739609510289e-12,
    5.13963967348173e-12,
    -2.1299678384275683e-11,
    9.218315187605006e-11,
    -4.1903547593418965e-10,
    2.015049755197033e-09,
    -1.0345762465678097e-08,
    5.7410841254500495e-08,
    -3.5019606030878126e-07,
    2.406484947837217e-06,
    -1.936197974166083e-05,
    0.00019521551847135162,
    -0.002857816859622779,
    0.10392373657681724,
    2.7206261904844427,
)


@_bessel
def modified_bessel_i0(input: Array) -> Array:
    """The modified Bessel function of the first kind, of order 0."""
    return _finite(input, jnp.exp(jnp.abs(input)) * lax.bessel_i0e(input))


@_bessel
def modified_bessel_i1(input: Array) -> Array:
    """The modified Bessel function of the first kind, of order 1."""
    return _finite(input, jnp.exp(jnp.abs(input)) * lax.bessel_i1e(input))


def _finite(x: Array, value: Array) -> Array:
    # As PyTorch has it: infinity times zero.
    return jnp.where(jnp.isinf(x), jnp.nan, value)


def _third_kind(x: Array, small: Array, large: Array) -> Array:
    value = jnp.where(x <= 2, small, large)
    return jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, value))


def _k0(x: Array) -> tuple[Array, Array]:
    """The value for small x, and for large x its product with exp(x)."""
    small = _chebyshev(x * x - 2, _K0_A)
    small = small - jnp.log(0.5 * x) * jnp.exp(x) * lax.bessel_i0e(x)
    return small, _chebyshev(8 / x - 2, _K0_B) / jnp.sqrt(x)


def _k1(x: Array) -> tuple[Array, Array]:
    small = _chebyshev(x * x - 2, _K1_A) / x
    small = small + jnp.log(0.5 * x) * jnp.exp(x) * lax.bessel_i1e(x)
    return small, _chebyshev(8 / x - 2, _K1_B) / jnp.sqrt(x)


@_bessel
def modified_bessel_k0(input: Array) -> Array:
    """The modified Bessel function of the second kind, of order 0; NaN below 0."""
    small, large = _k0(input)
    return _third_kind(input, small, jnp.exp(-input) * large)


@_bessel
def modified_bessel_k1(input: Array) -> Array:
    """The modified Bessel function of the second kind, of order 1; NaN below 0."""
    small, large = _k1(input)
    return _third_kind(input, small, jnp.exp(-input) * large)


@_bessel
def scaled_modified_bessel_k0(x: Array) -> Array:
    """`modified_bessel_k0` times exp(x)."""
    small, large = _k0(x)
    return _third_kind(x, small * jnp.exp(x), large)


@_bessel
def scaled_modified_bessel_k1(x: Array) -> Array:
    """`modified_bessel_k1` times exp(x)."""
    small, large = _k1(x)
    return _third_kind(x, small * jnp.exp(x), large)


# Airy's function ----------------------------------------------------------------------

_AIRY_AN = (
    0.346538101525629,
    12.007595273964581,
    76.27960536152345,
    168.08922493463058,
    159.75639135016442,
    70.53609068404442,
    14.026469116338967,
    1.0,
)
_AIRY_AD = (
    0.5675945326387702,
    14.75625625848472,
    84.51389701414746,
    177.31808814540045,
    164.2346928715297,
    71.47784008255756,
    14.095913560783403,
    1.0,
)
_AIRY_AFN = (
    -0.1316963234183318,
    -0.6264565444319123,
    -0.6931580360369335,
    -0.2797799815451191,
    -0.04919001326095003,
    -0.004062659235948854,
    -0.0001592764962392621,
    -2.776491081552329e-06,
    -1.6778769848911465e-08,
)
_AIRY_AFD = (
    13.356042070655324,
    32.682503279522464,
    26.736704094149957,
    9.187074029072596,
    1.4752914677166642,
    0.11568717379518804,
    0.004402916416152112,
    7.547203482874142e-05,
    4.5185009297058035e-07,
)
_AIRY_AGN = (
    0.01973399320916857,
    0.39110302961568827,
    1.0657989759959559,
    0.9391692298166502,
    0.35146565610554764,
    0.06338889196289255,
    0.005858041130483885,
    0.000282851600836737,
    6.98793669997261e-06,
    8.117892395543892e-08,
    3.415517847659236e-10,
)
_AIRY_AGD = (
    9.30892908077442,
    19.835292871831214,
    15.564662893286462,
    5.476860694229755,
    0.9542936116189619,
    0.08645808263523921,
    0.004126565238242226,
    0.00010125908511650914,
    1.1716673321441352e-06,
    4.9183457006293e-09,
)
_AI_0, _AI_SLOPE = 0.355028053887817239260, 0.258819403792806798405
# Where the series gives way to the asymptotic expansions, and its terms until then.
_AIRY_EDGE, _AIRY_TERMS = 2.09, 16


@_bessel
def airy_ai(x: Array) -> Array:
    """Airy's function Ai."""
    # The phase grows: rounded to float32 it would lose the digits that waves show.
    left = jnp.where(x < -_AIRY_EDGE, x, -3).astype(jnp.float64)
    root = jnp.sqrt(-left)
    zeta = -2 * left * root / 3
    z = 1 / zeta
    phase = zeta + np.pi / 4
    even = 1 + z * z * _ratio(z * z, _AIRY_AFN, _AIRY_AFD)
    odd = z * _ratio(z * z, _AIRY_AGN, _AIRY_AGD)
    scale = float(1 / np.sqrt(np.pi))
    waves = scale / jnp.sqrt(root) * (jnp.sin(phase) * even - jnp.cos(phase) * odd)
    waves = waves.astype(x.dtype)

    right = jnp.where(x >= _AIRY_EDGE, jnp.minimum(x, 104), 3)
    root = jnp.sqrt(right)
    zeta = 2 * right * root / 3
    falling = scale * _ratio(1 / zeta, _AIRY_AN, _AIRY_AD)
    falling = falling / (2 * jnp.sqrt(root) * jnp.exp(zeta))
    falling = jnp.where(x > 103.892, 0, falling)

    near = jnp.where(jnp.abs(x) <= _AIRY_EDGE, x, 0)
    cube = near**3
    f, g = m, n = jnp.ones_like(near), near
    for k in range(_AIRY_TERMS):
        m = m * cube / ((3 * k + 2) * (3 * k + 3))
        n = n * cube / ((3 * k + 3) * (3 * k + 4))
        f, g = f + m, g + n
    value = _AI_0 * f - _AI_SLOPE * g
    value = jnp.where(x < -_AIRY_EDGE, waves, value)
    value = jnp.where(x >= _AIRY_EDGE, falling, value)
    return jnp.where(jnp.isfinite(x), value, jnp.nan)
