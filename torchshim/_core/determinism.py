"""Whether programs ask for deterministic algorithms, and what PyTorch says then.

All programs of XLA on CPUs are deterministic. What has no deterministic implementation
in PyTorch raises here, too, so that a program that runs here runs there.
"""

from __future__ import annotations

from torchshim._errors import warn


class Determinism:
    """What `use_deterministic_algorithms` and `torch.utils.deterministic` set."""

    on = False
    warn_only = False
    # Whether memory is filled then that a program has not chosen values for.
    fill = True

    @property
    def fills(self) -> bool:
        """Whether memory is to be filled with values that show."""
        return self.on and self.fill

    @property
    def key(self) -> int:
        """Its part of the mode in keys."""
        return 1 + self.warn_only if self.on else 0

    def alert(self, caller: str) -> None:
        """PyTorch's error, or warning, for what is not deterministic there."""
        if not self.on:
            return
        said = f"{caller} does not have a deterministic implementation, but you set "
        report = (
            "file an issue at https://github.com/pytorch/pytorch/issues to help us "
            "prioritize adding deterministic support for this operation."
        )
        if self.warn_only:
            warn(
                f"{said}'torch.use_deterministic_algorithms(True, warn_only=True)'. "
                f"You can {report} (Triggered internally at "
                "/__w/pytorch/pytorch/aten/src/ATen/Context.cpp:186.)"
            )
            return
        raise RuntimeError(
            f"{said}'torch.use_deterministic_algorithms(True)'. You can turn off "
            "determinism just for this operation, or you can use the 'warn_only=True' "
            "option, if that's acceptable for your application. You can also "
            f"{report}"
        )


determinism = Determinism()
