"""What operators of expanded weights are made of: there are none."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "forward_helper is_batch_first maybe_scale_by_batch_size "
        "set_grad_sample_if_exists standard_kwargs sum_over_all_but_batch_and_last_n "
        "unpack_expanded_weight_or_tensor",
        "call_for_per_sample_grads maps modules over their examples instead",
    )
)
