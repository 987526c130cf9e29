"""Types encode trust: who may make a claim or a refusal, and what is never imported where."""

import ast
import pathlib

import onrecord

PACKAGE = pathlib.Path(onrecord.__file__).parent


def makers(name: str) -> set[str]:
    """The modules in which a value of this type is made."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if called == name:
                    found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_only_the_verifier_makes_claims() -> None:
    assert makers("Claim") == {"answer/verify.py"}


def test_only_the_guard_makes_refusals() -> None:
    assert makers("Refusal") == {"answer/guard.py"}


def test_only_the_guard_makes_answers() -> None:
    assert makers("Answer") == {"answer/guard.py"}
