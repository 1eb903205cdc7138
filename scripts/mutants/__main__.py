"""mutants LIST FOLDER [PACKAGE...]: holds cargo-mutants' changes to the packages of shared/ and
tools/, or to those named, against all tests.

LIST is what `cargo mutants --list --json` printed. All changes are built in at once, in FOLDER,
and a variable says which is made: to build one takes longer than most tests do. FOLDER/apart.txt
gets a regular expression for each that cannot be built in so. FOLDER/judged.jsonl gets a line for
each that was held against tests: a later run asks no test again that did not notice, and none
about what was noticed. Who changed a test removes the file.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import threading

import building
import changes
import testing

# So many seconds of tests for a change at first, then for one that these did not notice.
BUDGETS = (20, int(os.environ.get("PATIENCE", "120")))


class Judge:
    """Which changes are noticed, by which test."""

    def __init__(self, build, runner, tests, journal):
        self.build, self.runner, self.journal = build, runner, journal
        self.reaching = collections.defaultdict(list)
        for test in tests:
            for function in test.reaches:
                self.reaching[function].append(test)
        self.noticed, self.asked = {}, collections.defaultdict(set)
        self.by_file = collections.defaultdict(collections.Counter)
        self.lock = threading.Lock()
        numbers = {change["name"]: number for number, change in build.numbered.items()}
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
            name, by, how, asked = json.loads(line)
            if name in numbers:
                self.note(numbers[name], by, how, asked)

    def note(self, number, by, how, asked):
        """Takes down that a test noticed a change, if one did, and which did not."""
        self.asked[number].update(asked)
        if by is not None:
            self.noticed[number] = (by, how)
            self.by_file[self.build.numbered[number]["file"]][by] += 1

    def order(self, change):
        """Which tests come first: what noticed other changes in the file, then the quick."""
        with self.lock:
            noticed = dict(self.by_file[change["file"]])
        return lambda test: (-noticed.get(test.name, 0) / (1 + test.took), test.took)

    def judge(self, number, budget, is_wanted):
        """Holds a change against tests, those for which is_wanted, until one notices."""
        change = self.build.numbered[number]
        tests = [
            test for test in self.reaching[change["function"]]
            if is_wanted(test) and test.name not in self.asked[number]
        ]
        tests.sort(key=self.order(change))
        quick = [test for test in tests if test.is_quick()]
        by, how = self.runner.quick_that_notices(quick, number)
        asked = [] if how else [test.name for test in quick]
        for test in (t for t in tests if not t.is_quick()):
            if how or budget < 0:
                break
            budget -= test.took
            how = self.runner.notices(test, number)
            if how:
                by = test
            else:
                asked.append(test.name)
        by = by and by.name
        with self.lock, self.journal.open("a", encoding="utf-8") as journal:
            self.note(number, by, how, asked)
            print(json.dumps([change["name"], by, how, asked]), file=journal)

    def judge_all(self, cpus):
        """Quick tests first, many at a time; then those that hold times, in peace."""
        passes = [
            (BUDGETS[0], 3 * cpus, lambda test: test.side_by_side(cpus) > cpus),
            (BUDGETS[1], cpus, lambda test: not test.is_quick() and test.side_by_side(cpus) > 1),
        ]
        for budget, at_once, is_wanted in passes:
            left = [number for number in self.build.numbered if number not in self.noticed]
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                jobs = [pool.submit(self.judge, number, budget, is_wanted) for number in left]
                for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                    job.result()
                    if count % 100 == 0:
                        print(f"{count} of {len(left)}, {len(self.noticed)} noticed", file=sys.stderr)

    def report(self):
        """What was missed, and how many of each package."""
        rows = collections.defaultdict(collections.Counter)
        by_name = {change["name"]: change for change in self.build.wanted}
        for name in self.build.unviable:
            rows[by_name[name]["package"]]["unviable"] += 1
        for name in self.build.apart:
            rows[by_name[name]["package"]]["apart"] += 1
        for number, change in self.build.numbered.items():
            by, how = self.noticed.get(number, (None, "missed"))
            rows[change["package"]][how] += 1
            if by is None:
                reach = len(self.reaching[change["function"]])
                print(f"MISSED, {reach} tests reach it | {change['name']}")
        columns = ["failed", "out of time", "missed", "unviable", "apart"]
        print(f"\n| package | changes | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
        for package, row in sorted(rows.items()):
            cells = " | ".join(str(row[column]) for column in columns)
            print(f"| {package} | {sum(row.values())} | {cells} |")


def main():
    """Builds, runs all tests once, and judges."""
    listing, folder, *named = sys.argv[1:]
    repository = pathlib.Path(__file__).resolve().parents[2]
    packages = [
        str(path.relative_to(repository))
        for path in (*repository.glob("shared/*"), *repository.glob("tools/*"))
        if not named or path.name in named
    ]
    apart = pathlib.Path(folder) / "apart.txt"
    apart.write_text("", encoding="utf-8")
    wanted = changes.listed(listing, packages)
    if not wanted:
        return
    build = building.Build(repository, folder, wanted)
    tests = list(testing.tests_of(build.programs()))
    runner = testing.Runner(build.target / "release")
    cpus = len(os.sched_getaffinity(0))
    passed = runner.reach(tests, cpus)
    print(f"Of {len(tests)} tests {len(passed)} are of use here", file=sys.stderr)
    judge = Judge(build, runner, passed, pathlib.Path(folder) / "judged.jsonl")
    judge.judge_all(cpus)
    judge.report()
    apart.write_text("".join(f"{re.escape(name)}\n" for name in build.apart), encoding="utf-8")


main()
