"""One object for one way of speaking tools: what it teaches, writes, replays and reads cannot disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ..grammar import Grammar, shipped
from . import history, messages, prompts
from .forms import Form
from .records import entries_of


class Dialect(Form):
    """A dialect, made from a table of a grammar file. There is one object for each: see ``dialect`` and ``select``."""

    def __repr__(self) -> str:
        return f"Dialect({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.grammar if self._own else self.grammar.name, self.name, self.is_exact)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return str(self.table.get("title", ""))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of it."""
        return tuple(self.table.get("aliases", ()))

    @property
    def models(self) -> tuple[str, ...]:
        """Globs of the ids of the models that were trained in it."""
        return tuple(self.table.get("models", ()))

    @property
    def has_exact(self) -> bool:
        """True if the bytes of the chat template of its models are known."""
        return "exact" in self.table

    @property
    def is_exact(self) -> bool:
        """True if it writes the bytes of that template."""
        return self.table.get("is_exact") is True

    def exact(self) -> Dialect:
        """The same dialect with the bytes of the chat template of its models.

        The difference is in blanks and in what stands around turns; replies are read alike. A server that renders the
        conversation itself then finds the same text in its cache. Raises ``ValueError`` where the bytes are not known.

        >>> from streamscrub.dialects import dialect
        >>> '{"days": 1}' in dialect("kimi").exact().render_calls([("get_tide", {"days": 1})])
        True
        """
        return self if self.is_exact else _exact(self)

    @property
    def should_send_specs(self) -> bool:
        """True if the request carries the schemas in its field ``tools``."""
        return not self.writes

    @property
    def embeds_catalogue(self) -> bool:
        """True if the tools stand in the dialect's own block, False if they have a section of their own, or none."""
        return self.writes and not self.table.get("section", False)

    @property
    def call_format(self) -> str:
        """A word for the syntax of a call."""
        return str(self.table.get("format", self.name))

    # -- teaching

    def catalogue(self, tools: Iterable[Any], style: str | None = None) -> str:
        """The tools alone: see ``prompts.render_catalogue``."""
        return prompts.render_catalogue(self, tools, style)

    def example(self, tools: Iterable[Any], *, several: bool = False) -> str:
        """A call, or two, of the offered tools that fits their schemas and that the dialect reads back."""
        return prompts.example_call(self, tools, several)

    def prompt(self, tools: Iterable[Any]) -> str:
        """The block for the system prompt: see ``prompts.render_prompt``."""
        return prompts.render_prompt(self, tools)

    def prepare(
        self,
        conversation: Iterable[Mapping[str, Any]],
        tools: Iterable[Any] | None,
        tool_choice: Any = "auto",
        *,
        host_renders_tool_catalogue: bool = False,
        synthesized: Iterable[Any] = (),
    ) -> prompts.Prepared:
        """The request as it goes out: see ``prompts.prepare``."""
        return prompts.prepare(
            self,
            conversation,
            tools,
            tool_choice,
            host_renders_tool_catalogue=host_renders_tool_catalogue,
            synthesized=synthesized,
        )

    # -- history

    def encode(self, conversation: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
        """Calls and results as text: see ``history.encode``; records of the provider in the native dialect."""
        if not self.writes:
            return self.replay(conversation)
        return history.encode(self, conversation, tools)

    def fold(self, conversation: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
        """The same with a query of the user: see ``history.fold``."""
        if not self.writes:
            return self.replay(conversation)
        return history.fold(self, conversation, tools)

    def replay(self, entries: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
        """The messages of a transcript: see ``history.replay``; the native dialect pairs cycles and sends records."""
        if not self.writes:
            return history.wire(history.pair_tool_cycles(entries_of(entries)))
        return history.replay(self, entries, tools)

    def transcript(
        self, conversation: Iterable[Any], tools: Iterable[Any] | None = None, *, add_generation_prompt: bool = False
    ) -> str:
        """One string in the template of its models: see ``history.transcript``."""
        return history.transcript(self, conversation, tools, add_generation_prompt=add_generation_prompt)

    # -- reading

    def read_message(
        self, message: Mapping[str, Any], tools: Iterable[Any] | None, *, ids: Iterator[str], **options: Any
    ) -> tuple[Mapping[str, Any], list[Any]]:
        """A reply with the calls out of its text: see ``messages.parse_assistant_message``."""
        options = {"guided": self.writes, **self._reading, **options}
        return messages.parse_assistant_message(message, tools, ids=ids, **options)


@cache
def _exact(one: Dialect) -> Dialect:
    if not one.has_exact:
        raise ValueError(f"{one.name} follows no chat template whose bytes are known")
    base = {key: value for key, value in one.table.items() if key not in ("exact", "transcript")}
    return Dialect(one.grammar, {**base, **one.table["exact"], "is_exact": True})


def _again(grammar: str | Grammar, name: str, exact: bool) -> Dialect:
    file = shipped()[grammar] if isinstance(grammar, str) else grammar
    one = Dialect(file, next(table for table in file.data["dialect"] if table["name"] == name))
    return one.exact() if exact else one
