"""Threads that wait for Python's global lock, and record which thread held it.

A holder wakes the waiters and sleeps in C without releasing the lock. The waiters return from
their reads, and wait for the lock. Holders take turns.

usage: global_lock.py ROUNDS

The program prints "ready", waits for a line, and prints a line for each waiter and holder: the
kernel's thread ID of the waiter, the ID of the holder, and the time in ns for which the waiter
waited for the holder off the CPU. A waiter checks every 5 ms whether it may continue.
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

# Unlike a CDLL, a PyDLL calls functions without releasing the lock.
libc = ctypes.PyDLL(None)
clock = time.monotonic_ns
waited = collections.Counter()
# Thread of the last turn, and the time at which this thread woke the others.
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
    # Each waiter has its own pipe. With a shared pipe a quick waiter would wake twice.
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
