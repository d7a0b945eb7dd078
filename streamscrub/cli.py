"""The command line: thin verbs around the library.

Standard output carries text or one result, and nothing else; what is told beside it goes to standard error. Exit codes:
0, 1 a check failed or a file could not be written, 2 wrong use, 70 a defect, 130 interrupted, 141 a pipe's reader left.
(Longer than other modules: ten verbs of a screen each, which share their options and nothing that others need.)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import SequenceMatcher, get_close_matches
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final, NoReturn
from unicodedata import combining, east_asian_width

import streamscrub

from .console import PARTS
from .console import Usage as _Usage
from .console import out as _out
from .console import plain as _plain
from .console import say as _say
from .console import short as _short
from .console import stdin as _stdin
from .console import told as _told
from .endings import CUT, ORDINARY, plain_reason
from .events import Dropped, Event, Reasoning, RejectedCall, Scrubbed, Text, ToolCall
from .grammar import Grammar, GrammarError, find, folder, shipped
from .host.policies import gave_up
from .host.reply import reply_of
from .host.tally import counts_of
from .models import explain
from .pages import format_section, formats_page
from .records import to_record
from .scrubber import StreamScrubber
from .tools import read_tools

MARK: Final = "↺"
_PIECE: Final = 1 << 16  # bytes of one read; a read returns what is there and never waits for more
_CALLS_FD: Final = 3
_SECONDS: Final = 8.5  # of the demo at speed 1
_WIRE: Final = "What the model wrote, and what each stretch is:"
_LEFT: Final = (
    "The same, delta by delta. Left, a chat UI that strips tags by regex from the text so far and appends what is new: "
    "it shows half a tag before the regex can match, and once a match makes the text shorter, it skips words that were "
    "not shown yet. Right, streamscrub."
)
_CUTS: Final = (1, 2, 3, 4, 5, 7)  # characters of the equal pieces in which `check` feeds an example
# Two numbers of an indented list; no string of JSON holds a newline.
_SPAN: Final = re.compile(r"(?<=\"span\": )\[\s++(\d++),\s++(\d++)\s++\]")
# Ways to end that are no ordinary ends, and no spelling mistakes of one.
_OTHER_ENDS: Final = frozenset(
    (
        "content_filter",
        "safety",
        "recitation",
        "refusal",
        "error",
        "abort",
        "aborted",
        "cancelled",
        "timeout",
        "unknown",
    )
)
_COLORS: Final = {
    "text": "", "reasoning": "2", "markup": "36", "call": "32", "repaired": "33", "rejected": "31",
    "dim": "2", "bold": "1",
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    _mixing = False

    def error(self, message: str) -> NoReturn:
        raise _Usage(f"{self.prog}: {message}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Files may stand before, between and behind the options of a verb."""
        if self._mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    try:
        args = _parser().parse_args(argv)
        code: int = args.run(args)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    except _Usage as error:
        _say(sys.stderr, f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _hush()
        return 141
    except OSError as error:
        _hush()
        _say(sys.stderr, f"streamscrub: {error.filename or 'the output'}: {error.strerror}\n")
        return 1
    except Exception as error:  # a defect of the library: whoever pipes a model through it gets a line, no traceback
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        _say(sys.stderr, f"streamscrub: internal error at {where}, please report it: {_short(repr(error))}\n")
        return 70
    return code


def _parser() -> _Parser:
    parser = _Parser(prog="streamscrub", description=streamscrub.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"streamscrub {streamscrub.__version__}")
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="{scrub,parse,explain,grammars,check,render,convert,replay,tally,demo}"
    )
    reads = _reading_options()

    def verb(name: str, run: Callable[[argparse.Namespace], int], text: str, *parents: _Parser) -> _Parser:
        made = verbs.add_parser(name, help=text, description=text, parents=list(parents), allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    one = verb("scrub", _scrub, "pipe filter: visible text to stdout as it arrives", reads)
    one.add_argument("--calls", metavar="FILE", help="write calls as JSON lines to FILE (default: fd 3 if it is open)")
    one.add_argument("--show-reasoning", action="store_true", help="write reasoning to stderr as it arrives")
    one = verb("parse", _parse, "read a whole response: one JSON result", reads)
    one.add_argument(
        "--blocks", "--raw", action="store_true", help="no JSON: each block as the model wrote it, and its call"
    )
    one = verb("explain", _explain, "show the wire text with what each stretch of it is", reads)
    one.add_argument("--chunk", type=_count, metavar="N", help="feed N characters at a time, a line for each")
    one.add_argument("--no-color", action="store_true", help="no colours (as NO_COLOR or no terminal)")
    one = verb("grammars", _grammars, "list the grammars, show one, or explain the choice for a model")
    one.add_argument("name", nargs="?", metavar="NAME", help="show the file of this grammar")
    one.add_argument("--model", metavar="ID", help="say which grammars a model id stands for, and why")
    one.add_argument("--markdown", action="store_true", help="the page of all formats, or the section of one")
    one = verb("check", _check, "run the worked examples of all grammars, or of the given files, at every cut")
    one.add_argument(
        "files", nargs="*", metavar="FILE.toml", help="grammar files or tokenizer_config.json, or names of shipped ones"
    )
    one.add_argument("--all", action="store_true", help="every failure, not the first of each grammar")
    one = verb("render", _render, "write what a dialect makes of tools, calls, results or a conversation")
    one.add_argument("part", choices=PARTS, help="what to write")
    _add_dialect_options(one, "JSON of what is written, or the text of a thought ('-' or missing: stdin)")
    one.add_argument("--dialect", metavar="NAME", help="the dialect (default: the one of --model)")
    one.add_argument("--model", metavar="ID", help="the model whose dialect it is, where none is named")
    one.add_argument("--exact", action="store_true", help="in the bytes of the models' own chat template")
    one.add_argument(
        "--add-generation-prompt", action="store_true", help="end a transcript with the prompt for the model's turn"
    )
    one = verb("convert", _convert, "read a reply in one dialect, or in any, and write it in another")
    _add_dialect_options(one, "what the model wrote ('-' or missing: stdin)")
    one.add_argument("--from", metavar="NAME", dest="source", help="dialect or grammar to read (default: any)")
    one.add_argument("--to", metavar="NAME", dest="target", required=True, help="dialect or grammar to write")
    one.add_argument("--finish-reason", metavar="WORD", default="stop", help="how the reply ended (default: stop)")
    one = verb("replay", _replay_saved, "read saved responses again and say what no longer resolves, or changed")
    one.add_argument("files", nargs="+", metavar="SESSION", help="our records, chat logs (JSON, JSON lines), or text")
    one.add_argument("--baseline", metavar="OLD", help="records of an older replay to compare with")
    one.add_argument("--record", metavar="FILE", help="write what is read now as records, the next baseline")
    one.add_argument("--save-case", metavar="FILE", help="write a case line for each response that differs")
    _add_counting_options(one)
    one.add_argument("--jobs", type=_count, metavar="N", help="processes (default: all for long input, else one)")
    one = verb("tally", _tally, "count by model: calls, repaired, rejected, given up, leaked")
    one.add_argument("logs", nargs="*", metavar="LOG", help="our records, chat logs (JSON, JSON lines), or text")
    one.add_argument("--db", metavar="FILE", help="SQLite file to add to and to show; a log is counted once")
    _add_counting_options(one)
    one = verb("demo", _demo, "replay a damaged stream beside what a regex would have shown")
    one.add_argument("--fast", action="store_true", help="without delays (STREAMSCRUB_DEMO_SPEED=2: twice as fast)")
    one.add_argument("--no-color", action="store_true", help="no colours (as NO_COLOR or no terminal)")
    return parser


def _reading_options() -> _Parser:
    parser = _Parser(add_help=False)
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="what the model wrote ('-' or missing: stdin)")
    add("--tools", metavar="FILE", help="JSON of the offered tools in any shape, or a request body with 'tools'")
    add(
        "--model",
        metavar="ID",
        help="model id: its own readings go first; may start in reasoning, see 'grammars --model ID'",
    )
    add(
        "--grammar",
        metavar="NAME",
        action="append",
        dest="grammars",
        help="only this grammar (repeatable), FILE.toml or tokenizer_config.json",
    )
    add("--reasoning", choices=("auto", "open", "off"), default="auto", help="open: the prompt opened a section")
    add("--prefill", metavar="TEXT", default="", help="tail of the prompt that belongs to the assistant's turn")
    add("--finish-reason", metavar="WORD", default="stop", help="how the stream ended (default: stop; cut: length)")
    add("--on-fabricated", choices=("drop", "cut", "keep"), default="drop", help="results that the model made up")
    add("--no-recover", action="store_true", help="reject every call as withheld")
    add("--strict", action="store_true", help="reject every call that needs a repair")
    return parser


