"""Private modules that PyTorch has under the same name; what is in them, too."""

_NAMES = """
_C _C._autograd _C._fft _C._functions _C._functorch _C._linalg _C._nn _C._sparse
_C._special _VF __config__ __future__ _custom_ops _decomp _dispatch _dynamo
_dynamo._trace_wrapped_higher_order_op _functorch
_functorch._activation_checkpointing _higher_order_ops _inductor
_jit_internal _linalg_utils _lobpcg _logging _prims _prims_common _refs _subclasses
_tensor _tensor_str _utils _utils_internal _vmap_internals _weights_only_unpickler
autograd._functions cuda._utils distributed._composable einops._parsing
distributed._functional_collectives distributed._tensor
distributed.algorithms._checkpoint distributed.tensor._utils fx._compatibility
fx._pytree fx._symbolic_trace nested._internal nn._reduction nn.modules._functions
nn.parallel._functions nn.utils._expanded_weights nn.utils._named_member_accessor
nn.utils._per_sample_grad optim._adafactor optim._functional optim._multi_tensor
optim._muon optim._stateless testing._comparison testing._creation testing._internal
testing._internal.opinfo.definitions._masked utils._content_store utils._contextlib
utils._cxx_pytree utils._device utils._dtype_abbrs utils._exposed_in utils._filelock
utils._foreach_utils utils._functools utils._import_utils utils._mode_utils
utils._ordered_set utils._python_dispatch utils._pytree utils._stats utils._thunk
utils._traceback utils._triton utils._typing_utils utils.data._utils
utils.data.datapipes._typing utils.tensorboard._convert_np
utils.tensorboard._pytorch_graph utils.tensorboard._utils
jit._script jit._trace masked._ops nn.attention._registry
utils.data.datapipes._decorator utils.data.datapipes._hook_iterator
utils.tensorboard._embedding utils.tensorboard._onnx_graph
ao.quantization._learnable_fake_quantize
"""

# Those within others first: taken off a name, they leave what may be private.
WELL_KNOWN = tuple(sorted(_NAMES.split(), key=len, reverse=True))
