"""The body syntaxes by name. A new wire syntax is a new module here; a new model with a known one is a TOML file."""

from __future__ import annotations

from typing import Final

from . import (
    glm_line,
    json_arguments,
    json_call,
    key_lines,
    keyed_call,
    loose_object,
    nested,
    pairs,
    pformat,
    python_call,
    tags,
    text,
    typed_values,
)
from .base import Body

BODIES: Final[dict[str, Body]] = {
    module.BODY.name: module.BODY
    for module in (
        json_call,
        json_arguments,
        keyed_call,
        tags,
        nested,
        typed_values,
        pairs,
        python_call,
        pformat,
        loose_object,
        glm_line,
        key_lines,
        text,
    )
}
