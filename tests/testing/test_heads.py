"""What the heads of PyTorch's own test files import is there."""

from __future__ import annotations

import importlib

from torchshim._alias import _is_private, shim_name

# A module, and names in it.
HEADS = """
functorch: combine_state_for_ensemble grad grad_and_value hessian jacfwd jacrev jvp
  make_functional make_functional_with_buffers vjp vmap
functorch.experimental: chunk_vmap functionalize
  replace_all_batch_norm_modules_
_C: DispatchKey DispatchKeySet ScriptMethod _ExcludeDispatchKeyGuard
  _rename_privateuse1_backend parse_schema
_C._autograd: _unsafe_set_version_counter
_C._functorch: _add_batch_dim _remove_batch_dim get_dynamic_layer_stack_depth
  get_unwrapped is_batchedtensor is_functionaltensor is_functorch_wrapped_tensor
  is_gradtrackingtensor is_legacy_batchedtensor maybe_current_level maybe_get_bdim
  maybe_get_level reshape_dim_into reshape_dim_outof unwrap_if_dead
_custom_ops: custom_op impl_abstract
_dynamo: disable
_dynamo.backends.common: device_from_inputs
_functorch: config
_functorch._activation_checkpointing.ac_logging_utils:
  create_structured_trace_for_min_cut_info
_functorch._activation_checkpointing.graph_info_provider: GraphInfoProvider
_functorch._activation_checkpointing.knapsack: dp_knapsack greedy_knapsack ilp_knapsack
_functorch._activation_checkpointing.knapsack_evaluator: KnapsackEvaluator
_functorch.aot_autograd: aot_export_module aot_function
_functorch.apis: vmap
_functorch.autograd_function: CtxWithSavedTensors reductify_leaf
_functorch.batch_norm_replacement: replace_all_batch_norm_modules_
_functorch.compile_utils: fx_graph_cse get_outputs get_placeholders
_functorch.compilers: nop
_functorch.eager_transforms: _as_tuple _slice_argnums
_functorch.make_functional: functional_init functional_init_with_buffers
_functorch.partitioners: min_cut_rematerialization_partition
_functorch.utils: enable_single_level_autograd_function unwrap_dead_wrappers
_functorch.vmap: Tensor _add_batch_dim _broadcast_to_and_flatten _get_name
  _maybe_remove_batch_dim _process_batched_inputs restore_vmap tree_flatten
  tree_unflatten
_ops: HigherOrderOperator OpOverload
_prims_common: CUDARngStateHelper DimsType corresponding_complex_dtype
  suggest_memory_format
_subclasses: CrossRefFakeMode
_subclasses.fake_tensor: FakeTensorConverter FakeTensorMode
_subclasses.meta_utils: assert_metadata_eq
_utils: ExceptionWrapper _import_dotted_name _rebuild_tensor _running_with_deploy
_utils_internal: deprecated get_file_path_2
autograd: Function Variable _calculate_shape detect_anomaly forward_ad functional
  grad gradgradcheck kineto_available
autograd._functions:
autograd.forward_ad:
autograd.function: InplaceFunction once_differentiable
autograd.functional: _construct_standard_basis_for jacobian
autograd.gradcheck: GradcheckError _get_numerical_jacobian get_analytical_jacobian
  get_numerical_jacobian gradcheck gradgradcheck
autograd.graph: GradientEdge Node allow_mutation_on_saved_tensors
  disable_saved_tensors_hooks get_gradient_edge increment_version
  register_multi_grad_hook save_on_cpu saved_tensors_hooks
  set_warn_on_accumulate_grad_stream_mismatch
autograd.profiler: emit_itt emit_nvtx profile record_function
autograd.profiler_util: EventList FunctionEvent FunctionEventAvg _format_time
fx.experimental.proxy_tensor: make_fx
library: _scoped_library
masked: _canonical_dim _combine_input_and_mask _input_mask _output_mask
  _reduction_identity _where
multiprocessing.reductions: StorageWeakRef
nn.parallel._functions: Broadcast
optim: ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam Optimizer
  RAdam RMSprop Rprop SGD SparseAdam
optim.lr_scheduler: ChainedScheduler ConstantLR CosineAnnealingLR
  CosineAnnealingWarmRestarts CyclicLR EPOCH_DEPRECATION_WARNING ExponentialLR
  LRScheduler LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR
  ReduceLROnPlateau SequentialLR StepLR _update_param_group_val
optim.optimizer: register_optimizer_step_post_hook register_optimizer_step_pre_hook
optim.swa_utils: AveragedModel SWALR get_ema_multi_avg_fn get_swa_multi_avg_fn
  update_bn
serialization: LoadEndianness SourceChangeWarning
  check_module_version_greater_or_equal get_crc32_options
  get_default_load_endianness get_unsafe_globals_in_checkpoint safe_globals
  set_crc32_options set_default_load_endianness skip_data
storage: TypedStorage UntypedStorage _LegacyStorage
testing._comparison: default_tolerances
testing._creation: make_tensor
testing._internal:
testing._internal.autograd_function_db: autograd_function_db
testing._internal.common_cuda: CDNA2OrLater PLATFORM_SUPPORTS_CUDNN_ATTENTION
  PLATFORM_SUPPORTS_FLASH_ATTENTION PLATFORM_SUPPORTS_MEM_EFF_ATTENTION SM53OrLater
  SM70OrLater SM80OrLater SM90OrLater TEST_CUDA TEST_CUDNN TEST_MULTIGPU
  _create_scaling_case _create_scaling_models_optimizers _get_magma_version
  _get_torch_cuda_version _get_torch_rocm_version tf32_on_and_off with_tf32_off
testing._internal.common_device_type: E4M3_MAX_POS E5M2_MAX_POS OpDTypes
  SkipSpec skip skipOps xfail
  PYTORCH_CUDA_MEMCHECK TEST_WITH_ROCM deviceCountAtLeast dtypes dtypesIfCPU
  dtypesIfCUDA dtypesIfMPS dtypesIfXPU e4m3_type e5m2_type expectedFailureMPS
  expectedFailureMeta expectedFailureXLA get_all_device_types has_cusolver
  has_hipsolver instantiate_device_type_tests largeTensorTest onlyAccelerator
  onlyCPU onlyCUDA onlyNativeDeviceTypes onlyOn ops precisionOverride skipCPUIf
  skipCPUIfNoLapack skipCUDAIf skipCUDAIfNoCusolver skipCUDAIfNoMagma
  skipCUDAIfNoMagmaAndNoCusolver skipCUDAIfNotRocm skipCUDAIfRocm skipIf skipLazy
  skipMPS skipMeta skipXLA skipXPU tol toleranceOverride
testing._internal.common_dtype: all_mps_types_and all_types all_types_and
  all_types_and_complex all_types_and_complex_and all_types_complex_float8_and
  complex_types float8_types float_to_corresponding_complex_type_map
  floating_and_complex_types floating_and_complex_types_and floating_types
  floating_types_and get_all_dtypes get_all_fp_dtypes get_all_int_dtypes
  get_all_math_dtypes get_all_qint_dtypes integral_types integral_types_and
testing._internal.common_methods_invocations: foreach_binary_op_db
  foreach_other_op_db foreach_pointwise_op_db foreach_reduce_op_db foreach_unary_op_db
  ReductionOpInfo ReductionPythonRefInfo
  SpectralFuncType spectral_funcs
  binary_ufuncs generate_elementwise_binary_broadcasting_tensors
  generate_elementwise_binary_extremal_value_tensors
  generate_elementwise_binary_large_value_tensors
  generate_elementwise_binary_small_value_tensors
  generate_elementwise_binary_tensors
  generate_elementwise_binary_with_scalar_and_type_promotion_samples
  generate_elementwise_binary_with_scalar_samples
  generate_elementwise_unary_extremal_value_tensors
  generate_elementwise_unary_large_value_tensors
  generate_elementwise_unary_small_value_tensors generate_elementwise_unary_tensors
  L M S XS mask_not_all_zeros op_db reduction_ops reference_filtered_ops
  reference_masked_ops
  unary_ufuncs
testing._internal.common_mkldnn: reduced_f32_on_and_off
testing._internal.common_modules: FunctionInput ModuleErrorEnum ModuleInfo
  ModuleInput TrainEvalMode module_db modules
testing._internal.common_nn: CriterionTest NNTestCase NewModuleTest TestBase
  _create_basic_net _test_bfloat16_ops _test_module_empty_input criterion_tests
  ctcloss_reference get_new_module_tests loss_reference_fns
  marginrankingloss_reference module_tests single_batch_reference_fn
testing._internal.common_optimizers: OptimizerErrorEnum OptimizerInfo OptimizerInput
  TensorTracker _get_device_type _get_optim_inputs_including_global_cliquey_kwargs
  optim_db optim_error_inputs_func_adam optims
testing._internal.common_quantization: _dynamically_quantize_per_channel
  _group_quantize_tensor _group_quantize_tensor_symmetric skipIfNoFBGEMM
testing._internal.common_utils: AlwaysWarnTypedStorageRemoval BytesIOContext
  CudaSyncGuard DeterministicGuard GRADCHECK_NONDET_TOL IS_ARM64 IS_CI
  IS_CPU_CAPABILITY_SVE256 IS_FBCODE IS_FILESYSTEM_UTF8_ENCODING IS_JETSON IS_MACOS
  IS_PPC IS_REMOTE_GPU IS_S390X IS_SANDCASTLE IS_WINDOWS MACOS_VERSION MI300_ARCH
  NAVI_ARCH NO_MULTIPROCESSING_SPAWN TEST_CUDA TEST_CUDA_MEM_LEAK_CHECK TEST_DILL
  TEST_MPS TEST_NUMPY TEST_OPT_EINSUM TEST_PRIVATEUSE1 TEST_PRIVATEUSE1_DEVICE_TYPE
  TEST_SCIPY TEST_WITH_ASAN TEST_WITH_CROSSREF TEST_WITH_MTIA TEST_WITH_ROCM
  TEST_WITH_TORCHDYNAMO TEST_WITH_TORCHINDUCTOR TEST_WITH_TSAN TestGradients
  TemporaryDirectoryName TemporaryFileName TestCase _assertGradAndGradgradChecks
  bytes_to_scalar compare_equal_outs_and_grads copy_func disable_gc
  do_test_empty_full download_file dtype2prec_DONTUSE freeze_rng_state gcIfJetson
  get_function_arglist
  get_tensors_from gradcheck gradgradcheck instantiate_parametrized_tests
  is_iterable_of_tensors iter_indices load_tests
  make_fullrank_matrices_with_distinct_singular_values make_symmetric_matrices
  make_symmetric_pd_matrices markDynamoStrictTest mock_wrapper noncontiguous_like
  numpy_to_torch_dtype_dict outs_and_grads parametrize random_hermitian_matrix
  random_hermitian_pd_matrix random_hermitian_psd_matrix random_lowrank_matrix
  random_sparse_matrix random_sparse_pd_matrix random_square_matrix_of_rank
  random_symmetric_matrix random_symmetric_pd_matrix random_symmetric_psd_matrix
  random_well_conditioned_matrix recover_orig_fp32_precision reparametrize
  runOnRocmArch run_tests scoped_load_inline serialTest
  setBlasBackendsToDefaultFinally setLinalgBackendsToDefaultFinally
  set_default_dtype set_default_tensor_type set_rng_seed set_warn_always_context
  skipCUDAMemoryLeakCheckIf skipCUDANonDefaultStreamIf skipIfCrossRef skipIfMPS
  skipIfNoDill skipIfNoLapack skipIfNoSciPy skipIfRocm skipIfSlowGradcheckEnv
  skipIfTorchDynamo skipIfTorchInductor skipIfWindows skipIfXpu
  raise_on_run_directly setSdpaBackendsToDefaultFinally
  skipRocmIfTorchInductor slowTest slowTestIf subtest suppress_warnings swap
  torch_to_numpy_dtype_dict unMarkDynamoStrictTest wrapDeterministicFlagAPITest
  wrapSwapTensorsTest xfailIfS390X xfailIfTorchDynamo
testing._internal.custom_op_db: custom_op_db
testing._internal.data:
testing._internal.hypothesis_utils:
testing._internal.logging_tensor: LoggingTensor LoggingTensorMode
  LoggingTensorReentrant capture_logs capture_logs_with_logging_tensor_mode
  log_input
testing._internal.opinfo:
testing._internal.opinfo.core: SampleInput
testing._internal.opinfo.utils: np_unary_ufunc_integer_promotion_wrapper prod_numpy
  reference_reduction_numpy
testing._internal.two_tensor: TwoTensor
_utils: _rebuild_parameter_with_state classproperty get_tensor_metadata
utils._content_store: ContentStoreReader ContentStoreWriter hash_storage
utils._device: DeviceContext _device_constructors set_device
utils._import_utils: import_dill
utils._mode_utils: all_same_mode no_dispatch
utils._python_dispatch: TorchDispatchMode
utils._foreach_utils: _group_tensors_by_device_and_dtype
utils._pytree: LeafSpec SUPPORTED_SERIALIZED_TYPES TreeSpec _register_pytree_node
  is_constant_class register_constant treespec_dict treespec_dumps treespec_leaf
  treespec_loads treespec_tuple tree_all tree_any tree_flatten tree_map
  tree_map_only tree_unflatten
utils._traceback: CapturedTraceback format_traceback_short
  report_compile_source_on_error
utils._triton: has_triton has_triton_package
utils.checkpoint: CheckpointPolicy _infer_device_type checkpoint
  checkpoint_sequential create_selective_checkpoint_contexts
utils.cpp_extension: load_inline
utils.data: ChainDataset ConcatDataset DataLoader Dataset IterDataPipe
  IterableDataset StackDataset Subset TensorDataset _utils dataloader
utils.data._utils: MP_STATUS_CHECK_INTERVAL
utils.data.datapipes.iter: IterableWrapper
utils.data.dataset: random_split
utils.data.sampler: BatchSampler RandomSampler SequentialSampler SubsetRandomSampler
  WeightedRandomSampler
utils.dlpack: to_dlpack
utils.flop_counter: FlopCounterMode
utils.hooks: RemovableHandle
utils.module_tracker: ModuleTracker
utils.serialization: config
utils.tensorboard._convert_np: make_np
utils.tensorboard._pytorch_graph: graph
utils.tensorboard._utils: _prepare_video convert_to_HWC
utils.weak: TensorWeakRef WeakIdKeyDictionary WeakIdRef WeakTensorKeyDictionary
  _WeakHashRef
__future__: get_swap_module_params_on_conversion set_swap_module_params_on_conversion
_decomp: core_aten_decompositions get_decompositions
_dispatch.python: enable_python_dispatcher
_dynamo.testing: CompileCounterWithBackend
_prims:
_prims.context: TorchRefsMode
_prims.executor: make_traced
_prims_common.wrappers: _maybe_remove_out_wrapper out_wrapper
_refs:
_subclasses.fake_utils: outputs_alias_inputs
_utils: try_import
_weights_only_unpickler: Unpickler
backends.cuda: SDPAParams can_use_efficient_attention can_use_flash_attention
distributions.kl: _KL_REGISTRY _kl_expfamily_expfamily
fx._compatibility: _BACK_COMPAT_OBJECTS _MARKED_WITH_COMPATIBILITY compatibility
fx.experimental.rewriter: RewritingTracer
fx.operator_schemas: get_signature_for_torch_op
monitor: Aggregation Event Stat TensorboardEventHandler _WaitCounter data_value_t
  log_event register_event_handler unregister_event_handler
nested._internal.nested_tensor: NestedTensor buffer_from_jagged jagged_from_list
  nested_view_from_values_offsets
nn.attention: SDPBackend WARN_FOR_UNFUSED_KERNELS _cur_sdpa_kernel_backends sdpa_kernel
nn.modules.transformer: _detect_is_causal_mask _generate_square_subsequent_mask
  _get_seq_len
nn.utils._expanded_weights: ExpandedWeight
nn.utils._expanded_weights.expanded_weights_utils: forward_helper
  set_grad_sample_if_exists standard_kwargs sum_over_all_but_batch_and_last_n
  unpack_expanded_weight_or_tensor
nn.utils._per_sample_grad: call_for_per_sample_grads
optim.lr_scheduler: _enable_get_lr_call
serialization: _package_registry
testing: FileCheck
testing._internal.common_cuda: IS_JETSON TEST_HIPSPARSE_GENERIC blas_library_context
  tf32_enabled
testing._internal.common_device_type: PYTORCH_TESTING_DEVICE_EXCEPT_FOR_KEY
  PYTORCH_TESTING_DEVICE_ONLY_FOR_KEY get_device_type_test_bases
testing._internal.common_jit: check_against_reference
testing._internal.common_methods_invocations: sparse_csr_unary_ufuncs
  sparse_masked_reduction_ops wrapper_set_seed
testing._internal.common_quantization: QuantizationTestCase
testing._internal.common_quantized: _calculate_dynamic_qparams override_qengines
  override_quantized_engine qengine_is_qnnpack supported_qengines
testing._internal.common_subclass: DiagTensorBelow LoggingTensor NonWrapperTensor
  SparseTensor SubclassInfo WrapperTensor subclass_db
testing._internal.common_utils: device_sleep isRocmArchAnyOf is_coalesced_indices
  retry_on_connect_failures to_gpu
testing._internal.composite_compliance: check_with_mode
testing._internal.custom_tensor: ConstantExtraMetadataTensor
testing._internal.hop_db: hop_db
testing._internal.inductor_utils: GPU_TYPE HAS_CPU HAS_GPU maybe_skip_size_asserts
testing._internal.jit_utils: JitTestCase
testing._internal.opinfo.definitions._masked: _generate_masked_op_mask
testing._internal.opinfo.definitions.sparse: validate_sample_input_sparse
testing._internal.opinfo.refs: ElementwiseBinaryPythonRefInfo ReductionPythonRefInfo
testing._internal.subclasses: WrapperSubclass
testing._internal.triton_utils: HAS_CUDA_AND_TRITON requires_cuda_and_triton
  requires_gpu
utils._pytree: KeyEntry
utils.data.backward_compatibility: worker_init_fn
utils.data.datapipes._typing: issubtype
utils.data.datapipes.dataframe: CaptureDataFrame DFIterDataPipe dataframe_wrapper
utils.data.datapipes.utils.common: validate_pathname_binary_tuple
utils.data.datapipes.utils.decoder: Decoder audiohandler basichandlers
  extension_extract_fn imagehandler mathandler videohandler
utils.data.datapipes.utils.snapshot: _simple_graph_snapshot_restoration
utils.mkldnn: to_mkldnn
_dynamo.eval_frame: is_dynamo_supported
_dynamo.test_case: TestCase run_tests
backends.cuda: SDPBackend sdp_kernel
fx.experimental.accelerator_partitioner: Partitioner
fx.experimental.const_fold: split_const_subgraphs
fx.experimental.graph_gradual_typechecker: GraphTypeChecker Refine broadcast_types
fx.experimental.meta_tracer: MetaTracer
fx.experimental.normalize: NormalizeArgs NormalizeOperators
fx.experimental.partitioner_utils: Device NodeLatency PartitionMode PartitionerConfig
  get_latency_of_partitioned_graph get_partition_to_latency_mapping
fx.experimental.refinement_types: Equality
fx.experimental.schema_type_annotation: AnnotateTypesWithSchema
fx.experimental.unify_refinements: infer_symbolic_types
fx.passes.annotate_getitem_nodes: annotate_getitem_nodes
fx.passes.dialect.common.cse_pass: CSEPass get_CSE_banned_ops
fx.passes.graph_transform_observer: GraphTransformObserver
fx.passes.infra.partitioner: CapabilityBasedPartitioner
fx.passes.infra.pass_manager: _topological_sort_passes
  this_before_that_pass_constraint
fx.passes.net_min_base: FxNetMinimizerResultMismatchError _MinimizerBase
  _MinimizerSettingBase
fx.passes.operator_support: OperatorSupport
fx.passes.param_fetch: lift_lowering_attrs_to_nodes
fx.passes.reinplace: reinplace
fx.passes.splitter_base: _SplitterBase
fx.passes.utils.matcher_with_name_node_map_utils: SubgraphMatcherWithNameNodeMap
fx.passes.utils.source_matcher_utils: check_subgraphs_connected get_source_partitions
testing._internal.autocast_test_lists: AutocastCPUTestLists TestAutocast
testing._internal.common_distributed: MultiProcessTestCase MultiThreadedTestCase
  create_tcp_store requires_gloo simple_sparse_reduce_tests skip_if_lt_x_gpu
  skip_if_win32 tp_transports verify_ddp_error_logged
testing._internal.common_quantization: skipIfNoDynamoSupport
testing._internal.common_utils: ADDRESS_IN_USE CONNECT_TIMEOUT FILE_SCHEMA
  find_free_port find_library_location
_dynamo.testing: EagerAndRecordGraphs normalize_gm
_higher_order_ops.associative_scan: _fake_associative_scan associative_scan
_higher_order_ops.map: _fake_map map
_higher_order_ops.scan: _fake_scan scan
_higher_order_ops.schema: HopSchemaGenerator
_higher_order_ops.while_loop: while_loop
_logging: getArtifactLogger set_logs warning_once
_subclasses.functional_tensor: CppFunctionalizeAPI FunctionalTensor
  FunctionalTensorMode PythonFunctionalizeAPI
functorch.experimental.control_flow: cond
masked.maskedtensor.binary: BINARY_NAMES NATIVE_BINARY_FNS NATIVE_INPLACE_BINARY_FNS
masked.maskedtensor.core: _masks_match _tensors_match
masked.maskedtensor.reductions: REDUCE_NAMES
masked.maskedtensor.unary: NATIVE_INPLACE_UNARY_FNS NATIVE_UNARY_FNS UNARY_NAMES
testing._internal.common_utils: NestedTensorTestCase requires_cuda
testing._internal.logging_utils: LoggingTestCase log_api logs_to_string
  make_logging_test multiple_logs_to_string
testing._internal.opinfo.core: SkipRule XFailRule sample_skips_and_xfails
testing._internal.opinfo.definitions.nested: _sample_njts njt_op_db
testing._internal.opinfo.definitions.linalg: sample_inputs_linalg_solve
"""


def heads(text=HEADS):
    """(module, names), a line or more for each."""
    joined = text.strip().replace("\n  ", " ")
    for line in joined.splitlines():
        module, _, names = line.partition(":")
        yield module, names.split()


def test_imported_by_test_files():
    missing = []
    for module, names in heads():
        outer = module.startswith("functorch")
        found = importlib.import_module(
            shim_name(module if outer else f"torch.{module}")
        )
        if _is_private(module if outer else f"torch.{module}"):
            missing.append(module)
        missing += [f"{module}.{n}" for n in names if not hasattr(found, n)]
    assert not missing
