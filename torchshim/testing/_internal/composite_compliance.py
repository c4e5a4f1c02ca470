"""`torch.testing._internal.composite_compliance`: needs `__torch_dispatch__`."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "CompositeCompliantTensorMode check_all_permutations check_backward_formula "
        "check_forward_ad_formula check_with_mode generate_cct_and_mode",
        "operators are not composed of others that could be looked at",
    )
)
