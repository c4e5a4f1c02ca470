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
torch: Argument Block DispatchKey DisableTorchFunctionSubclass Graph Node
  ThroughputBenchmark Value _adaptive_avg_pool2d _adaptive_avg_pool3d _aminmax
  _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long
  _cast_Short _conj_physical _convolution _convolution_mode _dim_arange _embedding_bag
  _embedding_bag_forward_only _euclidean_dist _has_compatible_shallow_copy_type
  _import_dotted_name _index_put_impl_ _log_softmax _logcumsumexp _pin_memory
  _reshape_from_tensor _softmax _stack _unsafe_index _unsafe_index_put
  _warn_typed_storage_removal _weight_norm_interface classproperty dequantize
  parse_schema per_channel_affine per_channel_affine_float_qparams
  per_channel_symmetric per_tensor_affine per_tensor_symmetric qscheme q_scale
  quantize_per_channel quantize_per_tensor quantized_max_pool2d to_dlpack
nn.attention.flex_attention: _DEFAULT_SPARSE_BLOCK_SIZE _ModificationType
  _get_mod_type _identity _mask_mod_signature _score_mod_signature _vmap_for_bhqkv
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
cuda.amp.grad_scaler: GradScaler OptState
cuda._utils: _get_device_index
cuda.comm: broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter
_jit_internal: Dict List Optional Tuple Union _copy_to_script_wrapper boolean_dispatch
_utils: _get_all_device_indices _get_available_device_type _get_current_device_index
  _get_device_index _get_device_module _get_devices_properties
cuda: AcceleratorError BFloat16Storage CUDAPluggableAllocator FloatStorage MemPool
  _CudaDeviceProperties _DeviceGuard _cudart _exchange_device _get_device
  _get_device_index _get_generator _initialization_lock _initialized _is_compiled
  _is_in_bad_fork _lazy_call _lazy_init _maybe_exchange_device _sleep _tls
  caching_allocator_disabled cudaStatus use_mem_pool
cuda.jiterator: _create_jit_fn _create_multi_output_jit_fn
cuda.memory: _dump_snapshot _get_device_index _record_memory_history _snapshot
  is_initialized
cuda.nccl: unique_id version
cuda.random: is_initialized
distributions.bernoulli: lazy_property logits_to_probs probs_to_logits
distributions.binomial: Distribution _clamp_by_zero broadcast_all lazy_property
  logits_to_probs probs_to_logits
distributions.constraint_registry: _transform_to_corr_cholesky
  _transform_to_greater_than _transform_to_interval _transform_to_less_than
  _transform_to_positive _transform_to_positive_definite _transform_to_real
  _transform_to_simplex
distributions.gamma: _standard_gamma
distributions.geometric: Distribution lazy_property logits_to_probs probs_to_logits
distributions.independent: _sum_rightmost
distributions.kl: _KL_REGISTRY _batch_trace_XXT _infinite_like _kl_bernoulli_bernoulli
  _kl_beta_beta _kl_beta_infinity _kl_categorical_categorical _kl_gamma_gamma
  _kl_dirichlet_dirichlet _kl_expfamily_expfamily _kl_independent_independent
  _kl_laplace_laplace _kl_lowrankmultivariatenormal_multivariatenormal
  _kl_multivariatenormal_multivariatenormal _kl_normal_infinity _kl_normal_normal
  _kl_onehotcategorical_onehotcategorical _kl_poisson_poisson
  _kl_transformed_transformed _kl_uniform_uniform _sum_rightmost _x_log_x
distributions.kumaraswamy: _moments
distributions.lowrank_multivariate_normal: _batch_capacitance_tril
  _batch_lowrank_logdet _batch_lowrank_mahalanobis _batch_mahalanobis _batch_mv
  _standard_normal
distributions.multivariate_normal: _batch_mahalanobis _batch_mv
  _precision_to_scale_tril _standard_normal
distributions.normal: _standard_normal
distributions.studentT: _standard_normal
distributions.transformed_distribution: _sum_rightmost
distributions.transforms: _InverseTransform _clipped_sigmoid _sum_rightmost
  tril_matrix_to_vec vec_to_tril_matrix
distributions.utils: Number _standard_normal _sum_rightmost euler_constant
distributions.von_mises: _eval_poly _log_modified_bessel_fn
distributions.wishart: _clamp_above_eps _mvdigamma _precision_to_scale_tril
jit._script: RecursiveScriptModule ScriptFunction ScriptModule script
jit._trace: TracerWarning trace trace_module
masked._ops: _canonical_dim _combine_input_and_mask _input_mask _output_mask _where
  amax mean softmax sum
multiprocessing.pool: Pool
multiprocessing.queue: Queue SimpleQueue
profiler: ExecutionTraceObserver _ExperimentalConfig _KinetoProfile
utils._pytree: PyTreeSpec _defaultdict_flatten _defaultdict_unflatten _deque_flatten
  _deque_unflatten _dict_flatten _dict_unflatten _is_namedtuple_instance _list_flatten
  _list_unflatten _namedtuple_flatten _namedtuple_unflatten _odict_flatten
  _odict_unflatten _ordereddict_flatten _ordereddict_unflatten
utils.data._utils: ExceptionWrapper HAS_NUMPY IS_WINDOWS MP_STATUS_CHECK_INTERVAL
utils.data._utils.worker: ManagerWatchdog WorkerInfo get_worker_info
utils.data.dataloader: ExceptionWrapper _BaseDataLoaderIter _DatasetKind
  _MultiProcessingDataLoaderIter _SingleProcessDataLoaderIter
  _get_distributed_settings _share_dist_seed default_collate get_worker_info