def _add_counting_options(parser: _Parser) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="one JSON object instead of rows")
    add("--tools", metavar="FILE", help="the offered tools, where the session does not say")
    add("--model", metavar="ID", help="the model, where the session does not say")
    add("--grammar", metavar="NAME", action="append", dest="grammars", help="only this grammar, or FILE.toml")


def _add_dialect_options(parser: _Parser, what: str) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help=what)
    parser.add_argument("--tools", metavar="FILE", help="JSON of the offered tools in any shape")


def _count(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise argparse.ArgumentTypeError(f"{word!r} is no number above 0")
    return int(word)


# -- input and output


def _hush() -> None:
    """Nobody reads standard output any more; without this the interpreter complains about the rest at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _chunks(path: str) -> Iterator[bytes]:
    """The bytes of a file or of standard input, each as soon as it is there."""
    if path != "-":
        try:
            with open(path, "rb") as file:
                while data := file.read1(_PIECE):
                    yield data
        except OSError as error:
            raise _Usage(f"streamscrub: cannot read {path}: {error.strerror}") from None
        return
    buffer = _stdin()
    while data := buffer.read1(_PIECE):
        yield data


def _read_tools(args: argparse.Namespace) -> Any:
    """The records in a tools file: a list, one record, or what stands under ``tools`` or ``functions`` of a body."""
    if args.tools is None:
        return None
    if args.tools == args.file == "-":
        raise _Usage("streamscrub: --tools and the text cannot both be read from stdin")
    try:
        found = json.loads(b"".join(_chunks(args.tools)).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _Usage(f"streamscrub: {args.tools} is no JSON: {error}") from None
    if isinstance(found, dict) and isinstance(found.get("result"), dict):
        found = found["result"]
    if isinstance(found, dict):
        found = next((found[key] for key in ("tools", "functions") if key in found), [found])
    if found is not None and not isinstance(found, list):
        raise _Usage(f"streamscrub: {args.tools} holds no list of tools")
    try:
        read_tools(found)
    except (TypeError, ValueError) as error:
        raise _Usage(f"streamscrub: {args.tools}: {_short(str(error))}") from None
    return found


def _finish_reason(args: argparse.Namespace) -> str:
    """The word that was given. One that nobody knows is read as a cut, which is said."""
    word = plain_reason(args.finish_reason)
    if word not in ORDINARY | CUT | _OTHER_ENDS:
        near = get_close_matches(word, sorted(ORDINARY | CUT), 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        _say(sys.stderr, f"streamscrub: no known finish reason: {_short(word)!r}, read as a cut{hint}\n")
    return str(args.finish_reason)


def _scrubber(args: argparse.Namespace) -> StreamScrubber:
    tools = _read_tools(args)
    try:
        return StreamScrubber(
            tools,
            grammars=args.grammars,
            model=args.model,
            reasoning=args.reasoning,
            prefill=args.prefill,
            recover=not args.no_recover,
            on_fabricated=args.on_fabricated,
            strict=args.strict,
        )
    except (TypeError, ValueError) as error:
        raise _Usage(f"streamscrub: {error}") from None


def _raw(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _remark(event: ToolCall | RejectedCall) -> str:
    if isinstance(event, RejectedCall):
        return (
            f"{MARK} rejected {_short(event.name or 'a call without a name')}: {event.reason}, {_short(event.detail)}"
        )
    return f"{MARK} repaired {_short(event.name)} [{event.strategy}]: {_told(event.repairs)}"


# -- scrub


def _scrub(args: argparse.Namespace) -> int:
    scrubber, finish = _scrubber(args), _finish_reason(args)
    sink = _calls_sink(args.calls)  # before a file is opened for reading, which could be given the number 3
    told = _Told(sink, args.show_reasoning)
    try:
        for chunk in _chunks(args.file):
            told.pass_on(scrubber.feed(chunk))
        told.pass_on(scrubber.finish(finish))
    finally:
        if args.calls and sink is not None:
            with suppress(BrokenPipeError):
                sink.close()
    if told.untold:
        calls = f"{told.untold} call{'s' * (told.untold > 1)}"
        told.remark(f"streamscrub: {calls} read and not written (--calls FILE, or 3>FILE)")
    return 0


class _Told:
    """Where the events go: text to stdout, calls to ``sink``, reasoning and remarks to stderr."""

    def __init__(self, sink: IO[bytes] | None, reasoning: bool) -> None:
        self.untold = 0  # calls that went nowhere
        self._sink = sink
        self._reasoning = reasoning
        self._open = False  # stderr stands in a line of reasoning

    def pass_on(self, events: list[Event]) -> None:
        """Write each event where it belongs, at once."""
        for event in events:
            if isinstance(event, Text):
                _out(event.text)
            elif isinstance(event, Reasoning) and self._reasoning:
                _say(sys.stderr, event.text)
                self._open = not event.text.endswith("\n") if event.text else self._open
            elif isinstance(event, ToolCall | RejectedCall):
                if self._sink is None:
                    self.untold += isinstance(event, ToolCall)
                else:
                    line = json.dumps(to_record(event), ensure_ascii=False)
                    self._sink.write(line.encode("utf-8", "replace") + b"\n")
                    self._sink.flush()
                if isinstance(event, RejectedCall) or event.repairs:
                    self.remark(_remark(event))

    def remark(self, line: str) -> None:
        """Write a line of its own to stderr."""
        _say(sys.stderr, "\n" * self._open + line + "\n")
        self._open = False


def _calls_sink(path: str | None) -> IO[bytes] | None:
    if path == "-":
        raise _Usage("streamscrub: --calls needs a file of its own; stdout carries the text")
    if path:
        try:
            return open(path, "wb")
        except OSError as error:
            raise _Usage(f"streamscrub: cannot write {path}: {error.strerror}") from None
    return os.fdopen(_CALLS_FD, "wb", closefd=False) if _is_given(_CALLS_FD) else None


def _is_given(number: int) -> bool:
    """Was this descriptor opened for us? What Python opens itself is not inheritable; make's job server is no file."""
    try:
        import fcntl

        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except (ImportError, OSError):
        return False
    jobs = re.search(r"--jobserver-(?:auth|fds)=(\d++),(\d++)", os.environ.get("MAKEFLAGS", ""))
    return mode != os.O_RDONLY and os.get_inheritable(number) and not (jobs and str(number) in jobs.groups())


# -- parse


def _parse(args: argparse.Namespace) -> int:
    scrubber, finish = _scrubber(args), _finish_reason(args)
    events = [event for chunk in _chunks(args.file) for event in scrubber.feed(chunk)]
    result = Scrubbed(_merged([*events, *scrubber.finish(finish)]))
    if args.blocks:
        for event in result.events:
            if isinstance(event, ToolCall | RejectedCall):
                _out(_beside(event))
        return 0
    counts = counts_of(result.events, gave_up(reply_of(result.events, finish)))
    shown = {
        "text": result.text,
        "reasoning": result.reasoning,
        "calls": [to_record(call) for call in result.calls],
        "rejected": [to_record(call) for call in result.rejected],
        "dropped": [to_record(one) for one in result.dropped],
        "counts": {
            "tool_calls": counts.calls,
            "repaired": counts.repaired,
            "parse_failures": counts.failures,
            "gave_up": counts.given_up,
        },
    }
    _out(_SPAN.sub(r"[\1, \2]", json.dumps(shown, ensure_ascii=False, indent=2)) + "\n")
    return 0


def _beside(event: ToolCall | RejectedCall) -> str:
    """The block exactly as it was written, then what was read out of it."""
    start, end = event.span
    head = f"--- call {event.number}, bytes {start} to {end}, {event.grammar or 'no grammar'}\n"
    if isinstance(event, ToolCall):
        read = f"=> {event.name} {json.dumps(event.arguments, ensure_ascii=False)}\n"
    else:
        read = ""
    remark = _remark(event) + "\n" if isinstance(event, RejectedCall) or event.repairs else ""
    return f"{head}{_raw(event.raw)}\n{read}{remark}"


def _merged(events: Iterable[Event]) -> list[Event]:
    """Adjacent text, reasoning and markup of one kind joined, as they were not cut by the reads."""
    out: list[Event] = []
    for (kind, _), group in groupby(events, lambda event: (type(event), getattr(event, "kind", ""))):
        run: list[Any] = list(group)
        span = (run[0].span[0], run[-1].span[1])
        if kind is Dropped:
            out.append(Dropped(b"".join(one.raw for one in run), run[0].kind, span))
        elif kind in (Text, Reasoning):
            out.append(kind("".join(one.text for one in run), span))
        else:
            out += run
    return out


# -- explain


class _Paint:
    """Colours where they are wanted."""

    def __init__(self, refused: bool) -> None:
        tty = sys.stdout is not None and sys.stdout.isatty()
        self.on = tty and not refused and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __call__(self, kind: str, text: str) -> str:
        code = _COLORS[kind]
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and code and text else text


def _kind_of(event: Event) -> str:
    if isinstance(event, ToolCall):
        return "repaired" if event.repairs else "call"
    names = {Text: "text", Reasoning: "reasoning", Dropped: "markup", RejectedCall: "rejected"}
    return names[type(event)]


def _explain(args: argparse.Namespace) -> int:
    paint = _Paint(args.no_color)
    scrubber, finish = _scrubber(args), _finish_reason(args)
    wire = b"".join(_chunks(args.file))
    if args.chunk:
        _explain_chunks(scrubber, wire, args.chunk, finish, paint)
        return 0
    events = _merged([*scrubber.feed(wire), *scrubber.finish(finish)])
    digits = max(4, len(str(len(wire))))
    margin = 2 * digits + 14
    width = max(24, _columns() - margin)
    for event in events:
        kind = _kind_of(event)
        start, end = event.span
        rows = [row for line in _lines(_raw(wire[start:end])) for row in _wrapped(line, width)]
        label = f"{start:>{digits}} {end:>{digits}}  {kind:<10} "
        _say(sys.stdout, paint("dim", label) + paint(kind, rows[0]) + "\n")
        for row in [paint(kind, row) for row in rows[1:]] + [paint("dim", row) for row in _details(event)]:
            _say(sys.stdout, " " * margin + row + "\n")
    return 0


def _columns() -> int:
    return min(max(shutil.get_terminal_size((80, 24)).columns, 40), 160)


def _lines(text: str) -> list[str]:
    """The lines of ``text``, with their ends visible."""
    lines = [_plain(line.removesuffix("\r")) + ("\\r" if line.endswith("\r") else "") for line in text.split("\n")]
    marked = [line + "⏎" for line in lines[:-1]] + lines[-1:]
    return [line for line in marked if line] or [""]


def _details(event: Event) -> list[str]:
    if isinstance(event, ToolCall):
        read = f"= {_short(event.name)} {_short(event.arguments)}"
        return [read, f"{MARK} {_told(event.repairs)} [{event.strategy}]"] if event.repairs else [read]
    if isinstance(event, RejectedCall):
        return [f"= {event.reason}: {_short(event.detail)}"]
    return [f"= {event.kind}"] if isinstance(event, Dropped) else []


def _explain_chunks(scrubber: StreamScrubber, wire: bytes, size: int, finish: str, paint: _Paint) -> None:
    try:
        whole: str | bytes = wire.decode()
    except UnicodeDecodeError:
        whole = wire
    count = 0
    for count, at in enumerate(range(0, len(whole), size), 1):
        piece = whole[at : at + size]
        _tell_chunk(str(count), piece, scrubber.feed(piece), scrubber.held, paint)
    _tell_chunk("end", finish, scrubber.finish(finish), scrubber.held, paint)


def _tell_chunk(label: str, piece: str | bytes, events: list[Event], held: bytes, paint: _Paint) -> None:
    shown = _short(piece if isinstance(piece, str) else _raw(piece), 32)
    told = ", ".join(paint(_kind_of(event), _summary(event)) for event in _merged(events)) or paint("dim", "-")
    tail = f"   held {len(held)}: {'…' * (len(held) > 24)}{_short(_raw(held[-24:]))}" if held else ""
    _say(sys.stdout, f"{label:>5} {paint('dim', '|' + shown + '|')} {told}{paint('dim', tail)}\n")


def _summary(event: Event) -> str:
    if isinstance(event, Text | Reasoning):
        return f"{_kind_of(event)} |{_short(event.text)}|"
    if isinstance(event, ToolCall):
        mark = f" {MARK} {_told(event.repairs)}" if event.repairs else ""
        return f"call {_short(event.name)} {_short(event.arguments)}{mark}"
    if isinstance(event, RejectedCall):
        return f"rejected {_short(event.name or '')} {event.reason}"
    return f"markup {event.kind}" if isinstance(event, Dropped) else type(event).__name__


# -- grammars


def _grammars(args: argparse.Namespace) -> int:
    if args.model is not None:
        if args.name is not None or args.markdown:
            other = "--markdown" if args.markdown else "a name"
            raise _Usage(f"streamscrub grammars: {other} and --model are two questions")
        _out(explain(_plain(args.model)) + "\n")
    elif args.markdown:
        _out(formats_page() if args.name is None else format_section(_loaded(args.name)))
    elif args.name is not None:
        _out(_file_of(args.name))
    else:
        for grammar in shipped().values():
            models = " ".join(grammar.models)
            _out(f"{grammar.name:<18} {grammar.data.get('title', '')}\n" + (f"{'':<18}   {models}\n" if models else ""))
    return 0


def _loaded(name: str) -> Grammar:
    if _is_path(name) and not Path(name).is_file():
        raise _Usage(f"streamscrub: no such file: {name}")
    return _found(name)[0]


def _file_of(name: str) -> str:
    grammar = _loaded(name)
    if name.endswith(".json"):
        return json.dumps(grammar.data, ensure_ascii=False, indent=2) + "\n"  # what the template became
    where = Path(name) if _is_path(name) else Path(folder()) / grammar.file
    return where.read_text(encoding="utf-8")


def _is_path(name: str) -> bool:
    """Is this a grammar file rather than the name of a shipped one?"""
    return name.endswith((".toml", ".json"))


def _found(*names: str) -> tuple[Grammar, ...]:
    try:
        return find(names)
    except ValueError as error:
        raise _Usage(f"streamscrub: {error}") from None


# -- check


def _check(args: argparse.Namespace) -> int:
    failed = False
    for name in args.files or shipped():
        if _is_path(name) and not Path(name).is_file():
            raise _Usage(f"streamscrub check: no such file: {name}")
        try:
            grammar = Grammar.load(name) if _is_path(name) else _found(name)[0]
            runs, problems = _run_examples(grammar)
        except GrammarError as error:
            runs, problems = 0, [str(error)]
        failed = failed or bool(problems)
        title = Path(name).stem if problems and not runs else grammar.name
        if problems:
            shown = problems if args.all else problems[:1]
            more = f" (and {len(problems) - 1} more, see --all)" if len(problems) > len(shown) else ""
            for problem in shown:
                _say(sys.stdout, f"FAIL {_short(title):<18} {_plain(problem)}{more}\n")
        else:
            _say(sys.stdout, f"ok   {_short(title):<18} {len(grammar.examples)} examples, {runs} runs\n")
    return int(failed)


def _run_examples(grammar: Grammar) -> tuple[int, list[str]]:
    """Every example with only this grammar and beside all others, at every cut: (number of runs, what went wrong)."""
    if not grammar.examples:
        return 0, ["has no examples"]
    runs, problems = 0, []
    everything = [*shipped().values(), grammar]  # of two with one name the last counts
    for index, example in enumerate(grammar.examples, 1):
        title = str(example.get("title", f"example {index}"))
        for beside, grammars in (("alone", [grammar]), ("with all grammars", everything)):
            made, problem = _run_example(example, grammars)
            runs += made
            if problem:
                problems.append(f"{title!r}, {beside}, {problem}")
    return runs, problems


def _run_example(example: dict[str, Any], grammars: list[Grammar]) -> tuple[int, str]:
    options = {"grammars": grammars, **example.get("options", {})}
    finish = example.get("finish", "stop")
    runs = 0
    try:
        for way, pieces in _ways(example["text"]):
            scrubber = StreamScrubber(example.get("tools"), **options)
            events = [event for piece in pieces for event in scrubber.feed(piece)]
            problem = _difference(example, Scrubbed(events + scrubber.finish(finish)))
            runs += 1
            if problem:
                return runs, f"{way}: {problem}"
    except GrammarError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return runs, f"the example itself is wrong: {type(error).__name__}: {error}"
    return runs, ""


def _ways(text: str) -> Iterator[tuple[str, list[str] | list[bytes]]]:
    wire = text.encode()
    yield "whole", [text]
    for at in range(1, len(text)):
        yield f"cut at {at}", [text[:at], text[at:]]
    for size in _CUTS:
        yield f"by {size} characters", [text[at : at + size] for at in range(0, len(text), size)]
    yield "as single bytes", [wire[at : at + 1] for at in range(len(wire))]


def _difference(example: dict[str, Any], result: Scrubbed) -> str:
    """The first thing that is not as the example says; what it does not say is free, but for calls."""
    wanted: dict[str, Any] = {
        "calls": [{"name": call["name"], "arguments": call["arguments"]} for call in example.get("calls", [])],
        "rejected": example.get("rejected", []),
        **{key: example[key] for key in ("visible", "reasoning", "repaired") if key in example},
    }
    found = {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in result.calls],
        "rejected": [call.reason for call in result.rejected],
        "visible": result.text,
        "reasoning": result.reasoning,
        "repaired": any(call.repaired for call in result.calls),
    }
    for key, value in wanted.items():
        if not _same(found[key], value):
            return f"{key}: expected {_quoted(value)}, found {_quoted(found[key])}"
    return ""


