import pytest

from onrecord.parse.html import html


def seen(style: str, body: str, attributes: str = "") -> list[str]:
    text = html(f"<html><head><style{attributes}>{style}</style></head><body>{body}</body></html>")[0]
    return text.split()


HIDE = "{display:none}"


@pytest.mark.parametrize(
    "rule",
    [
        f".a{HIDE}",
        f"#i{HIDE}",
        f"p{HIDE}",
        f"P{HIDE}",
        f"p.a#i{HIDE}",
        f".a.b{HIDE}",
        f"div .a{HIDE}",
        f"div > .a{HIDE}",
        f"body #o   p.a{HIDE}",
        f"/* x */ h1, .a , h2 {HIDE}",
        ".a { color: red; DISPLAY : None !important; }",
        ".a{visibility:hidden}",
        f"@media screen{{.a{HIDE}}}",
        f"@media all{{@media screen{{.a{HIDE}}}}}",
        f".a{{display:block}} .a{HIDE}",
        f".a.b{HIDE} .a{{display:block}}",
        f"#i{HIDE} .a.b{{display:block}}",
        ".a{display:none!important} #i{display:block}",
        f"}} ;; .broken {{{{ }}}} .a{HIDE}",
    ],
)
def test_what_a_rule_hides_is_not_read(rule: str) -> None:
    page = "<div id=o><p class='a b' id=i>hidden <b>words</b></p><p class=c id=j>seen</p></div>"
    assert "hidden" not in seen(rule, page)
    if not rule.lower().startswith("p{"):
        assert "seen" in seen(rule, page)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        f".A{HIDE}",
        f".c .a{HIDE}",
        f".a .b{HIDE}",
        f".a:hover{HIDE}",
        f".a::before{HIDE}",
        f":not(.x){HIDE}",
        f"@media print{{.a{HIDE}}}",
        f"@media screen and (max-width: 600px){{.a{HIDE}}}",
        f"@supports (display: grid){{.a{HIDE}}}",
        f".a{HIDE} .a{{display:block}}",
        f".a{HIDE} .a.b{{display:flex}}",
        ".a{display:inline}",
        ".a{background:url(display:none)}",
        ".a{content:'display:none'}",
        ".a{--display:none}",
    ],
)
def test_what_may_be_seen_is_read(rule: str) -> None:
    assert seen(rule, "<div><p class='a b' id=i>seen</p></div>") == ["seen"]


def test_style_sheets_for_other_media_hide_nothing() -> None:
    assert seen(f".a{HIDE}", "<p class=a>seen</p>", " media=print") == ["seen"]
    assert seen(f".a{HIDE}", "<p class=a>hidden</p>", " media='print, screen'") == []


def test_style_sheets_in_the_body_count() -> None:
    assert html(f"<p class=a>hidden</p><style>.a{HIDE}</style><p>seen</p>")[0].split() == ["seen"]


def test_hostile_style_sheets_take_linear_time() -> None:
    page = "<p class='" + " ".join(f"c{n}" for n in range(200)) + "'>seen</p>"
    for sheet in (
        "@media all{" * 5_000 + ".a{display:none}",
        "a" * 600_000,
        ".a," * 100_000 + ".b{display:none}",
        "".join(f".x{n} .c{n % 200}{HIDE}" for n in range(20_000)),
        "." + ".".join(["a"] * 50_000) + HIDE,
        "((((" * 50_000,
    ):
        assert seen(sheet, page * 20) == ["seen"] * 20