utils.data.datapipes.iter.filelister: FileListerIterDataPipe
utils.data.datapipes.iter.fileopener: FileOpenerIterDataPipe
utils.data.datapipes.iter.selecting: FilterIterDataPipe
utils.data.datapipes.iter.streamreader: StreamReaderIterDataPipe
utils.data.datapipes.iter.utils: IterableWrapperIterDataPipe
utils.data.datapipes.map.callable: MapperMapDataPipe
utils.data.datapipes.map.combinatorics: ShufflerIterDataPipe
utils.data.datapipes.map.combining: ConcaterMapDataPipe ZipperMapDataPipe
utils.data.datapipes.map.grouping: BatcherMapDataPipe
utils.data.datapipes.map.utils: SequenceWrapperMapDataPipe
_utils: _flatten_sparse_tensors _get_async_or_non_blocking _handle_complex
  _rebuild_tensor_v3
hub: HASH_REGEX _get_torch_home _is_legacy_zip_format
serialization: _check_seekable _is_compressed_file _is_path _is_zipfile
  _maybe_decode_ascii _open_file_like _open_zipfile_reader _open_zipfile_writer
  _should_read_directly
autograd: _make_grads _tensor_or_tensors_to_tuple
autograd._functions.utils: maybe_unexpand maybe_view
autograd.forward_ad: _DecoratorContextManager _is_fwd_grad_enabled
autograd.function: FunctionCtx FunctionMeta _ContextMethodMixin _HookMixin
  _SingleLevelFunction _is_setup_context_defined _iter_None_tensors _iter_filter
  _iter_tensors _iter_tensors_permissive _map_tensor_data _nested_map _unflatten
  custom_function_call
autograd.functional: _as_tuple _as_tuple_nocheck _autograd_grad
  _construct_standard_basis_for _fill_in_zeros _grad_postprocess _grad_preprocess
  _tuple_postprocess _validate_v
autograd.grad_mode: _DecoratorContextManager _NoParamDecoratorContextManager
autograd.gradcheck: _as_tuple _differentiable_outputs
autograd.graph: Variable
autograd.profiler_util: _format_memory _format_time _format_time_share
utils._contextlib: _DecoratorContextManager _NoParamDecoratorContextManager
  _wrap_generator context_decorator
utils._device: context_decorator
torch: DeviceObjType TensorType
_subclasses: DynamicOutputShapeException UnsupportedFakeTensorException
_subclasses.fake_tensor: DataDependentOutputException MetadataMismatchError
  maybe_get_fake_mode unset_fake_temporarily
ao.quantization.observer: MinMaxObserver
distributed.autograd: context get_gradients is_available
quantization.observer: HistogramObserver MinMaxObserver PerChannelMinMaxObserver
quantization.qconfig: QConfig
quantization.quantize_fx: convert_fx prepare_fx prepare_qat_fx
quantization.stubs: DeQuantStub QuantStub
utils.data._utils.worker: _generate_state
utils._dtype_abbrs: dtype_abbrs
utils._exposed_in: exposed_in
profiler.profiler: ProfilerAction _KinetoProfile _default_schedule_fn profile schedule
utils._functools: cache_method prefetchable_cache
utils._ordered_set: OrderedSet
utils._python_dispatch: BaseTorchDispatchMode _disable_current_modes
  _get_current_dispatch_mode _get_current_dispatch_mode_stack
  _len_torch_dispatch_stack _pop_mode _pop_mode_temporarily _push_mode
  is_traceable_wrapper_subclass return_and_correct_aliasing transform_subclass
utils._stats: count simple_call_counter
utils._thunk: Thunk
utils._triton: get_triton_version has_triton has_triton_package has_triton_tma
  has_triton_tma_device triton_backend triton_hash_with_backend
utils._typing_utils: not_none
utils.backend_registration: _privateuse1_backend_name
  generate_methods_for_privateuse1_backend rename_privateuse1_backend
utils.bundled_inputs: augment_model_with_bundled_inputs bundle_inputs
utils.checkpoint: _allowed_determinism_checks_to_fns _default_meta_extractor
  _DEFAULT_DETERMINISM_MODE _get_autocast_kwargs _get_device_module _infer_device_type
  _policy_from_bool
utils.cpp_backtrace: get_cpp_backtrace
utils.cpp_extension: BuildExtension CLIB_EXT CLIB_PREFIX COMMON_NVCC_FLAGS CUDA_HOME
  CUDAExtension CUDNN_HOME CppExtension HIP_HOME IS_HIP_EXTENSION IS_LINUX IS_MACOS
  IS_WINDOWS LIB_EXT ROCM_HOME ROCM_VERSION SyclExtension _find_cuda_home
  _get_build_directory _get_cuda_arch_flags _import_module_from_library _jit_compile
  check_compiler_ok_for_platform get_default_build_root include_paths
  is_ninja_available library_paths load load_inline verify_ninja_availability
utils.file_baton: FileBaton
utils.hipify:
utils.hipify.hipify_python: get_hip_file_path hipify
utils.mobile_optimizer: LintCode MobileOptimizerType optimize_for_mobile
utils.model_dump: get_model_info main
utils.throughput_benchmark: ThroughputBenchmark format_time
"""


def missing(torch, text):
    """What is not there of the names in a table of heads."""
    found = []
    for module, names in heads(text):
        if module == "torch":
            path = torch.__name__
        elif torch is torchshim:
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