def _quoted(value: Any) -> str:
    """A value as JSON on one line, so that blanks at its ends and empty texts are seen."""
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _same(found: Any, wanted: Any) -> bool:
    """Equal in type too: 1 is not true, and 1.0 is not 1."""
    return bool(found == wanted) and json.dumps(found, sort_keys=True) == json.dumps(
        wanted, sort_keys=True, default=str
    )


# -- render, convert


def _render(args: argparse.Namespace) -> int:
    from .dialect_verbs import render_verb

    return render_verb(args, _read_tools(args), lambda path: b"".join(_chunks(path)))


def _convert(args: argparse.Namespace) -> int:
    from .dialect_verbs import convert_verb

    args.finish_reason = _finish_reason(args)
    return convert_verb(args, _read_tools(args), lambda path: b"".join(_chunks(path)))


# -- replay, tally


def _replay_saved(args: argparse.Namespace) -> int:
    from .host_verbs import replay_verb

    args.file = _once(args.files)
    return replay_verb(args, _read_tools(args))


def _once(paths: list[str]) -> str | None:
    """Standard input, if it is among the files; it can be read once."""
    if paths.count("-") > 1:
        raise _Usage("streamscrub: standard input can be read only once")
    return "-" if "-" in paths else None


def _tally(args: argparse.Namespace) -> int:
    from .host_verbs import tally_verb

    args.file = _once(args.logs)
    return tally_verb(args, _read_tools(args))


