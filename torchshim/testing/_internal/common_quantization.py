"""`torch.testing._internal.common_quantization`: nothing is quantized here."""

from __future__ import annotations

import unittest

from torchshim._errors import unsupported
from torchshim.testing._internal._conditions import never_skipped, skip_when
from torchshim.testing._internal.common_utils import TestCase

_PLACE = "testing._internal.common_quantization"
_REASON = "there are no quantized products"
_group_quantize_tensor = unsupported(f"{_PLACE}._group_quantize_tensor", _REASON)
_group_quantize_tensor_symmetric = unsupported(
    f"{_PLACE}._group_quantize_tensor_symmetric", _REASON
)
_dynamically_quantize_per_channel = unsupported(
    f"{_PLACE}._dynamically_quantize_per_channel", _REASON
)
skipIfNoFBGEMM = skip_when(
    lambda: True, "Quantized operations require FBGEMM, which is not there"
)
skipIfNoONEDNN = skipIfNoQNNPACK = skipIfNoFBGEMM
skipIfNoDynamoSupport = never_skipped  # such tests are of programs that run eagerly


class QuantizationTestCase(TestCase):
    """Tests of quantized products, which are skipped."""

    def setUp(self) -> None:
        raise unittest.SkipTest(_REASON)


QuantizationLiteTestCase = QuantLayerTestCase = QuantizationTestCase
