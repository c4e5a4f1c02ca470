"""How exactly products and convolutions of float32 are computed on accelerators.

PyTorch has two ways to say it: `set_float32_matmul_precision` and `allow_tf32`, and
`fp32_precision` for each backend and kind of operator; it refuses to answer the former
where the latter has said otherwise. What is in force is part of the mode in keys.
See https://docs.pytorch.org/docs/2.13/notes/cuda.html#tf32-on-ampere.
"""

from __future__ import annotations

from typing import NoReturn

_KINDS = {
    "generic": ("all",),
    "mkldnn": ("all", "matmul", "conv", "rnn"),
    "cuda": ("all", "matmul", "conv", "rnn"),
}
_ALLOWED = {
    "generic": ("ieee", "tf32", "bf16", "none"),
    "mkldnn": ("ieee", "tf32", "bf16", "none"),
    "cuda": ("ieee", "tf32", "none"),
}
_NOTE = (
    "We suggest only using the new API {0}. See also: https://pytorch.org/docs/main/"
    "notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
)


class Precision:
    """What a program chose, and what JAX is asked for."""

    def __init__(self) -> None:
        self.chosen = {(b, k): "none" for b, kinds in _KINDS.items() for k in kinds}
        # cuDNN may use TF32 by default.
        self.chosen["cuda", "conv"] = self.chosen["cuda", "rnn"] = "tf32"
        self.legacy = "highest"
        self.legacy_cudnn = True
        # A small number for what is in force; part of every operator's key.
        self.key = self._key()

    def get(self, backend: str, kind: str) -> str:
        """The precision of a kind of operator, by itself or by what stands above it."""
        for key in ((backend, kind), (backend, "all"), ("generic", "all")):
            found = self.chosen[key]
            if found != "none":
                return found
        return "none"

    def set(self, backend: str, kind: str, value: str) -> None:
        """Raises RuntimeError for a precision that there is not."""
        if value not in _ALLOWED["generic"]:
            raise RuntimeError(f"Unknown precision: {value}")
        if value not in _ALLOWED[backend]:
            raise RuntimeError(
                f"backend '{backend}' does not support precision '{value}'"
            )
        self.chosen[backend, kind] = value
        self.key = self._key()

    # The older way ------------------------------------------------------------

    def legacy_matmul(self) -> str:
        """highest, high or medium; RuntimeError where `fp32_precision` disagrees."""
        here, host = self.get("cuda", "matmul"), self.get("mkldnn", "matmul")
        if (
            (here == "tf32" and self.legacy == "highest")
            or (host == "bf16" and self.legacy != "medium")
            or (host == "tf32" and self.legacy != "high")
        ):
            _mixed(
                "checking the matmul precision without a specific backend name,Current "
                "status indicate that you have used mix of the legacy and new APIs to "
                "set the matmul precision.",
                "for matmul precision",
            )
        return self.legacy

    def set_legacy_matmul(self, value: str) -> None:
        """Sets highest, high or medium for all backends."""
        self.legacy = value
        exact = value == "highest"
        self.chosen["cuda", "matmul"] = "ieee" if exact else "tf32"
        self.chosen["mkldnn", "matmul"] = {
            "highest": "ieee",
            "high": "tf32",
            "medium": "bf16",
        }[value]
        self.key = self._key()

    def tf32_matmul(self) -> bool:
        """`backends.cuda.matmul.allow_tf32`."""
        allowed = self.legacy != "highest"
        if allowed != (self.get("cuda", "matmul") == "tf32"):
            _mixed(
                "checking whether allow_tf32_new is enabled for cuBlas matmul,Current "
                "status indicate that you have used mix of the legacy and new APIs to "
                "set the TF32 status for cublas matmul.",
                "to set the TF32 flag",
            )
        return allowed

    def set_tf32_matmul(self, allowed: bool) -> None:
        """Sets `backends.cuda.matmul.allow_tf32`."""
        self.legacy = "high" if allowed else "highest"
        self.chosen["cuda", "matmul"] = "tf32" if allowed else "ieee"
        self.key = self._key()

    def tf32_cudnn(self) -> bool:
        """`backends.cudnn.allow_tf32`."""
        conv, rnn = (self.get("cuda", k) == "tf32" for k in ("conv", "rnn"))
        if conv != rnn or conv != self.legacy_cudnn:
            _mixed(
                "checking whether allow_tf32 is enabled for cuDNN without a specific "
                "operator name,but the current flag(s) indicate that cuDNN conv and "
                "cuDNN RNN have different TF32 flags.This combination indicates that "
                "you have used a mix of the legacy and new APIs to set the TF32 flags.",
                "to set the TF32 flag(s)",
            )
        return self.legacy_cudnn

    def set_tf32_cudnn(self, allowed: bool) -> None:
        """Sets `backends.cudnn.allow_tf32`."""
        self.legacy_cudnn = allowed
        for kind in ("conv", "rnn"):
            self.chosen["cuda", kind] = "tf32" if allowed else "none"
        self.key = self._key()

    # What JAX is asked for ----------------------------------------------------

    @property
    def matmul(self) -> str:
        """JAX's precision of products."""
        if self.get("cuda", "matmul") != "tf32":
            return "highest"
        return "default" if self.legacy == "medium" else "high"

    @property
    def convolution(self) -> str:
        """JAX's precision of convolutions."""
        return "high" if self.get("cuda", "conv") == "tf32" else "highest"

    def _key(self) -> int:
        return ("highest", "high", "default").index(self.matmul) << 1 | (
            self.convolution == "highest"
        )


def _mixed(what: str, instead: str) -> NoReturn:
    raise RuntimeError(f"PyTorch is {what} {_NOTE.format(instead)}")


precision = Precision()
