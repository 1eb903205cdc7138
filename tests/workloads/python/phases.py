"""Python threads that compute or wait, each in functions of its own, and measure these times.

usage: phases.py SECONDS

Two threads compute: in Python, in C that calls Python back, and in C that releases the
interpreter's lock meanwhile. One thread sleeps, one waits for a lock, one for a queue, and one
reads a pipe. They do so between the test's line and "done".

The program prints for each function the CPU time ("on-") and the time off the CPU ("off-"), in
ns. It also prints the CPU time of the process ("cpu"), and the interpreter's minor version.
"""

import os
import queue
import sys
import threading
import time
import zlib

COMPUTERS = 2
NUMBERS = list(range(500))
DATA = bytes(range(256)) * 64
FUNCTIONS = "loop sort compress doze acquire take read_pipe".split()

is_over = False


def loop(turns):
    total = 0
    for number in range(turns):
        total += number


def key_of(number):
    return number * 7919 % 1009


def sort(turns):
    for _ in range(turns):
        sorted(NUMBERS, key=key_of)


def compress(turns):
    for _ in range(turns):
        zlib.compress(DATA)


def doze(seconds):
    time.sleep(seconds)


def acquire(lock):
    lock.acquire()


def take(work):
    work.get()


def read_pipe(reading):
    os.read(reading, 1)


class Spent:
    """Time that one thread spent in functions. Threads share nothing while they measure."""

    def __init__(self):
        self.on = dict.fromkeys(FUNCTIONS, 0)
        self.off = dict.fromkeys(FUNCTIONS, 0)

    def measure(self, function, argument):
        # If a thread loses the interpreter's lock between the two clocks, it has no CPU time then.
        cpu, began = time.thread_time_ns(), time.monotonic_ns()
        function(argument)
        elapsed, cpu = time.monotonic_ns() - began, time.thread_time_ns() - cpu
        self.on[function.__name__] += cpu
        self.off[function.__name__] += elapsed - cpu


def calibrated(function, ns):
    """Returns the number of turns that take so long here."""
    turns = 1
    while True:
        began = time.thread_time_ns()
        function(turns)
        took = time.thread_time_ns() - began
        if took > ns:
            return max(1, turns * ns // took)
        turns *= 2


def compute(spent, work):
    while not is_over:
        for function, turns in work:
            spent.measure(function, turns)


def wait(spent, function, argument):
    while not is_over:
        spent.measure(function, argument)


def main():
    global is_over
    seconds = float(sys.argv[1])
    work = [(loop, 5), (sort, 3), (compress, 2)]
    work = [(function, calibrated(function, parts * 2000000)) for function, parts in work]
    lock, items, (reading, writing) = threading.Lock(), queue.SimpleQueue(), os.pipe()
    lock.acquire()
    waits = [(doze, 0.02), (acquire, lock), (take, items), (read_pipe, reading)]
    spent = [Spent() for _ in range(COMPUTERS + len(waits))]
    bodies = [(compute, (one, work)) for one in spent[:COMPUTERS]]
    bodies += [(wait, (one,) + what) for one, what in zip(spent[COMPUTERS:], waits)]
    threads = [threading.Thread(target=body, args=it, daemon=True) for body, it in bodies]
    print("ready", flush=True)

    sys.stdin.readline()
    cpu, end = time.process_time_ns(), time.monotonic() + seconds
    for thread in threads:
        thread.start()
    while not is_over:
        time.sleep(0.05)
        is_over = time.monotonic() > end
        # The waiter may not have had the time to take the lock yet.
        if lock.locked():
            lock.release()
        items.put(None)
        os.write(writing, b"x")
    for thread in threads:
        thread.join()
    cpu = time.process_time_ns() - cpu
    for name in FUNCTIONS:
        on, off = sum(one.on[name] for one in spent), sum(one.off[name] for one in spent)
        print("on-%s %d off-%s %d" % (name, on, name, off))
    print("cpu %d minor %d" % (cpu, sys.version_info[1]))
    print("done", flush=True)
    sys.stdin.readline()


main()
