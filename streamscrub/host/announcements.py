"""What a reply without a call is: an announcement of an action, a question to the user, or an answer.

Judged by its last sentence, for a promise counts only if nothing came after it. Precision goes first: a nudge after a
finished answer makes the model start again, and a missed one costs a word of the user. So an announcement needs a
subject that promises (``I'll``, ``let me``), a verb that a tool would carry out, and nothing that waits for the user.
Words of a language are data (``LANGUAGES``); a language that is not listed never announces anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeAlias

Intent: TypeAlias = Literal["announces", "asks", "final"]

# Characters at the end of a reply that are looked at; an announcement is short.
MAX_TAIL: Final = 1200
# Words before the promise ("To find the cause of the failing test, …") and between it and its verb ("… then also …").
MAX_LEAD: Final = 14
MAX_BETWEEN: Final = 7


@dataclass(frozen=True, slots=True)
class Language:
    """The words by which one language announces. All are lower case; a phrase is words with single blanks."""

    promises: tuple[str, ...]  # what begins a promise
    actions: frozenset[str]  # verbs, in the form that follows a promise, of what tools do
    ongoing: frozenset[str]  # the same in the form that tells what is being done ("reading")
    ongoing_promises: tuple[str, ...]  # what stands before that form ("i'm")
    states: frozenset[str]  # ongoing forms that tell a state ("I'm using Python") unless they come with ``now``
    now: frozenset[str]  # words that make a bare ongoing form an announcement ("now reading")
    links: frozenset[str]  # words that may stand between a promise and its verb
    leads: frozenset[str]  # words that may stand before a promise without a comma
    waiting: tuple[str, ...]  # phrases that hand the turn to the user or put the action off
    asking: tuple[str, ...]  # phrases by which a sentence without a question mark asks
    conditions: tuple[str, ...]  # what begins a clause on which what follows depends
    purposes: frozenset[str]  # words that begin a clause which says what the promise is for
    saying: frozenset[str]  # words that end a clause and begin the speech of another
    fillers: frozenset[str]  # short sentences that may follow an announcement
    verb_last: bool = False  # the verb ends its clause, and anything may stand between it and the promise
    negations: frozenset[str] = frozenset()  # where the verb is last: words that take the promise back


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH: Final = Language(
    promises=(
        "let me", "let's", "let us", "i'll", "i will", "i'm going to", "i am going to", "i'm about to", "i am about to",
        "i'm gonna", "i need to", "i have to", "i should", "i must", "i want to", "i'd like to", "i would like to",
        "we'll", "we will", "we need to", "we should", "going to", "gonna", "time to", "i shall", "lemme", "i plan to",
        "allow me to", "my next step is to", "the next step is to", "next step is to", "the first step is to",
        "my first step is to", "first step is to", "i intend to", "i can now", "i now need to", "i still need to",
        "i also need to", "i first need to", "i'll need to", "i will need to", "i'm ready to", "i am ready to",
    ),
    actions=_words(
        "add analyse analyze append apply book browse build calculate call change check clean clone collect commit "
        "compare compile compute confirm continue convert copy correct count crawl create debug delete deploy detect "
        "determine diagnose dig discover dive download double-check draft edit enumerate evaluate examine execute "
        "explore extract fetch figure find fix format gather generate get grab grep handle identify implement "
        "import inspect install investigate invoke issue kick launch list load locate look lookup make map measure "
        "merge migrate modify move navigate open parse patch perform ping pinpoint poll prepare proceed process "
        "profile pull push put query re-read re-run read rebuild recompile redo refactor register reinstall remove "
        "rename replace reproduce reread rerun reset resolve restart restore retrieve retry reverse-engineer revert "
        "review rewrite run save scan schedule search see send set simulate sort split start stop submit switch sync "
        "test trace track translate transform try turn undo uninstall unzip update upgrade upload use validate verify "
        "view visit walk wire work write zip"
    ),
    ongoing=_words(
        "adding analysing analyzing applying booking browsing building calculating calling changing checking cleaning "
        "cloning collecting comparing compiling computing converting copying counting creating debugging deleting "
        "deploying downloading editing examining executing exploring extracting fetching finding fixing gathering "
        "generating getting grepping inspecting installing investigating invoking launching listing loading locating "
        "looking making measuring merging modifying moving navigating opening parsing patching performing pinging "
        "preparing processing pulling pushing querying reading rebuilding removing renaming replacing restarting "
        "retrieving retrying reviewing rewriting running saving scanning scheduling searching sending setting starting "
        "submitting switching testing tracing translating trying updating uploading using validating verifying viewing "
        "writing"
    ),
    ongoing_promises=(
        "i'm", "i am", "i'm now", "i am now", "now", "next", "currently", "let me start by", "let me begin by",
        "i'll start by", "i'll begin by", "i will start by", "i will begin by", "starting by", "beginning by",
        "let me begin with", "let me start with", "i'll start with", "i'll begin with", "i will start with",
        "i'm currently", "i am currently", "starting with", "let's start by", "i'll be", "i'm just", "i'll go about",
    ),
    states=_words("calling finding getting looking making preparing running setting starting trying using"),
    now=_words("now next first again"),
    links=_words(
        "first now then next just quickly also go ahead and start begin by please carefully briefly actually simply "
        "immediately directly therefore so once again take a an the quick closer brief another deeper i to try finally "
        "double have need be able"
    ),
    leads=_words(
        "ok okay sure alright right great good perfect thanks thank you got it understood certainly absolutely of "
        "course now first next then so and but well hmm ah yes no please before that after this to begin start with "
        "let me see finally also in order from here step time wait oops sorry hold on still therefore "
        "instead additionally"
    ),
    waiting=(
        "let me know", "let us know", "if you", "if needed", "if necessary", "if that helps", "once you",
        "when you", "whenever", "after you", "as soon as you", "until you", "unless you", "wait for", "your go-ahead",
        "your confirmation", "your approval", "your permission", "your answer", "your reply", "your call", "feel free",
        "happy to", "glad to", "upon request", "on request", "next time", "from now on", "in the future", "in future",
        "going forward", "tomorrow", "later", "at your", "just say", "say the word", "with your", "do my best",
        "try to help", "try my best", "get back to you", "leave it", "leave that", "stop here", "stop there",
        "never", "always", "in that case", "be able to help", "for you to", "need you to", "need your", "need more",
        "you can", "you could", "you may", "you might", "you should", "you would", "you'll", "you will", "make sense",
        "see how", "see why", "see what you", "call it", "call this", "put it", "put this", "put differently",
        "work fine", "work well", "make sure you", "turn out", "look like", "look good", "be fine", "find it",
        "find that", "start over", "get started", "we will see", "we'll see", "add that the", "add that it",
        "look forward",
    ),
    asking=(
        "please provide", "please tell", "please share", "please confirm", "please specify", "please clarify",
        "please send", "please paste", "please let", "please choose", "please pick", "please give", "please upload",
        "please describe", "please check", "could you", "can you", "would you", "do you want", "which one", "shall i",
        "should i", "tell me which", "tell me what", "tell me if", "what would you",
    ),
    conditions=(
        "if", "unless", "when", "once", "whenever", "assuming", "provided", "should", "until", "in the", "in this",
        "in a", "in chapter", "in section", "in part",
    ),
    purposes=_words("to"),
    saying=_words("say says said write writes wrote reply replies replied answer answers answered responds reads"),
    fillers=_words(
        "one moment please just a hold on second sec wait stand by standby bear with me minute here goes go it we okay "
        "ok working on it this will not won't take long shortly back right away thanks thank you"
    ),
)  # fmt: skip

_GERMAN: Final = Language(
    promises=(
        "ich werde", "ich will", "ich muss", "ich möchte", "lass mich", "lassen sie mich", "lasst uns", "lass uns",
        "als nächstes werde ich", "jetzt werde ich", "zuerst werde ich", "nun werde ich", "dann werde ich",
        "dazu werde ich", "zunächst werde ich",
    ),
    actions=_words(
        "abfragen abrufen analysieren ändern anlegen anpassen anschauen ansehen aufrufen ausführen bauen bearbeiten "
        "beginnen berechnen durchsuchen einlesen ergänzen ersetzen erstellen fortfahren herausfinden herunterladen "
        "holen hinzufügen installieren kopieren laden lesen löschen nachschauen nachsehen öffnen prüfen schreiben "
        "speichern starten suchen testen überprüfen umbenennen untersuchen verschieben"
    ),
    ongoing=_words(
        "analysiere ändere berechne durchsuche ersetze erstelle hole installiere kopiere lade lese lösche öffne prüfe "
        "schreibe speichere starte suche teste überprüfe untersuche"
    ),
    ongoing_promises=("ich", "jetzt", "nun", "zuerst", "als nächstes"),
    states=_words("hole starte suche"),
    now=_words("jetzt nun zuerst gleich zunächst"),
    links=_words("jetzt nun zuerst kurz erst einmal mal ich die den das der dazu dafür noch dann schnell"),
    leads=_words("ok okay gut klar natürlich gerne alles verstanden jetzt nun zuerst dann also und danke zunächst"),
    waiting=(
        "wenn du", "wenn sie", "falls du", "falls sie", "sobald du", "sobald sie", "sag bescheid", "bescheid", "gerne",
        "später", "morgen", "in zukunft", "auf wunsch", "hier aufhören", "wissen lassen",
    ),
    asking=("bitte sag", "bitte nenne", "bitte gib", "bitte schick", "soll ich", "möchtest du", "kannst du"),
    conditions=("wenn", "falls", "sobald", "sofern", "im", "in der", "in diesem"),
    purposes=_words("um"),
    saying=_words("sagt sagte schreibt schrieb antwortet antwortete"),
    fillers=_words("einen moment bitte augenblick sekunde kurz warte"),
    verb_last=True,
    negations=_words("nicht nichts kein keine keinen keiner nie niemals"),
)  # fmt: skip

LANGUAGES: Final[dict[str, Language]] = {"en": _ENGLISH, "de": _GERMAN}

_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]{0,200}`")
_QUOTED: Final = re.compile(r'"[^"\n]{1,200}"|“[^”\n]{1,200}”|«[^»\n]{1,200}»')
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"')*_]{0,3}\s+|\n+|(?<=[。！？])")
_WORD: Final = re.compile(r"[^\W_][\w'-]*")
_CLAUSE: Final = re.compile(r"[,:;–—]|\s-\s")
_MARKUP: Final = re.compile(r"^[\s>#*_•–—-]+|^\s*\d{1,3}[.)]\s+")


def intent(text: str, language: str = "en") -> Intent:
    """Tell whether a reply announces an action that it does not take, asks the user, or is final.

    ``language`` is a key of ``LANGUAGES``. Linear in the length of ``text``, of which only the end is judged.

    >>> intent("Let me read the file."), intent("Shall I go on?"), intent("Let me know if you need more.")
    ('announces', 'asks', 'final')
    """
    words = LANGUAGES.get(language)
    sentences = _sentences(text)
    if words is None or not sentences:
        return "final"
    while len(sentences) > 1 and _is_filler(sentences[-1], words):
        sentences.pop()
    last = sentences[-1]
    if last.rstrip("\"')*_ ").endswith(("?", "？")):
        return "asks"
    tokens = _tokens(last)
    joined = f" {' '.join(tokens)} "
    if any(f" {phrase} " in joined for phrase in words.asking):
        return "asks"
    if any(f" {phrase} " in joined for phrase in words.waiting):
        return "final"
    return "announces" if _announces(last, words) else "final"


def announces(text: str, language: str = "en") -> bool:
    """True if the reply announces an action and ends without it."""
    return intent(text, language) == "announces"


def _sentences(text: str) -> list[str]:
    """The last sentences of ``text``, without code and quotations; none if it ends in a code block, closed or not."""
    if sum(1 for _ in _FENCE.finditer(text)) % 2:
        return []
    tail = text[-MAX_TAIL:]
    if len(text) > MAX_TAIL:
        tail = tail[tail.find(" ") + 1 :]
    fences = [found.start() for found in _FENCE.finditer(tail)]
    if fences:
        # Behind the last fence stands what counts; a reply that ends in its code block has said what it had to say.
        tail = tail[fences[-1] :].partition("\n")[2]
    tail = _QUOTED.sub(" x ", _CODE.sub(" x ", tail.replace("’", "'"))).strip()
    parts = (_MARKUP.sub("", part).strip() for part in _SENTENCE_END.split(tail) if part)
    return [part for part in parts if _WORD.search(part)]


def _tokens(sentence: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(sentence)]


def _is_filler(sentence: str, words: Language) -> bool:
    tokens = _tokens(sentence)
    return len(tokens) <= 8 and all(token in words.fillers for token in tokens)


def _announces(sentence: str, words: Language) -> bool:
    """Does some clause of the sentence promise an action, with nothing of weight before it?"""
    before = 0
    lead = True
    for clause in _CLAUSE.split(sentence):
        tokens = _tokens(clause)
        if lead and _promises(tokens, words):
            return True
        if any(_begins(tokens, phrase) for phrase in words.conditions) or (tokens and tokens[-1] in words.saying):
            return False
        before += len(tokens)
        lead = before <= MAX_LEAD
    return False


def _promises(tokens: list[str], words: Language) -> bool:
    start = 0
    while start < len(tokens):
        rest = tokens[start:]
        for phrase in words.promises:
            size = _begins(rest, phrase)
            if size and _acts(rest[size:], words):
                return True
        for phrase in words.ongoing_promises:
            size = _begins(rest, phrase)
            if size and rest[size : size + 1] and _is_ongoing(rest[size:], words):
                return True
        if start == 0 and rest[0] in words.ongoing and _is_now(rest, words):
            return True
        if rest[0] not in words.leads and (tokens[0] not in words.purposes or start > MAX_LEAD):
            return False
        start += 1
    return False


def _begins(tokens: list[str], phrase: str) -> int:
    wanted = _split(phrase)
    return len(wanted) if tokens[: len(wanted)] == wanted else 0


@cache
def _split(phrase: str) -> list[str]:
    return phrase.split(" ")


def _acts(tokens: list[str], words: Language) -> bool:
    """Does a verb of action follow, behind a few words that only link?"""
    if words.verb_last:
        return bool(tokens) and words.negations.isdisjoint(tokens) and tokens[-1] in words.actions
    for place, token in enumerate(tokens[:MAX_BETWEEN]):
        if token in words.actions:
            return True
        if place and token in words.ongoing:
            return True
        if token not in words.links:
            return False
    return False


def _is_ongoing(tokens: list[str], words: Language) -> bool:
    skipped = 0
    while skipped < len(tokens) - 1 and tokens[skipped] in words.now:
        skipped += 1
    if tokens[skipped] in words.states:
        return not words.now.isdisjoint(tokens)
    return tokens[skipped] in words.ongoing


def _is_now(tokens: list[str], words: Language) -> bool:
    """A bare "Reading the file now": the sentence is short and says that it happens now."""
    return len(tokens) <= 10 and tokens[-1] in words.now
