"""Response templates as tokenizers carry them: read into the content of a grammar file, and written from one."""

from __future__ import annotations

from .owners import Owners
from .patterns import Unfit
from .reader import compile_template
from .writer import write_template

__all__ = ["Owners", "Unfit", "compile_template", "write_template"]
