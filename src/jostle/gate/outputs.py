"""Outputs of a gate for build servers: JUnit XML, a Markdown summary and annotations of GitHub."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from jostle.core.formatting import percent
from jostle.gate.verdict import Check, DecidedCondition
from jostle.io.files.atomic import write_text

MAX_ANNOTATIONS = 10  # GitHub shows so many of a kind and step, and drops the others silently
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def junit(check: Check) -> str:
    """Return the check as JUnit XML (xunit2): a test case for each condition, undecided ones as errors."""
    failures, errors = (sum(one.decision == kind for one in check.conditions) for kind in ("fail", "undecided"))
    counts = {"tests": str(len(check.conditions)), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "jostle check", "time": "0", **counts})
    properties = ElementTree.SubElement(suite, "properties")
    facts = [("run", check.run), ("against", check.against or ""), ("videos", str(check.videos))]
    for key, value in (*facts, *(("gap", gap) for gap in check.gaps), *(("remark", one) for one in check.remarks)):
        ElementTree.SubElement(properties, "property", {"name": key, "value": _plain(value)})
    for one in check.conditions:
        names = {"classname": _plain(f"jostle.{check.benchmark}"), "name": _plain(" ".join(one.name.split()))}
        case = ElementTree.SubElement(suite, "testcase", {**names, "time": "0"})
        if one.decision != "pass":
            found = ElementTree.SubElement(case, "failure" if one.decision == "fail" else "error")
            found.set("message", _plain(one.text))
            found.text = _plain(_details(check, one))
        ElementTree.SubElement(case, "system-out").text = _plain(_details(check, one))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(check: Check, path: Path) -> None:
    """Write the check as a JUnit file; the target changes all at once."""
    write_text(path, [junit(check)])


def markdown(check: Check) -> str:
    """Return the check as Markdown, for the summary of a build."""
    against = f", against `{check.against}`" if check.against else ""
    lines = [f"### jostle check: {check.decision}", "", f"`{check.run}`{against}, {check.videos} videos", ""]
    remarks = [f"- {' '.join(note.split())}" for note in check.notes()]
    return "\n".join([*lines, check.tables()[0].markdown(), "", *remarks, ""])


def github_commands(check: Check) -> list[str]:
    """Return workflow commands of GitHub for the conditions that do not pass, failures first."""
    commands = []
    for kind, decision in (("error", "fail"), ("warning", "undecided")):
        found = [one for one in check.conditions if one.decision == decision]
        for one in found[:MAX_ANNOTATIONS]:
            title = _escape(f"jostle check: {one.name}").replace(":", "%3A").replace(",", "%2C")
            commands.append(f"::{kind} title={title}::{_escape(one.text)}")
    return commands[:MAX_ANNOTATIONS]


def _details(check: Check, one: DecidedCondition) -> str:
    lines = [one.text]
    if one.run is not None:
        lines.append(f"run: {check.run}, {percent(one.run)}, {one.videos} videos")
    if one.reference is not None:
        lines.append(f"reference: {check.against}, {percent(one.reference)}")
    if one.method:
        lines.append(one.method)
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Replace characters that XML does not have."""
    return _CONTROL.sub(lambda match: f"#x{ord(match[0]):02X}", text)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
