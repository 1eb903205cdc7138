"""Python threads that compute in C and in Python, sleep, and pass work to each other.

usage: busy.py run
       busy.py doze SECONDS (the threads only sleep, over and over, below nested calls)
"""

import functools
import hashlib
import json
import queue
import re
import sys
import threading
import time


def nested(depth, end):
    """Calls `end` below `depth` calls that go through the interpreter's C code."""
    if depth == 0:
        return end()
    return max([depth], key=lambda level: nested(level - 1, end) or 0)


def compute():
    text = json.dumps([{"key": number, "text": "x" * number} for number in range(100)])
    hashlib.sha256(text.encode() * 20).hexdigest()
    words = re.findall(r'"k(e)y": (\d+)', text)
    words.sort(key=lambda word: word[1])
    functools.reduce(lambda sum, word: sum + len(word), words, 0)


def burn(work):
    while True:
        nested(3, compute)
        if work.empty():
            work.put(threading.current_thread().name)


def take(work):
    while True:
        nested(2, work.get)


def doze(seconds, depth):
    while True:
        nested(depth, lambda: time.sleep(seconds))


def main():
    work = queue.SimpleQueue()
    if sys.argv[1] == "doze":
        seconds = float(sys.argv[2])
        bodies = [functools.partial(doze, seconds, depth) for depth in range(4)]
    else:
        seconds = 0.005
        bodies = [
            functools.partial(burn, work),
            functools.partial(take, work),
            functools.partial(doze, 0.003, 4),
        ]
    for body in bodies:
        threading.Thread(target=body, daemon=True).start()
    time.sleep(0.2)
    print("ready", flush=True)
    doze(seconds, 5)


main()
