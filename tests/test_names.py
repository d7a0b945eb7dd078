"""Names resolve to offered tools only; a tie is unknown, and an exact name is never changed."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub.events import Repair
from streamscrub.limits import MAX_NAME
from streamscrub.names import Offer, Resolution, normal_form
from streamscrub.tools import Tool

from .growth import assert_linear


def offering(*names: str) -> Offer:
    return Offer(tuple(Tool(name) for name in names))


RESOLVED = [
    # written, offered, meant ("": unknown)
    ("ping", "ping", "ping"),
    (" ping\n", "ping", "ping"),
    ("", "ping", ""),
    ("  ", "ping", ""),
    ("(", "ping", ""),
    # junk
    ('read_ledger" parameter=', "read_ledger", "read_ledger"),
    ("list_shelves</arg_value>", "list_shelves", "list_shelves"),
    ("ping()", "ping", "ping"),
    ("ping:0", "ping", "ping"),
    ("ping={}", "ping", "ping"),
    ("ping[0|a]", "ping", "ping"),
    ("ping;", "ping", "ping"),
    ("ping\r\nhost", "ping", "ping"),
    ("'ping'", "ping", ""),
    # prefixes
    ("functions.ping", "ping", "ping"),
    ("function.ping", "ping", "ping"),
    ("Functions.ping", "ping", "ping"),
    ("functions/ping", "ping", "ping"),
    ("functions:ping", "ping", "ping"),
    ("functions::ping", "ping", "ping"),
    ("tools.ping", "ping", "ping"),
    ("tools/ping", "ping", "ping"),
    ("tool.ping", "ping", "ping"),
    ("default_api.ping", "ping", "ping"),
    ("default.ping", "ping", "ping"),
    ('functions.ping" x', "ping", "ping"),
    ("functions.functions.ping", "ping", ""),
    ("functions:ping", "functions ping", "ping"),
    ("browser.search", "search", ""),
    ("github.delete", "delete", ""),
    ("tools.list", "tools.list list", "tools.list"),
    ("functions.readFile", "read_file", "read_file"),
    # normal forms
    ("Read File", "read_file", "read_file"),
    ("readFile", "read_file", "read_file"),
    ("ReadFile", "read_file", "read_file"),
    ("READ_FILE", "read_file", "read_file"),
    ("read-file", "read_file", "read_file"),
    ("read.file", "read_file", "read_file"),
    ("read/file", "read_file", "read_file"),
    ("read__file_", "read_file", "read_file"),
    ("probe_rig", "probe-rig ring_bell", "probe-rig"),
    ("Get-Page", "getPage get_page", ""),
    ("Ping Host", "ping_host ping-host", ""),
    ("ping-host", "ping_host ping-host", "ping-host"),
    # the word tool
    ("ping_host_tool", "ping_host", "ping_host"),
    ("ping_host-tool", "ping_host", "ping_host"),
    ("PingHostTool", "ping_host", "ping_host"),
    ("pingtool", "ping", "ping"),
    ("PingHostTool_tool", "ping_host", "ping_host"),
    ("PingHostToolToolTool", "ping_host", ""),
    ("tool", "ping", ""),
    # doubled
    ("write_notewrite_note", "write_note", "write_note"),
    ("write_note.write_note", "write_note", "write_note"),
    ("write_note_write_note", "write_note", "write_note"),
    ("functions.write_notewrite_note", "write_note", "write_note"),
    ("aa", "a", "a"),
    ("aXa", "a", ""),
    # a glued content type
    ("shell_execjson", "shell_exec", "shell_exec"),
    ("functions.shell_execjson", "shell_exec", "shell_exec"),
    ("export_json", "export", ""),
    ("json", "ping", ""),
    # near misses
    ("read_senser", "read_sensor open_vent", "read_sensor"),
    ("read_notes", "read_note", "read_note"),
    ("raed_note", "read_note", "read_note"),
    ("get_weather_now", "get_weather", ""),
    ("delete_fil", "delete_file delete_files", "delete_file"),
    ("get_pot", "get_port get_post", ""),
    ("sync_c", "sync_a sync_b", ""),
    ("pin", "ping", ""),
    ("pinf", "ping", "ping"),
    ("pnif", "ping", ""),
    ("pingg", "ping", "ping"),
    ("delete_universe", "read_note", ""),
    ("book_flight", "read_ledger", ""),
    ("print_label", "lookup_book", ""),
    ("dig_pond", "read_sensor open_vent write_note list_zones set_plan", ""),
    # a near miss that means something else
    ("set_lamp", "get_lamp", ""),
    ("unlock", "lock_", ""),
    ("unlock_gate", "lock_gate", ""),
    ("install_pkg", "uninstall_pkg", ""),
    ("activate_key", "deactivate_key", ""),
    ("sensor_2", "sensor_1", ""),
    ("sensor_12", "sensor_1", ""),
    ("sensors_1", "sensor_1", "sensor_1"),
    ("put_note", "cut_note", ""),
    # names beyond ASCII
    ("größe_lesen", "größe_lesen", "größe_lesen"),
    ("GRÖSSE_LESEN", "größe_lesen", "größe_lesen"),
    ("a\ud800", "a", ""),
]


@pytest.mark.parametrize(("written", "offered", "meant"), RESOLVED)
def test_a_written_name_resolves_to_the_offered_tool_or_to_none(written: str, offered: str, meant: str) -> None:
    resolution = offering(*offered.split(" ")).resolve(written)
    assert (resolution.tool.name if resolution.tool else "") == meant
    assert resolution.name == (meant or written.strip().replace("\ud800", "\ufffd"))
    changed = meant and written.strip() != meant
    assert resolution.repairs == ((Repair("name", "name", written.strip(), meant),) if changed else ())


NEAR = [
    "read_row",
    "read_rows",
    "delete_file",
    "delete_files",
    "read",
    "write_read",
    "get_a",
    "set_a",
    "getA",
    "x",
    "y",
]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(NEAR, 2)))
def test_an_exact_name_is_never_changed_whatever_stands_beside_it(first: str, second: str) -> None:
    assert offering(first, second).resolve(first) == Resolution(Tool(first), first)


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        ("delete_file", "delete_files", "delete_filed"),
        ("read_map", "read_tap", "read_nap"),
        ("tool_aa", "tool_bb", "tool_ab"),
        ("open_gate", "open-gate", "openGate"),
        ("open_gate", "open-gate", "open_gat"),
        ("list_ports", "list_posts", "list_pots"),
    ],
)
def test_a_tie_never_resolves_in_either_order(first: str, second: str, written: str) -> None:
    for names in ((first, second), (second, first)):
        assert offering(*names).resolve(written) == Resolution(None, written)


def test_without_knowledge_names_are_taken_as_written() -> None:
    offer = Offer(None)
    assert not offer.known
    assert offer.resolve(" functions.x ") == Resolution(None, "functions.x")
    assert offer.plain("x") is None
    assert offer.may_begin("anything")
    assert offer.id_name("functions.a.b:3") == Resolution(None, "a.b")
    assert offer.id_name("functionsx5") == Resolution(None, "functionsx5")


def test_with_nothing_offered_every_name_is_unknown() -> None:
    offer = offering()
    assert offer.known
    assert offer.resolve("x") == Resolution(None, "x")
    assert offer.id_name("functions.x:0") == Resolution(None, "x")
    assert not offer.may_begin("x")
    assert not offer.may_begin("")


IDS = [
    # written, offered, meant ("": unknown, with the name to report), repaired
    ("functions.ping:0", "ping", "ping", False),
    ("functions.ping:17", "ping", "ping", False),
    ("ping:0", "ping", "ping", False),
    ("functions.ping", "ping", "ping", False),
    ("ping", "ping", "ping", False),
    ("functions.probe-rig:0", "probe-rig", "probe-rig", False),
    ("functions.hull.scan:1", "hull.scan scan", "hull.scan", False),
    ("functions.db:read:1", "db:read db", "db:read", False),
    ("functions.a:1:0", "a:1 a", "a:1", False),
    ("functions.a:1", "a:1 a", "a:1", False),
    ("functions.v2:3", "v2", "v2", False),
    ("functions.x:0", "functions.x", "functions.x", False),
    ("functionsrun_shell5", "run_shell", "run_shell", True),
    ("functions_run_shell_6", "run_shell", "run_shell", True),
    ("functions.run_shell_6", "run_shell", "run_shell", True),
    ("functionsrun_shell", "run_shell", "run_shell", True),
    ("functionsget_v25", "get_v2", "get_v2", True),
    ("functionsget_v25", "get_v2 get_v", "", True),
    ("functions.runShell:0", "run_shell", "run_shell", True),
    ("functions.run_shel:0", "run_shell", "run_shell", True),
    ("functions.nope:0", "run_shell", "", False),
    ("call_3", "call_me run_shell", "", False),
    ("call_abc123def456", "read_page", "", False),
    ("0", "ping", "", False),
    (":0", "ping", "", False),
]


@pytest.mark.parametrize(("written", "offered", "meant", "repaired"), IDS)
def test_the_name_is_read_out_of_a_call_id(written: str, offered: str, meant: str, repaired: bool) -> None:
    resolution = offering(*offered.split()).id_name(written)
    assert (resolution.tool.name if resolution.tool else "") == meant
    if meant:
        assert resolution.repairs == ((Repair("name", "name", written, meant),) if repaired else ())


def test_an_unknown_id_reports_the_name_that_it_carries() -> None:
    assert offering("x").id_name("functions.web_search:0").name == "web_search"
    assert offering("x").id_name("call_3").name == "call_3"


def test_plain_never_guesses() -> None:
    offer = offering("read_file", "getPage", "get_page")
    assert offer.plain("read_file") is offer.plain("ReadFile") is offer.get("read_file")
    assert offer.plain("read_fil") is offer.plain("functions.read_file") is offer.plain("Get-Page") is None
    assert offer.plain("getPage") == Tool("getPage")


def test_a_word_may_begin_a_name_exactly_or_by_its_normal_form() -> None:
    offer = offering("read_file", "GetPage", "größe")
    for name in ("read_file", "ReadFile", "Read File", "read-", "getPage", "Get_P", "GRÖSSE", ""):
        assert all(offer.may_begin(name[:end]) for end in range(len(name) + 1)), name
    for word in ("x", "readx", "read_files", "read_file_x", "pagex"):
        assert not offer.may_begin(word)


@given(
    st.lists(st.text("aB_-. Σς1é", min_size=1, max_size=6), min_size=1, max_size=5, unique=True),
    st.text("aB_-. Σς1é", max_size=10),
)
def test_may_begin_never_comes_back(names: list[str], word: str) -> None:
    offer = offering(*names)
    answers = [offer.may_begin(word[:end]) for end in range(len(word) + 1)]
    assert answers == sorted(answers, reverse=True)
    for name in names:
        assert all(offer.may_begin(name[:end]) for end in range(len(name) + 1))


@given(st.text("aB_-. Σς1é", max_size=12))
def test_whatever_plain_finds_was_announced_by_may_begin(word: str) -> None:
    offer = offering("aB_1", "é.Σ", "ab")
    if offer.plain(word) is not None:
        assert offer.may_begin(word.strip())


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=12).filter(str.strip), max_size=6, unique=True))
def test_no_name_raises_and_every_answer_is_offered(written: str, names: list[str]) -> None:
    offer = offering(*names)
    for resolution in (offer.resolve(written), offer.id_name(written)):
        assert resolution.tool is None or resolution.tool.name in names
        resolution.name.encode()


@pytest.mark.parametrize("filler", ["x", "_", "tool", "functions.", ":1", "(", "A", " ", "é", "1", "json"])
def test_a_megabyte_is_unknown_and_costs_little(filler: str) -> None:
    offer = offering("ping", "x" * MAX_NAME)

    def ask(size: int) -> None:
        huge = "q" + filler * (size // len(filler))
        assert offer.resolve(huge).tool is None
        assert offer.id_name(huge).tool is None
        assert offer.plain(huge) is None
        assert not offer.may_begin(huge)

    assert_linear(lambda size: lambda: ask(size), repr(filler), sizes=(2**16, 2**18))


def test_normal_forms_of_one_name_are_equal() -> None:
    assert {
        normal_form(name) for name in ("readFile2Text", "read_file2_text", "Read-File2 Text", "_read.file2/Text_")
    } == {"read_file2_text"}
    assert normal_form("HTTPServer") == "httpserver"
    assert normal_form("__") == ""


def test_an_offer_is_shared_by_copies_and_survives_pickling() -> None:
    offer = offering("ping")
    assert offer.may_begin("p")
    assert copy.deepcopy(offer) is copy.copy(offer) is offer
    twin = pickle.loads(pickle.dumps(offer))
    assert twin.tools == offer.tools
    assert twin.resolve("Ping").name == "ping"
    assert repr(offer) == "Offer(['ping'])"
    assert repr(Offer(None)) == "Offer(None)"
