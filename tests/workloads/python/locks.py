"""Threads that want locks of Python, and a thread that holds all of them nearly all of the time.

The program prints "ready", and ends with standard input.
"""

import queue
import sys
import threading
import time

HELD = 0.01
FREE = 0.0002
# Pause in s, which keeps each thread from holding the interpreter's lock for long.
PAUSE = 0.001

lock = threading.Lock()
rlock = threading.RLock()
semaphore = threading.Semaphore(0)
condition = threading.Condition()
numbers = queue.SimpleQueue()


def want_lock():
    with lock:
        pass


def want_rlock():
    with rlock:
        pass


def want_semaphore():
    semaphore.acquire()


def want_condition():
    with condition:
        condition.wait()


def want_number():
    numbers.get()


def want_end(thread):
    thread.join()


def start_and_end():
    thread = threading.Thread(target=time.sleep, args=(HELD,))
    thread.start()
    want_end(thread)


def let_go():
    rlock.release()
    lock.release()
    semaphore.release()
    numbers.put(1)
    with condition:
        condition.notify_all()


def hold_all():
    lock.acquire()
    rlock.acquire()
    time.sleep(HELD)
    let_go()


def for_good(what, pause):
    while True:
        what()
        time.sleep(pause)


for work, pause in (
    (hold_all, FREE),
    (want_lock, PAUSE),
    (want_rlock, PAUSE),
    (want_semaphore, PAUSE),
    (want_condition, PAUSE),
    (want_number, PAUSE),
    (start_and_end, PAUSE),
):
    threading.Thread(target=for_good, args=(work, pause), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
