"""A copy of the tree that has all changes built in, and the programs of it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import changes

SWITCH = pathlib.Path(__file__).with_name("switch.rs")
# Quick to build anew; what is inlined more or less is not what tests are about.
ENVIRONMENT = {
    "RUSTFLAGS": "--cap-lints=allow",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
}
ARM = re.compile(r"^(\d+) => ")
# What tests need beside the tree: `make test` puts it there.
FETCHED = ["tests/viewers/node_modules", "tests/pypi/venv"]


class Build:
    """The copy, in a folder of its own."""

    def __init__(self, repository, folder, wanted):
        """With these changes; `numbered` has those that could be built in."""
        self.repository, self.folder = pathlib.Path(repository), pathlib.Path(folder)
        self.tree, self.target = self.folder / "tree", self.folder / "target"
        self.wanted = wanted
        self.apart, self.unviable, self.numbered = [], [], {}
        self.copy()
        self.set_apart()
        self.build_in()
        while errors := self.errors():
            broken = {number for error in errors for number in self.blamed(error)}
            if not broken:
                sys.exit(f"mutants: no change is to blame for: {errors[0]['rendered']}")
            self.unviable += [self.numbered[number]["name"] for number in broken]
            self.build_in()
            print(f"{len(self.unviable)} changes do not compile", file=sys.stderr)

    def copy(self):
        """Brings the copy up to date; what is the same keeps its time."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=self.repository, check=True, stdout=subprocess.PIPE)
        files = [name for name in os.fsdecode(listing.stdout).split("\0") if name]
        files = [name for name in files if (self.repository / name).exists()]
        known = set(files) | set(FETCHED)
        for path in self.tree.rglob("*") if self.tree.exists() else ():
            name = str(path.relative_to(self.tree))
            if not path.is_dir() and name not in known:
                path.unlink()
        changed = {change["file"] for change in self.wanted}
        for name in set(files) - changed:
            self.put(name, (self.repository / name).read_bytes())
            shutil.copymode(self.repository / name, self.tree / name)
        for name in FETCHED:
            if not (self.tree / name).is_symlink():
                (self.tree / name).symlink_to(self.repository / name)

    def put(self, name, content):
        """Writes a file of the copy, unless it has that content."""
        path = self.tree / name
        if name.endswith(("src/lib.rs", "src/main.rs")) and name.startswith(("shared", "tools")):
            content += f'\n#[path = "{SWITCH}"]\n#[doc(hidden)]\nmod mutants;\n'.encode()
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def set_apart(self):
        """Those changes that are in no function, or in one that cannot ask. And those that
        yield what is borrowed for changing where it is not: the compiler would blame them all."""
        sources = {}
        for change in self.wanted:
            text = (self.repository / change["file"]).read_text(encoding="utf-8")
            source = sources.setdefault(change["file"], changes.Source(text, [], 1))
            if not source.can_ask(change):
                self.apart.append(change["name"])
            elif changes.is_iterator(change) and "Box::leak(" in change["replacement"]:
                self.unviable.append(change["name"])

    def build_in(self):
        """Writes the sources with all changes but those apart or unviable."""
        left_out = set(self.apart) | set(self.unviable)
        by_file = {change["file"]: [] for change in self.wanted}
        for change in self.wanted:
            if change["name"] not in left_out:
                by_file[change["file"]].append(change)
        self.numbered, self.arms = {}, {}
        for name in sorted(by_file):
            text = (self.repository / name).read_text(encoding="utf-8")
            source = changes.Source(text, by_file[name], len(self.numbered) + 1)
            self.numbered.update(source.numbered)
            self.arms[name] = arms(source.result)
            self.put(name, source.result.encode())

    def cargo(self, *arguments, stdout=None):
        """Runs cargo in the copy."""
        environment = {**os.environ, **ENVIRONMENT, "CARGO_TARGET_DIR": str(self.target)}
        command = [os.environ.get("CARGO", "cargo"), *arguments, "--locked", "--quiet"]
        return subprocess.run(command, cwd=self.tree, env=environment, stdout=stdout, check=False)

    def errors(self):
        """What the compiler says of the tree as it is."""
        checked = self.cargo(
            "check", "--workspace", "--keep-going", "--message-format=json", stdout=subprocess.PIPE
        )
        messages = [json.loads(line) for line in checked.stdout.splitlines()]
        messages = [m["message"] for m in messages if m["reason"] == "compiler-message"]
        errors = [m for m in messages if m["level"] == "error" and m["spans"]]
        if checked.returncode and not errors:
            sys.exit("mutants: the tree cannot be checked, as said above")
        return errors

    def blamed(self, error):
        """The numbers of the changes that an error is in, by its lines."""
        spans = sorted(error["spans"], key=lambda span: not span["is_primary"])
        for span in spans:
            of_line = self.arms.get(span["file_name"].removeprefix(f"{self.tree}/"), [])
            if span["line_start"] <= len(of_line) and of_line[span["line_start"] - 1]:
                yield of_line[span["line_start"] - 1]
                return

    def programs(self):
        """Builds the tools, and the tests, of which cargo's messages are returned."""
        tools = [f"-p{path.name}" for path in (self.tree / "tools").iterdir()]
        if self.cargo("build", "--release", *tools).returncode:
            sys.exit("mutants: the tools with all changes do not build")
        built = self.cargo(
            "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics",
            stdout=subprocess.PIPE,
        )
        if built.returncode:
            sys.exit("mutants: the tests with all changes do not build")
        return [json.loads(line) for line in built.stdout.splitlines()]


def arms(text):
    """The number of the change that each line is of, or 0."""
    result, number = [], 0
    for line in text.split("\n"):
        if arm := ARM.match(line):
            number = int(arm[1])
        elif line.startswith("_ => "):
            number = 0
        result.append(number)
    return result
