"""The tests, which of them reach which changes, and which notice."""

import collections
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

# A unit test that takes longer than so many seconds is none of the quick ones.
QUICK = 1
# How long a test may take where a change is made: so many times what it took, and seconds.
LONGER, ALLOWANCE = 4, 8
# And where none is. One that takes longer is of no use here.
LONGEST = 90


class Test:
    """One test of a program."""

    def __init__(self, program, path, executable, folder, is_unit):
        self.name, self.path = f"{program}::{path}", path
        self.program, self.executable, self.folder = program, executable, folder
        self.is_unit = is_unit
        self.took, self.reaches = 0.0, set()

    def is_quick(self):
        """Whether it is a unit test that runs together with others in no time."""
        return self.is_unit and self.took <= QUICK

    def side_by_side(self, cpus):
        """How many of its kind may run at a time: see tests/src/bin/run-tests."""
        if self.program in ("alone", "collect::hidden_switches"):
            return 1
        return cpus if self.program == "timed" else 3 * cpus


def tests_of(messages):
    """The tests of all programs that cargo built, but for those that others start."""
    for message in messages:
        if not message.get("executable") or not message.get("profile", {}).get("test"):
            continue
        folder = pathlib.Path(message["manifest_path"]).parent
        name, kinds = message["target"]["name"], message["target"]["kind"]
        program = name if folder.name in (name, "tests") else f"{folder.name}::{name}"
        ignored = names(message["executable"], "--ignored")
        for path in sorted(names(message["executable"]) - ignored):
            yield Test(program, path, message["executable"], folder, "test" not in kinds)


def names(executable, *arguments):
    """What a program says that its tests are."""
    command = [executable, "--list", "--format", "terse", *arguments]
    listing = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.removesuffix(": test") for line in listing.splitlines() if line.endswith(": test")}


class Runner:
    """Runs tests on the tools in a folder."""

    def __init__(self, tools):
        self.environment = {**os.environ, "SYSTEMSCOPE_BIN_DIR": str(tools)}

    def run(self, tests, change=None, seen=None, limit=LONGEST):
        """Runs tests of one program: those that did not pass, or None if time ran out."""
        command = [tests[0].executable, "--exact", *(test.path for test in tests)]
        environment = dict(self.environment)
        if change is not None:
            environment["MUTANT"] = str(change)
        if seen is not None:
            environment["MUTANTS_SEEN"] = str(seen)
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command, cwd=tests[0].folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            )
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                # Helpers of a test that has ended are ended, too.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace")
        passed = set(re.findall(r"^test (\S+) \.\.\. ok$", text, re.MULTILINE))
        return [test for test in tests if test.path not in passed]

    def reach(self, tests, cpus):
        """Runs all tests as they are, and notes what each reaches. Those that pass."""
        passed = []

        def run(test):
            with tempfile.TemporaryDirectory() as folder:
                # Some tests run tools as somebody else.
                os.chmod(folder, 0o777)
                seen, begun = pathlib.Path(folder) / "seen", time.monotonic()
                if self.run([test], seen=seen) == []:
                    test.took = time.monotonic() - begun
                    test.reaches = set(map(int, seen.read_text().split())) if seen.exists() else set()
                    passed.append(test)

        kinds = collections.defaultdict(list)
        for test in tests:
            kinds[test.side_by_side(cpus)].append(test)
        for at_once in sorted(kinds, reverse=True):
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                list(pool.map(run, kinds[at_once]))
        return passed

    def notices(self, test, change):
        """Whether a test fails with a change, passes without, and fails again: "failed",
        "out of time", or None."""
        limit = LONGER * test.took + ALLOWANCE
        # The machine may disturb any of them.
        for _ in range(2):
            first = self.run([test], change, limit=limit)
            if first == []:
                return None
            if self.run([test], limit=limit) == []:
                break
        else:
            return None
        if first is None:
            return "out of time"
        return "failed" if self.run([test], change, limit=limit) else None

    def quick_that_notices(self, tests, change):
        """Of tests that are quick, one that notices, and how. They run together."""
        by_executable = collections.defaultdict(list)
        for test in tests:
            by_executable[test.executable].append(test)
        for of_one in by_executable.values():
            limit = 2 * sum(test.took for test in of_one) + ALLOWANCE
            failed = self.run(of_one, change, limit=limit)
            # If time ran out or all ended, any of them may be the cause.
            for test in of_one if failed is None else failed:
                if how := self.notices(test, change):
                    return test, how
        return None, None