# -- demo


def _demo(args: argparse.Namespace) -> int:
    data = json.loads((files("streamscrub") / "demo.json").read_text(encoding="utf-8"))
    word = os.environ.get("STREAMSCRUB_DEMO_SPEED") or "1"
    if not re.fullmatch(r"\d{1,4}(?:\.\d{1,4})?|\.\d{1,4}", word) or not float(word):
        raise _Usage(f"streamscrub demo: STREAMSCRUB_DEMO_SPEED={word!r} is no number above 0")
    paint = _Paint(args.no_color)
    width = (min(_columns(), 120) - 3) // 2
    steps, events = _replay(data, width)
    delay = 0.0 if args.fast else _SECONDS / float(word) / len(steps)
    full = 2 * width + 3
    _say(sys.stdout, f"{data['title']}\n\n{_wire_rows(data, Scrubbed(events), full, paint)}\n")
    _say(sys.stdout, "\n".join(row.rstrip() for row in _wrapped(_LEFT, full)) + "\n\n")
    for left, right in (("a regex over the text so far", "streamscrub"), ("─" * width, "─" * width)):
        _say(sys.stdout, paint("bold", _beside_each_other(left[:width], right, width)) + "\n")
    most = max(max(len(left), len(right)) for left, right in steps)
    size = shutil.get_terminal_size((80, 24))
    live = sys.stdout is not None and sys.stdout.isatty() and os.name == "posix" and os.environ.get("TERM") != "dumb"
    show = _show_live if live and most + 2 < size.lines and size.columns >= 2 * width + 3 else _show_rows
    show(steps, width, delay, most)
    for call in Scrubbed(events).calls:
        _say(sys.stdout, "\n" + _call_rows(call, full))
    _say(sys.stdout, f"\n{_saved(data, Scrubbed(events))}\n")
    return 0


