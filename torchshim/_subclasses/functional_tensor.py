"""Tensors that stand for others while a program is made functional: there are none."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "BaseFunctionalizeAPI CppFunctionalizeAPI FunctionalTensor "
        "FunctionalTensorMode FunctorchFunctionalizeAPI PythonFunctionalizeAPI "
        "dispatch_functionalize",
        "recorded programs have no writes in them",
    )
)
