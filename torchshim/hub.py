"""Models and files from the network: `torch.hub`.

https://docs.pytorch.org/docs/2.13/hub.html. Downloading files and loading local
repositories works as in PyTorch; repositories on GitHub are refused.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import torchshim
from torchshim import _warnings as warnings

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch")
_TRUSTED_REPO_OWNERS += ("fairinternal",)
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
READ_DATA_CHUNK = 128 * 1024

_hub_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Where downloads are kept: ``$TORCH_HOME/hub``, or what `set_dir` set."""
    if os.getenv("TORCH_HUB"):
        warnings.warn(
            "TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2
        )
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets where downloads are kept."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# Files --------------------------------------------------------------------------


class _Faketqdm:
    """A share of a whole on stderr; what of `tqdm` is used where that is missing."""

    def __init__(
        self,
        total: float | None = None,
        disable: bool = False,
        unit: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0.0

    def update(self, n: float) -> None:
        if self.disable:
            return
        self.n += n
        shown = f"{self.n:.1f} bytes"
        if self.total is not None:
            shown = f"{100 * self.n / self.total:.1f}%"
        sys.stderr.write(f"\r{shown}")
        sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Descriptions are not shown."""

    def write(self, s: str) -> None:
        sys.stderr.write(f"{s}\n")

    def close(self) -> None:
        self.disable = True

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.disable:
            sys.stderr.write("\n")


try:
    from tqdm import tqdm  # type: ignore[import-untyped]
except ImportError:
    tqdm = _Faketqdm


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Downloads a file, whole or not at all.

    RuntimeError if its SHA-256 does not begin with `hash_prefix`. `progress`
    shows a bar.
    """
    request = Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    sha256 = hashlib.sha256()
    # (Not a temporary file, which nobody else may read.)
    part = f"{dst}.{uuid.uuid4().hex}.partial"
    try:
        with open(part, "xb") as file, urlopen(request) as response:
            size = response.info().get("Content-Length")
            with tqdm(
                total=None if size is None else int(size),
                disable=not progress,
                unit="B",
                unit_scale=True,
                unit_divisor=1024,
            ) as bar:
                while chunk := response.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    sha256.update(chunk)
                    bar.update(len(chunk))
        digest = sha256.hexdigest()
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest}")'
            )
        shutil.move(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What `torch.load` reads from a file that is downloaded once.

    https://docs.pytorch.org/docs/2.13/hub.html#torch.hub.load_state_dict_from_url
    """
    if model_dir is None:
        model_dir = os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    cached = os.path.join(model_dir, name)
    if not os.path.exists(cached):
        sys.stdout.write(f'Downloading: "{url}" to {cached}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, found.group(1) if found else None, progress)
    if _is_legacy_zip_format(cached):
        cached = _extracted(cached, model_dir)
    return torchshim.load(cached, map_location=map_location, weights_only=weights_only)


def _is_legacy_zip_format(path: str) -> bool:
    """Whether a file is a zip of one checkpoint, rather than a checkpoint."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = [i for i in archive.infolist() if not i.is_dir()]
    return len(names) == 1


def _extracted(path: str, folder: str) -> str:
    with zipfile.ZipFile(path) as archive:
        (member,) = [i for i in archive.infolist() if not i.is_dir()]
        # By its name alone, so that nothing is written outside the folder.
        target = os.path.join(folder, os.path.basename(member.filename))
        with archive.open(member) as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
    return target


# Repositories -------------------------------------------------------------------


def _github(repo: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.hub: {repo!r} would run code from GitHub that was written against "
        "PyTorch's own modules; clone it and use source='local'"
    )


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, repository and branch of "owner/repository:branch".

    Without a branch it would be asked for on GitHub, which is refused.
    """
    if ":" not in github:
        _github(github)
    repo, ref = github.split(":")
    owner, name = repo.split("/")
    return owner, name, ref


def _check_source(source: str) -> str:
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(
            f'Unknown source: "{source}". Allowed values: "github" | "local".'
        )
    return source


def _hubconf(folder: str) -> Any:
    path = Path(folder) / MODULE_HUBCONF
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot read {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _check_module_exists(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _check_dependencies(m: Any) -> None:
    named = getattr(m, VAR_DEPENDENCY, None) or []
    missing = [name for name in named if not _check_module_exists(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _load_entry_from_hubconf(m: Any, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(m)
    found = getattr(m, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the entry point `model` of a repository's hubconf.py gives.

    https://docs.pytorch.org/docs/2.13/hub.html#torch.hub.load. `source="local"` names a
    folder; NotImplementedError for GitHub.
    """
    if _check_source(source) == "github":
        _github(repo_or_dir)
    entry = _load_entry_from_hubconf(_hubconf(str(repo_or_dir)), model)
    return entry(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """Refused: it would run code from GitHub."""
    _github(github)


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> Any:
    """Refused: it would run code from GitHub."""
    _github(github)