def _wire_rows(data: dict[str, Any], result: Scrubbed, width: int, paint: _Paint) -> str:
    """The whole stream in rows, each stretch behind a word that says what it is."""
    wire = "".join(data["deltas"]).encode()
    rows = _wrapped(_WIRE, width)
    for label, group in groupby(result.events, lambda one: "dropped" if isinstance(one, Dropped) else _kind_of(one)):
        run = list(group)
        text = _raw(wire[run[0].span[0] : run[-1].span[1]])
        kind = "markup" if label == "dropped" else label
        parts = [(kind, row) for line in _lines(text) for row in _wrapped(line, width - 11)]
        if any(isinstance(one, Dropped) and one.kind == "fabricated_result" for one in run):
            parts += [("rejected", row) for row in _wrapped("= a result that the model made up", width - 11)]
        for place, (color, part) in enumerate(parts):
            rows.append(paint("dim", f"{'' if place else label:<10} ") + paint(color, part.rstrip()))
    return "\n".join(rows) + "\n"


def _call_rows(call: ToolCall, width: int) -> str:
    """A call as JSON, and what was changed to read it."""
    rows = [f'{{"name": {json.dumps(call.name)}, "strategy": {json.dumps(call.strategy)},']
    rows.append(f' "arguments": {json.dumps(call.arguments, ensure_ascii=False)}}}')
    if call.repairs:
        rows += [row.strip() for row in _wrapped(f"{MARK} repaired: {_told(call.repairs)}", width)]
    return "\n".join(rows) + "\n"


