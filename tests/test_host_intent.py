"""What a reply announces: a table of sentences, and what must hold for any text."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub.host import announces, intent
from streamscrub.host.announcements import LANGUAGES, Intent

from .growth import assert_linear

TABLE: Final[dict[Intent, list[str]]] = {
    "announces": [
        "I will check the availability for those dates.",
        "Let me find the nearest pharmacy for you.",
        "I'll dig deeper into the traceback.",
        "Let me see what's in that folder first.",
        "Okay. I will rename the variable everywhere.",
        "I'm going to compile it and see whether the error persists.",
        "Let me look for a better approach by searching the docs.",
        "Now, I'll convert the CSV to JSON.",
        "I need to fetch the latest commit before answering.",
        "Let's take a look at the database schema.",
        "First I will gather the requirements from the wiki.",
        "One sec, checking the calendar now.",
        "I'll start with the failing module.",
        "Sure thing — let me open the ticket.",
        "The build is broken, so I'm going to revert the last commit.",
        "I'll have to look that up.",
        "Next up, I'll add unit tests.",
        "Right, let me try a smaller batch size.",
        "I'll run `npm test` to make sure everything works.",
        "Let me confirm that by reading the source.",
        "Let me read the file.",
        "Let me start by reading the configuration.",
        "Let me first check which tests exist.",
        "Let me take a closer look at the error.",
        "Let me try that again.",
        "Let me go ahead and fix this.",
        "Let's run the test suite.",
        "I'll read the file now.",
        "I’ll check the logs first.",
        "I will search for the function definition.",
        "I'm going to update the README.",
        "I am about to run the migration.",
        "I need to look at the schema first.",
        "I need to first find where this is defined.",
        "First, I'll list the directory.",
        "Now I'll write the test:",
        "Next, I will open the settings file.",
        "Okay, let me fetch the weather for Oslo.",
        "Sure! Let me look that up.",
        "Great, I'll create the file now.",
        "Alright, let me see what we have.",
        "To answer that, I need to query the database.",
        "To find the cause of the failing test, I'll run it with more output.",
        "Before I change anything, let me check the current state.",
        "I see the problem. The import is wrong. Let me fix it.",
        "The file does not exist. I'll create it.",
        "That failed because of a missing module. Let me install it and try again.",
        "I'm reading the file now.",
        "I am checking the server status.",
        "Now reading the second file...",
        "Reading the config now.",
        "I'll start by examining the repository structure.",
        "I will begin by searching for usages.",
        "My next step is to run the linter.",
        "The next step is to call the API.",
        "We need to check the permissions. Let me do that: I'll inspect the folder.",
        "Got it. I'll schedule the meeting.",
        "I'll use the search tool to find recent articles.",
        "I'll call get_weather with the city Oslo.",
        "Let me pull the latest numbers. One moment.",
        "I'll look into it. Hold on...",
        "I'll book the flight. This won't take long.",
        "Thanks for the details. I'll now send the email.",
        "Understood. Going to delete the temporary files.",
        "Hmm, that's odd - let me double-check.",
        "- Let me verify the result.",
        "**Next step:** I'll deploy the service.",
        "I found three candidates. Now let me compare them.",
        "I've updated the file. Now I need to run the tests.",
        "Done with the first part. Next I'll refactor the parser.",
        "Sorry about that! I'll correct the path and retry.",
        "I'd like to check the log before going further.",
        "Allow me to search the documentation.",
        "I still need to verify the output.",
        "Here is the plan:\n1. Read the file\n2. Fix it\n\nLet me begin with reading the file.",
        "```python\nprint(1)\n```\nNow I'll run this script.",
        "Time to build the project.",
        "I can now write the final version.",
        "I'm going to have to look at the source.",
        "Let me also check the other module.",
        "I'll take a look at the code to understand how it works.",
        "Let me dig into the repository.",
        "Now let me write the code for this feature.",
        "I see. Let me update the component accordingly.",
        "I'll go ahead and implement the changes now.",
        "Let me think about this. I'll search the web for the newest release.",
        "I'll now proceed to create the directory structure.",
        "Good catch! Let me revert that change.",
        "Perfect. Now I have a clear picture. Let me implement the fix:",
        "We should first look at the failing assertion.",
        "Let me gather some more information about the project.",
        "Now I'm going to add the missing dependency.",
        "Fetching the page now…",
        "Let me quickly run the script to see the output.",
        "I apologize for the confusion. Let me retrieve the correct data.",
        "I'll get the current time for you.",
        "I will now send the message to Bob.",
        "First, let's understand the structure. I'll list all files.",
        "To be sure, I will run the benchmark once more.",
        "Let me check the weather in Paris for you.",
        "I should double-check the second value. Let me calculate it again.",
        "I'll read both files in parallel.",
        "Since the tests are failing, I'll look at the stack trace.",
        "There seems to be a typo, so I'll correct it.",
        "OK, opening the file now.",
        "Let me examine the `main.py` file to see what's happening.",
        "The search returned nothing, so let me try a different query.",
    ],
    "asks": [
        "Do you have a preference?",
        "Would you prefer tea or coffee?",
        "May I delete these rows?",
        "Please let me know which version you use.",
        "Could you paste the output here?",
        "Shall I go on?",
        "Should I delete the file?",
        "Which file do you mean?",
        "Do you want me to read the file?",
        "Let me check: do you mean the first one?",
        "I can read the file. Would you like me to?",
        "I'll need the path. Could you tell me where it is?",
        "Before I start, please confirm the target branch.",
        "Please provide the order number.",
        "To book the flight, I need your dates. Please share them.",
        "I'll create the file. What should it be called?",
        "Tell me which option you prefer.",
        "Is there anything else I can do?",
        "The file is missing. Should I create it?",
        "Please clarify which account you mean.",
        "Ready to deploy. Do you want to continue?",
        "I can do that for you. Which calendar should I use?",
        "What time works best for you?",
        "I could either fix the test or the code. Which one would you prefer?",
        "Could you share the full error message?",
        "Can you confirm the email address?",
    ],
    "final": [
        "I will be here when you need me.",
        "You'll find the file in your downloads.",
        "I've searched the docs and there is no such option.",
        "This is what I'd do: read the file first.",
        "I would look at the logs, then restart the service.",
        "Let me tell you a story about a parser.",
        "Let me give you an example: 2 + 2 = 4.",
        "I'll explain with an example. Suppose x is 3.",
        "I'm happy with the result.",
        "I'm not going to run that.",
        "I'm unable to open links.",
        "We're done here.",
        "As I said, let me know.",
        "Great question! Tides are caused by the moon.",
        "I'll summarize the changes: two files were touched.",
        "You might want to update the README.",
        "The doctor will see you now.",
        "Let the dough rest for an hour.",
        "Let us assume that x is prime. Then x has no divisors.",
        "I'll be brief: no.",
        "I should warn you that this deletes data.",
        "I want you to read the file.",
        "The plan is to read the file and then fix the bug.",
        "I'd be glad to run it for you.",
        "I can run the tests for you.",
        "It will take a while to build.",
        "I must say, the code looks great.",
        "Thank you, I will.",
        "That's all I need to check.",
        "After I check the logs you will get a summary.",
        "",
        "Done.",
        "Let me know if you have any questions.",
        "Let me know if you want me to run the tests.",
        "The file has three lines.",
        "I have read the file. It contains the settings.",
        "I've fixed the bug and all tests pass.",
        "I read the file and found nothing.",
        "I can read the file if you like.",
        "If you want, I'll run the tests.",
        "I'll run the tests once you confirm.",
        "When you are ready, I will start the deployment.",
        "I'll wait for your answer.",
        "I won't delete anything.",
        "I will not run this command.",
        "I'll leave it at that.",
        "I'll keep that in mind.",
        "I'll remember your preference.",
        "From now on I'll check the log first.",
        "Let me explain. A closure captures its environment.",
        "Let me summarize: the build works and the tests pass.",
        "Let me be clear: this is not supported.",
        "I hope this helps!",
        "Feel free to ask if anything is unclear.",
        "You can run the tests with make test.",
        "You should check the log first.",
        "Happy to help you check the logs.",
        "The function will read the file and return its content.",
        "The next release will fix this.",
        "The server is running on port 80.",
        "Reading the file takes about a second.",
        "Running the tests is easy: use make test.",
        "To read the file, open it in your editor.",
        'He said "let me read the file" and left.',
        'The button says "I\'ll do it later."',
        "Use `let me run` as the prompt.",
        "I'll do my best to help.",
        "I'm glad I could help.",
        "I'm sorry, I cannot access the internet.",
        "I am an assistant and have no access to your files.",
        "I'll get back to you tomorrow.",
        "First let me read the file. Done: it has three lines and the second is empty.",
        "Let me read the file.\n\nIt says that the port is 8080.",
        "I'll search for it. The answer is 42.",
        "Here is the script:\n```python\n# let me read the file\nprint(1)\n```",
        "```\nI'll read the file now.\n```",
        "The capital of Norway is Oslo.",
        "I would recommend the second option.",
        "I think we should use a queue.",
        "That should work fine now.",
        "I'll assume you meant the first one: it costs 12 euros.",
        "In summary, the parser reads bytes and gives events.",
        "There is nothing more to do.",
        "I checked the logs; no errors there.",
        "The tests will run automatically on every push.",
        "Once the build has finished you'll find it in dist.",
        "I'd say this looks good.",
        "I need more information about your setup.",
        "I need you to log in first.",
        "We will see a performance gain of ten percent.",
        "Your order was created. I'll always be here if you need more.",
        "Whenever you need it, I'll fetch the data again.",
        "I will always prefer simple code over clever code.",
        "We'll need to see how the market reacts.",
        "The tests pass now. Let me know how it goes!",
        "I'm running as a sandboxed process, so I cannot open files on your disk.",
        "I'm using Python 3.11 here.",
        "Now run the tests with `pytest -q`.",
        "Next, open the settings and click Save.",
        "Let's say the list has five elements; then the loop runs five times.",
        "I'm working with the assumption that the input is sorted.",
        "I'm looking forward to your feedback.",
        "I'm trying to be helpful.",
        "I'm calling this the greedy approach.",
        "I would check the fuse first.",
        "You'll need to restart the server.",
        "This will create a new file in the folder.",
        "The script is going to delete all temporary files.",
        "She is going to read the book tomorrow.",
        "I'll use x for the unknown. Then x + 2 = 5, so x = 3.",
        "In this chapter we will look at closures.",
        "In the next section, we'll build the parser.",
        "If the tests fail, I'll look at the log.",
        "All set! Your meeting is booked for Monday at 9.",
        "It is time to celebrate.",
        "I need to be honest: I don't know.",
        "I have to say that I like the first version better.",
        "I want to emphasize that backups are important.",
        "Let me put it this way: the cache is a trade-off.",
        "Let's get started! Step one is to install Python.",
        "I should note that this only works on Linux.",
        "I should mention that the API may change.",
        "I'm going to be straight with you, this is a bad idea.",
        "I'll add that the second option is cheaper.",
        "I'd like to thank you for the report.",
        "Unfortunately I am not able to run code.",
        "I will need to know your location to check the weather.",
        "Goodbye, and let's talk again soon.",
        "The robot says: let me open the door.",
        "Once that is done, reload the page.",
        "Time to first byte is 20 ms.",
        "Checking the oil level is important, too.",
        "Now you have a working server.",
    ],
}
GERMAN: Final[dict[Intent, list[str]]] = {
    "announces": [
        "Ich werde die Datei lesen.",
        "Lass mich das kurz prüfen.",
        "Als nächstes werde ich die Tests ausführen.",
        "Ich lese jetzt die Datei.",
        "Gut, ich prüfe das.",
        "Ich muss die Datenbank abfragen.",
    ],
    "asks": ["Soll ich die Datei löschen?", "Bitte nenne mir den Pfad."],
    "final": [
        "Die Datei hat drei Zeilen.",
        "Sag Bescheid, wenn du mehr brauchst.",
        "Ich werde nichts ändern.",
        "Ich werde die Datei nicht löschen.",
        "Wenn du willst, werde ich sie lesen.",
        "Fertig.",
    ],
}


@pytest.mark.parametrize(("wanted", "text"), [(wanted, text) for wanted, texts in TABLE.items() for text in texts])
def test_the_table_of_sentences(wanted: Intent, text: str) -> None:
    assert intent(text) == wanted
    assert announces(text) == (wanted == "announces")


def test_the_table_is_large_enough() -> None:
    assert sum(map(len, TABLE.values())) >= 80
    assert all(len(texts) >= 15 for texts in TABLE.values())


@pytest.mark.parametrize(("wanted", "text"), [(wanted, text) for wanted, texts in GERMAN.items() for text in texts])
def test_german_sentences(wanted: Intent, text: str) -> None:
    assert intent(text, "de") == wanted


@pytest.mark.parametrize("text", TABLE["announces"])
def test_what_comes_before_does_not_matter(text: str) -> None:
    assert announces(f"I have looked at the first part. It is fine.\n\n{text}")


@pytest.mark.parametrize("text", TABLE["announces"])
def test_an_announcement_that_an_answer_follows_is_none(text: str) -> None:
    assert not announces(f"{text}\n\nThe file says that the port is 8080.")


@pytest.mark.parametrize("text", TABLE["announces"])
def test_an_announcement_in_a_code_block_is_none(text: str) -> None:
    assert not announces(f"Like this:\n```\n{text}\n```")
    assert not announces(f"Like this:\n```\n{text}")
    assert not announces(f"Like this:\n```\n{'x = 1' * 2000}\n{text}")


def test_a_language_that_is_not_listed_never_announces() -> None:
    assert intent("Let me read the file.", "xx") == "final"


def test_phrases_are_lower_case_words_with_single_blanks() -> None:
    for language in LANGUAGES.values():
        for phrase in (*language.promises, *language.waiting, *language.asking, *language.conditions):
            assert phrase == " ".join(phrase.lower().split())


@given(st.text(max_size=300))
def test_any_text_has_an_intent(text: str) -> None:
    assert intent(text) in ("announces", "asks", "final")


@pytest.mark.parametrize("piece", ["`", '"', "let me ", "I'll ", "- ", "\n", "“", "a.b ", "```\n", "to ", ", "])
def test_a_long_text_costs_little(piece: str) -> None:
    assert_linear(lambda size: lambda: intent(piece * (size // len(piece))), repr(piece), sizes=(50_000, 250_000))
