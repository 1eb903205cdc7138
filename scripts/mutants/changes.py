"""The changes that cargo-mutants lists, and the source with all of them built in.

A function with changes becomes one that has each of them and its own body, and asks which
it is:

    fn first(&self) -> u32 {
        match crate::mutants::made(17) {
            17 => { 0 }
            18 => { self.second() - 1 }
            _ => { self.second() + 1 }
        }
    }

One that returns an iterator of a type that only the compiler can name returns one of several.
"""

import collections
import json
import re

CONSTANT = re.compile(r"\bconst\s+(unsafe\s+)?fn\b")


def listed(path, packages):
    """The changes of packages (folders with src/) in what cargo-mutants listed."""
    with open(path, encoding="utf-8") as file:
        changes = json.load(file)
    folders = tuple(f"{package}/" for package in packages)
    return [change for change in changes if change["file"].startswith(folders)]


def opening_brace(text, at):
    """Where the body begins of the function whose attributes, name and types begin at `at`."""
    depth = 0
    while text[at] != "{" or depth:
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text[at] == '"':
            at = re.compile(r'"(\\.|[^"\\])*"', re.DOTALL).match(text, at).end()
            continue
        depth += (text[at] in "([") - (text[at] in ")]")
        at += 1
    return at


class Source:
    """A file, with the changes in its functions built in."""

    def __init__(self, text, changes, first):
        """The changes are numbered from `first` on: `numbered` has them by number."""
        self.text = text
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.numbered = {}
        self.next = first
        self.functions = collections.defaultdict(list)
        for change in changes:
            self.functions[self.span(change["function"])].append(change)
        self.result = self.within(0, len(text))

    def span(self, item):
        """From where to where in the text."""
        ends = (item["span"]["start"], item["span"]["end"])
        return tuple(self.lines[end["line"] - 1] + end["column"] - 1 for end in ends)

    def can_ask(self, change):
        """Whether the change is in the body of a function that can ask whether it is made."""
        if change["function"] is None:
            return False
        begin, _ = self.span(change["function"])
        return not CONSTANT.search(self.text[begin : opening_brace(self.text, begin)])

    def within(self, begin, end):
        """The text from one place to another, with the functions in it changed."""
        inside = [f for f in self.functions if begin <= f[0] and f[1] <= end]
        result, at = "", begin
        for function in sorted(inside, key=lambda f: (f[0], -f[1])):
            # What is inside another one is changed with it.
            if function[0] >= at:
                body = opening_brace(self.text, function[0])
                result += self.text[at:body] + self.changed(function, body)
                at = function[1]
        return result + self.text[at:end]

    def changed(self, function, body):
        """The body of a function that asks which of its changes is made."""
        first, bodies = self.next, []
        for change in self.functions[function]:
            begin, end = self.span(change)
            whole = self.text[body:begin] + change["replacement"] + self.text[end : function[1]]
            bodies.append((self.next, whole))
            self.numbered[self.next] = dict(change, function=first)
            self.next += 1
        bodies.append(("_", self.within(body, function[1])))
        if is_iterator(self.functions[function][0]):
            bodies = one_type(bodies)
        arms = ",\n".join(f"{number} => {whole}" for number, whole in bodies)
        return f"{{ match crate::mutants::made({first}) {{\n{arms}\n}} }}"


def is_iterator(change):
    """Whether the change's function returns an iterator of a type that has no name."""
    return "impl Iterator" in change["function"]["return_type"]


def one_type(bodies):
    """Bodies that each have a type of their own, made one type."""
    last = len(bodies) - 1
    for depth, (number, whole) in enumerate(bodies):
        for which in ["First"] * (depth < last) + ["Second"] * depth:
            whole = f"crate::mutants::One::{which}({whole})"
        yield number, whole

