"""Threads that wait for Python's global lock, and know who held it.

A holder wakes the waiters and sleeps in C, without letting go of the lock: they come back
from what they waited in, and wait for the lock. Holders take turns.

usage: global_lock.py ROUNDS    it says ready, waits for a line, and writes, for each waiter
                                and holder, a line: the kernel's ID of the waiter's thread, of
                                the holder's, and for how many nanoseconds the one has waited
                                for the other, off the CPU: it looks every 5 ms whether it may
                                go on
"""

import collections
import ctypes
import os
import sys
import threading
import time

HOLDERS = 3
WAITERS = 2
HELD_US = 50_000

# Other than a CDLL, it calls functions without letting go of the lock.
libc = ctypes.PyDLL(None)
clock = time.monotonic_ns
waited = collections.Counter()
# Whose turn it was last, and when it woke the others.
turn = (0, 0)


def hold_the_lock(begin, wakes):
    global turn
    me = threading.get_native_id()
    while os.read(begin, 1):
        turn = (me, clock())
        for wake in wakes:
            libc.write(wake, b"x", 1)
        libc.usleep(HELD_US)


def wait_for_the_lock(woken, done):
    me = threading.get_native_id()
    ran = time.thread_time_ns()
    while os.read(woken, 1):
        holder, since = turn
        waited[me, holder] += clock() - since - (time.thread_time_ns() - ran)
        ran = time.thread_time_ns()
        os.write(done, b"d")


def main():
    rounds = int(sys.argv[1])
    finished, done = os.pipe()
    turns = [os.pipe() for _ in range(HOLDERS)]
    # One each, or who is quick is woken twice.
    waits = [os.pipe() for _ in range(WAITERS)]
    wakes = [wake for _, wake in waits]
    waiters = [(wait_for_the_lock, (woken, done)) for woken, _ in waits]
    holders = [(hold_the_lock, (begin, wakes)) for begin, _ in turns]
    threads = [threading.Thread(target=what, args=with_) for what, with_ in waiters + holders]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(rounds):
        os.write(turns[number % HOLDERS][1], b"t")
        for _ in range(WAITERS):
            os.read(finished, 1)
    for (waiter, holder), time_waited in waited.items():
        print("waited", waiter, holder, time_waited)
    print("done", flush=True)
    sys.stdin.readline()
    for _, end in turns + waits:
        os.close(end)
    for thread in threads:
        thread.join()


main()
