"""`torch.testing._internal.common_quantization`: models and checks of quantization."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

import torchshim as torch
from torchshim import nn
from torchshim._errors import unsupported
from torchshim.ao import quantization as ao
from torchshim.ao.nn import quantized as nnq
from torchshim.ao.nn.intrinsic import _FusedModule
from torchshim.ao.nn.intrinsic.quantized import dynamic as nniqd
from torchshim.ao.nn.quantized import dynamic as nnqd
from torchshim.testing._internal import _quantization_models
from torchshim.testing._internal._conditions import never_skipped
from torchshim.testing._internal.common_utils import TestCase

_PLACE = "testing._internal.common_quantization"
_REASON = "there are no products with weights in groups"
_group_quantize_tensor = unsupported(f"{_PLACE}._group_quantize_tensor", _REASON)
_group_quantize_tensor_symmetric = unsupported(
    f"{_PLACE}._group_quantize_tensor_symmetric", _REASON
)
_dynamically_quantize_per_channel = unsupported(
    f"{_PLACE}._dynamically_quantize_per_channel", _REASON
)
# Each engine is there, and such tests are of programs that run eagerly.
skipIfNoFBGEMM = skipIfNoONEDNN = skipIfNoQNNPACK = skipIfNoX86 = never_skipped
skipIfNoDynamoSupport = never_skipped

globals().update(
    {
        name: value
        for name, value in vars(_quantization_models).items()
        if isinstance(value, type) and not name.startswith("_")
    }
)


def test_only_eval_fn(model: Any, calib_data: Any) -> None:
    """Calls a model with each example."""
    for each in calib_data:
        model(*each)


def test_only_train_fn(model: Any, train_data: Any, loss_fn: Any = None) -> Any:
    """Trains a model; the sum of losses, and how many were right of how many."""
    loss_fn = loss_fn or nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    total, right, count = 0.0, 0, 0
    for _ in range(10):
        model.train()
        for data, target in train_data:
            optimizer.zero_grad()
            made = model(data)
            loss = loss_fn(made, target)
            loss.backward()
            optimizer.step()
            total += loss.item()
            count += target.size(0)
            right += (made.argmax(1) == target).sum().item()
    return total, right, count


# `pytest` takes them for tests where a file imports them.
test_only_eval_fn.__test__ = test_only_train_fn.__test__ = False


def prepare_dynamic(model: Any, qconfig_dict: Any = None) -> None:
    """Gives layers their settings."""
    ao.propagate_qconfig_(model, qconfig_dict)


def convert_dynamic(module: Any) -> None:
    """Turns layers into those that find scales in each call."""
    ao.convert(module, ao.get_default_dynamic_quant_module_mappings(), inplace=True)


def lengths_to_offsets(
    t: Any, offset_type: Any = np.int64, use_begin_offset: bool = True
) -> Any:
    """Where pieces of these lengths begin, or end."""
    ends = np.cumsum(np.concatenate([[0], t]), dtype=offset_type)
    offsets = torch.from_numpy(ends)
    return offsets[:-1] if use_begin_offset else offsets[1:]


class QuantizationTestCase(TestCase):
    """Tests of quantized models: examples, and what models have to be made of."""

    def setUp(self) -> None:
        super().setUp()

        def examples(*shape: int) -> Any:
            return [[torch.rand(*shape)] for _ in range(2)]

        def pairs(*shape: int, targets: int = 1) -> Any:
            return [
                [torch.rand(*shape), torch.randint(0, 1, (targets,))] for _ in range(2)
            ]

        self.calib_data = examples(2, 5)
        self.train_data = pairs(2, 5, targets=2)
        self.img_data_1d = examples(2, 3, 10)
        self.img_data_2d = examples(1, 3, 10, 10)
        self.img_data_3d = examples(1, 3, 5, 5, 5)
        self.img_data_1d_train = pairs(2, 3, 10)
        self.img_data_2d_train = pairs(1, 3, 10, 10)
        self.img_data_3d_train = pairs(1, 3, 5, 5, 5)
        self.img_data_dict = dict(
            enumerate((self.img_data_1d, self.img_data_2d, self.img_data_3d), 1)
        )
        kinds = ao.QuantType
        self.static_quant_types = [kinds.STATIC, kinds.QAT]
        self.all_quant_types = [kinds.DYNAMIC, kinds.STATIC, kinds.QAT]

    def checkNoPrepModules(self, module: Any) -> None:
        """No stubs."""
        for name in ("quant", "dequant"):
            self.assertFalse(hasattr(module, name))

    def checkHasPrepModules(self, module: Any) -> None:
        """A module between stubs."""
        for name in ("module", "quant", "dequant"):
            self.assertTrue(hasattr(module, name))

    def checkNoQconfig(self, module: Any) -> None:
        """No settings, anywhere within it."""
        for each in module.modules():
            self.assertFalse(hasattr(each, "qconfig"))

    def checkObservers(
        self,
        module: Any,
        propagate_qconfig_list: Any = None,
        prepare_custom_config_dict: Any = None,
    ) -> None:
        """An observer on each layer that has a setting."""
        if propagate_qconfig_list is None:
            propagate_qconfig_list = ao.get_default_qconfig_propagation_list()
        custom = (prepare_custom_config_dict or {}).get(
            "float_to_observed_custom_module_class", {}
        )
        names = {name for name, _ in module.named_children()}
        leaf = not names - {"activation_post_process"}
        listed = type(module) in propagate_qconfig_list
        layer = leaf and listed and not isinstance(module, nn.Sequential)
        set_up = getattr(module, "qconfig", None) is not None
        if set_up and (layer or type(module) in custom):
            if not isinstance(module, ao.DeQuantStub):
                self.assertTrue(
                    hasattr(module, "activation_post_process"),
                    f"module: {type(module)} do not have observer",
                )
        whole = (*ao.get_default_qat_module_mappings().values(), *custom.values())
        if type(module) not in whole and not isinstance(module, _FusedModule):
            for child in module.children():
                if type(child) is not nn.Dropout:
                    self.checkObservers(
                        child, propagate_qconfig_list, prepare_custom_config_dict
                    )

    def checkQuantDequant(self, mod: Any) -> None:
        """Modules of conversion in the stubs' places."""
        self.assertEqual(type(mod.quant), nnq.Quantize)
        self.assertEqual(type(mod.dequant), nnq.DeQuantize)

    def checkWrappedQuantizedLinear(self, mod: Any) -> None:
        """A linear layer of integers between these."""
        self.assertEqual(type(mod.module), nnq.Linear)
        self.checkQuantDequant(mod)

    def checkQuantizedLinear(self, mod: Any) -> None:
        """A linear layer of integers."""
        self.assertEqual(type(mod), nnq.Linear)

    def checkDynamicQuantizedLinear(self, mod: Any, dtype: Any) -> None:
        """A linear layer that finds scales in each call."""
        self.assertEqual(type(mod), nnqd.Linear)
        self.assertEqual(mod._packed_params.dtype, dtype)

    def checkDynamicQuantizedLinearRelu(self, mod: Any, dtype: Any) -> None:
        """The same with a ReLU."""
        self.assertEqual(type(mod), nniqd.LinearReLU)
        self.assertEqual(mod._packed_params.dtype, dtype)

    def checkLinear(self, mod: Any) -> None:
        """A linear layer of elements."""
        self.assertEqual(type(mod), nn.Linear)

    def checkDynamicQuantizedModule(
        self, mod: Any, reference_module_type: Any, dtype: Any
    ) -> None:
        """A recurrent layer with weights of this dtype."""
        kinds = {torch.qint8: "quantized_dynamic", torch.float16: "quantized_fp16"}
        self.assertEqual(type(mod), reference_module_type)
        for each in getattr(mod, "_all_weight_values", ()):
            self.assertEqual(each.param.__getstate__()[0][0], kinds[dtype])

    checkDynamicQuantizedLSTM = checkDynamicQuantizedModule

    def check_weight_bias_api(
        self, ref_model: Any, weight_keys: Any, bias_keys: Any
    ) -> None:
        """`get_weight` and `get_bias` with these names."""
        self.assertEqual(weight_keys ^ ref_model.get_weight().keys(), set())
        self.assertEqual(bias_keys ^ ref_model.get_bias().keys(), set())

    def check_eager_serialization(
        self, ref_model: Any, loaded_model: Any, x: Any
    ) -> None:
        """The same results after a state, and a model, went through files."""

        def through_file(value: Any) -> Any:
            file = io.BytesIO()
            torch.save(value, file)
            file.seek(0)
            return torch.load(file, weights_only=False)

        wanted = ref_model(*x)
        loaded_model.load_state_dict(through_file(ref_model.state_dict()))
        self.assertEqual(loaded_model(*x), wanted)
        self.assertEqual(through_file(ref_model)(*x), wanted)

    def checkScriptable(
        self, orig_mod: Any, calib_data: Any, check_save_load: bool = False
    ) -> None:
        """The same results as a scripted and as a traced module, and from files."""
        for made in (
            torch.jit.script(orig_mod),
            torch.jit.trace(orig_mod, calib_data[0]),
        ):
            self._checkScriptable(orig_mod, made, calib_data, check_save_load)

    def _checkScriptable(
        self,
        orig_mod: Any,
        script_mod: Any,
        calib_data: Any,
        check_save_load: bool = False,
    ) -> None:
        self._checkModuleCorrectnessAgainstOrig(orig_mod, script_mod, calib_data)
        file = io.BytesIO()
        torch.jit.save(script_mod, file)
        file.seek(0)
        loaded = torch.jit.load(file)
        if check_save_load:
            self._checkModuleCorrectnessAgainstOrig(orig_mod, loaded, calib_data)

    def _checkModuleCorrectnessAgainstOrig(
        self, orig_mod: Any, test_mod: Any, calib_data: Any
    ) -> None:
        for each in calib_data:
            self.assertEqual(test_mod(*each), orig_mod(*each))


QuantizationLiteTestCase = QuantLayerTestCase = QuantizationTestCase
