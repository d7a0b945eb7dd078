"""Model ids as providers, converters and local registries write them, brought to what a pattern may match."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 256  # characters; what is longer is no id, and is not taken apart
# What providers and converters add behind an id. None of it changes what the model writes.
_OFFERS: Final = re.compile(r":(?:free|beta|nitro|floor|online|extended|thinking|exacto|latest|cloud)\Z")
_FILES: Final = re.compile(r"\.(?:gguf|safetensors|bin|onnx)\Z|-\d{5}-of-\d{5}\Z")
_WEIGHTS: Final = re.compile(
    r"[-_.:](?:gguf|ggml|awq|gptq|exl[23]|mlx|marlin|onnx|openvino|bnb|autoround|ud|imat|i1|dynamic|quantized|quant"
    r"|(?:nv|mx)?fp(?:4|8|16|32)(?:-dynamic)?|bf16|int[48]|w\d{1,2}a\d{1,2}|\d(?:\.\d{1,2})?-?(?:bit|bpw)|4bit-dwq|dwq"
    # A bare `q1` is part of a name.
    r"|(?:iq|q)[1-8](?:_[0-9a-z]{1,3}){1,3}|q[2-8])\Z"
)
# `us.anthropic.claude-…` and `Qwen_Qwen3-32B`: words before the id itself.
_DOTTED: Final = re.compile(r"\A(?:(?:[a-z-]{2,16}\.){1,3}|[a-z-]{2,24}_)(?=[a-z])")
# `glm-4p5`: a point that could not stand in a name.
_POINT: Final = re.compile(r"(?<=\d)p(?=\d)")


def spellings(model: str) -> tuple[str, ...]:
    """All that a pattern may match: the id without what was added behind it, then without what stands before it.

    >>> spellings("OpenRouter/Anthropic/Claude-3.7:free")
    ('openrouter/anthropic/claude-3.7', 'anthropic/claude-3.7', 'claude-3.7')
    """
    if len(model) > _LONGEST:
        return (model.lower(),)
    plain = _without_suffixes(model.strip().lower().replace("\\", "/").strip("/"))
    parts = plain.split("/")
    found = ["/".join(parts[start:]) for start in range(len(parts))]
    bare = _DOTTED.sub("", found[-1])
    return tuple(dict.fromkeys(word for one in (*found, bare) for word in _written(one) if word))


def _written(name: str) -> tuple[str, str, str]:
    """``name`` as it is, and with what stands for a dash or a point where such characters are not allowed."""
    # The tag of a local registry: `qwen3:8b` is the model that others call `qwen3-8b`.
    tagged = name.replace(":", "-")
    return name, tagged, _POINT.sub(".", tagged.replace("_", "-"))


def _without_suffixes(model: str) -> str:
    while True:
        shorter = model
        for pattern in (_OFFERS, _FILES, _WEIGHTS):
            shorter = pattern.sub("", shorter)
        if shorter == model or not shorter:
            return model
        model = shorter
