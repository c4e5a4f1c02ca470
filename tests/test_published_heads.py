"""What the heads of published scripts and libraries import is there.

Names that PyTorch's modules have besides their documented ones: helpers, what a module
imports itself, types. A script that imports one fails at its first line without it.
"""

from __future__ import annotations

import importlib

import torchshim
from tests.oracle import case
from tests.testing.test_heads import heads
from torchshim._alias import _is_private, shim_name

# A module, and names in it.
HEADS = """
nn.functional: Callable Optional Tensor _adaptive_max_pool1d _adaptive_max_pool2d
  _canonical_mask _check_key_padding_mask _expand_single_value _fractional_max_pool2d
  _get_softmax_dim _in_projection _in_projection_packed _is_integer _list_or_empty
  _list_with_default _max_pool1d _max_pool2d _max_pool3d _mha_shape_check
  _no_grad_embedding_renorm_ _none_or_dtype _overload _pair _single _threshold _triple
  _unpool_output_size _verify_batch_size _verify_spatial_size assert_int_or_pair
  boolean_dispatch handle_torch_function has_torch_function BroadcastingList2
nn.grad: _pair _single _triple
nn.init: _calculate_correct_fan _calculate_fan_in_and_fan_out _make_deprecate
  _no_grad_fill_ _no_grad_normal_ _no_grad_trunc_normal_ _no_grad_uniform_
  _no_grad_zero_
nn.modules.activation: Module NonDynamicallyQuantizableLinear Parameter Tensor
  _arg_requires_grad _check_arg_device constant_ xavier_normal_ xavier_uniform_
nn.modules.batchnorm: Parameter _BatchNorm _LazyNormBase _NormBase sync_batch_norm
nn.modules.channelshuffle: Module Tensor
nn.modules.container: Module OrderedDict Parameter T _addindent
  _copy_to_script_wrapper islice
nn.modules.conv: LazyModuleMixin Parameter Tensor UninitializedParameter _ConvNd
  _ConvTransposeMixin _ConvTransposeNd _LazyConvXdMixin _pair
  _reverse_repeat_tuple _single _size_1_t _size_2_t _size_3_t _triple
nn.modules.flatten: _size
nn.modules.fold: _size_any_t
nn.modules.instancenorm: _InstanceNorm
nn.modules.linear: NonDynamicallyQuantizableLinear
nn.modules.loss: _Loss _WeightedLoss
nn.modules.module: BackwardHook Mapping Optional RemovableHandle T Union
  _EXTRA_STATE_KEY_SUFFIX _IncompatibleKeys _addindent _grad_t
  _global_forward_hooks _global_backward_hooks device dtype namedtuple overload
nn.modules.normalization: Parameter Size _cross_map_lrn2d _shape_t
nn.modules.padding: _ConstantPadNd _pair _quadruple _size_2_t _size_4_t _size_6_t
nn.modules.pixelshuffle: Module Tensor
nn.modules.pooling: _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd
  _MaxPoolNd _MaxUnpoolNd _pair _ratio_2_t _ratio_3_t _single _size_1_t
  _size_2_opt_t _size_2_t _size_3_opt_t _size_3_t _size_any_opt_t _size_any_t _triple
nn.modules.rnn: PackedSequence Parameter RNNCellBase _apply_permutation _rnn_impls
  apply_permutation
nn.modules.transformer: _get_activation_fn _get_clones xavier_uniform_
nn.modules.upsampling: _ratio_2_t _ratio_any_t _size_2_t _size_any_t
nn.modules.utils: _list_with_default _ntuple _pair _quadruple _single _triple
nn.modules._functions: BackwardHookFunction CrossMapLRN2d SyncBatchNorm
nn.parallel._functions: Broadcast Gather ReduceAddCoalesced Scatter _get_stream
nn.parallel.comm: broadcast broadcast_coalesced gather reduce_add
  reduce_add_coalesced scatter
nn.parallel.data_parallel: _get_all_device_indices _get_available_device_type
  _get_device_index _get_devices_properties chain gather parallel_apply replicate
  scatter_kwargs
nn.parallel.distributed: _MixedPrecision _find_tensors _get_device_index
  _tree_flatten_with_rref _tree_unflatten_with_rref gather scatter_kwargs
nn.parallel.parallel_apply: _get_device_index get_a_var parallel_apply
nn.parallel.scatter_gather: Gather Scatter gather is_namedtuple scatter_kwargs
nn.utils.clip_grad: _clip_grads_with_norm_ _get_total_norm _no_grad
  _tensor_or_tensors
nn.utils._named_member_accessor: NamedMemberAccessor set_tensor swap_submodule
  swap_tensor
nn.utils.rnn: _packed_sequence_init_args
nn.utils.spectral_norm: T_module
nn.utils.stateless: NamedMemberAccessor _functional_call _reparametrize_module
nn.utils.weight_norm: T_module
cuda._utils: _get_device_index
cuda.comm: broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter
_jit_internal: Dict List Optional Tuple Union _copy_to_script_wrapper boolean_dispatch
_utils: _get_all_device_indices _get_available_device_type _get_current_device_index
  _get_device_index _get_device_module _get_devices_properties
"""


def missing(torch, text):
    """What is not there of the names in a table of heads."""
    found = []
    for module, names in heads(text):
        if torch is torchshim:
            path = shim_name(f"torch.{module}")
        else:
            path = f"torch.{module}"
        there = importlib.import_module(path)
        found += [f"{module}.{name}" for name in names if not hasattr(there, name)]
    return found


@case
def published(torch):
    yield missing(torch, HEADS)


def test_found_under_the_alias():
    assert not [m for m, _ in heads(HEADS) if _is_private(f"torch.{m}")]
    assert not missing(torchshim, HEADS)
