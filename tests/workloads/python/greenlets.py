# SPDX-License-Identifier: MIT
"""Two greenlets that take turns: one computes, the other one sleeps."""

import threading
import time

import greenlet


def leave_with_test():
    import os
    import sys

    sys.stdin.readline()
    os._exit(0)


def spin():
    count = 0
    for number in range(200000):
        count += number
    return count


def doze():
    time.sleep(0.01)


def spinner():
    while True:
        spin()
        sleeping.switch()


def sleeper():
    while True:
        doze()
        spinning.switch()


threading.Thread(target=leave_with_test, daemon=True).start()
spinning = greenlet.greenlet(spinner)
sleeping = greenlet.greenlet(sleeper)
print("ready", flush=True)
spinning.switch()