_Step = tuple[list[str], list[str]]


def _replay(data: dict[str, Any], width: int) -> tuple[list[_Step], list[Event]]:
    """The rows of both columns after each delta, and all events."""
    scrubber = StreamScrubber(data["tools"])
    shown, naive = "", _Naive(data["naive"]["strip"])
    steps: list[_Step] = []
    events: list[Event] = []
    for delta in [*data["deltas"], None]:
        fresh = scrubber.finish(data["finish_reason"]) if delta is None else scrubber.feed(delta)
        for event in fresh:
            if isinstance(event, Text):
                shown += event.text
            elif isinstance(event, ToolCall):
                mark = f" {MARK} repaired" if event.repairs else ""
                shown += f"{'' if shown.endswith(chr(10)) else chr(10)}[call {event.name}{mark}]\n"
        events += fresh
        naive.add(delta or "")
        steps.append((_rows(naive.shown, width), _rows(shown, width)))
    return steps, events


class _Naive:
    """What is commonly written instead: strip whole blocks from the text so far, show what is new behind it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)
        self.seen = self.shown = ""

    def add(self, delta: str) -> None:
        self.seen = self.seen + delta
        self.shown = self.shown + self.pattern.sub("", self.seen)[len(self.shown) :]


def _saved(data: dict[str, Any], result: Scrubbed) -> str:
    """What the left column got wrong."""
    naive = _Naive(data["naive"]["strip"])
    for delta in data["deltas"]:
        naive.add(delta)
    kept = sum(block.size for block in SequenceMatcher(None, naive.shown, result.text, False).get_matching_blocks())
    found: list[Any] = []
    for block in re.findall(data["naive"]["call"], naive.seen):
        with suppress(ValueError):
            found.append(json.loads(block))
    real = [{"name": call.name, "arguments": call.arguments} for call in result.calls]
    quoted = sum(call not in real for call in found)
    missed = sum(call not in found for call in real)
    return (
        f"The regex showed {len(naive.shown) - kept} characters of markup and lost {len(result.text) - kept} of text.\n"
        f"It ran {quoted} call that was only quoted, and missed {missed} of {len(real)} real calls."
    )


def _rows(text: str, width: int) -> list[str]:
    return [row for line in text.split("\n") for row in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    """``line`` in rows of ``width`` terminal cells, broken behind a blank where there is one."""
    rows, row, cells = [], "", 0
    for char in line:
        wide = 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1
        if cells + wide > width:
            cut = row.rfind(" ") + 1 if char != " " else 0
            rows.append(row[: cut or None])
            row = row[cut:] if cut else ""
            cells = _cells(row)
        row, cells = row + char, cells + wide
    return [*rows, row]


def _cells(text: str) -> int:
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _beside_each_other(left: str, right: str, width: int) -> str:
    return f"{left}{' ' * (width - _cells(left))} │ {right}".rstrip()


def _row(step: _Step, index: int, width: int) -> str:
    left, right = (column[index] if index < len(column) else "" for column in step)
    return _beside_each_other(left, right, width)


def _show_live(steps: list[_Step], width: int, delay: float, rows: int) -> None:
    """Redraw the rows that change, on a screen that holds them all."""
    before = [_beside_each_other("", "", width)] * rows
    _say(sys.stdout, "\n".join(before) + "\n")
    for step in steps:
        now = [_row(step, index, width) for index in range(rows)]
        changed = [index for index in range(rows) if now[index] != before[index]]
        if changed:
            moves = [f"\x1b[{rows - index}A\r\x1b[K{now[index]}\x1b[{rows - index}B\r" for index in changed]
            _say(sys.stdout, "".join(moves))
        before = now
        time.sleep(delay)


def _show_rows(steps: list[_Step], width: int, delay: float, rows: int) -> None:
    """Write each row once neither column can change it any more."""
    done = 0
    for step in steps:
        final = rows if step is steps[-1] else min(len(column) for column in step) - 1
        for index in range(done, final):
            _say(sys.stdout, _row(step, index, width) + "\n")
        done = max(done, final)
        time.sleep(delay)
