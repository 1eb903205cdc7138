"""Many short sleeps below nested calls. Each call is of another function.

usage: deep.py FUNCTIONS

The program prints "minor" with the interpreter's minor version, and "ready".
"""

import sys
import time


def stay():
    while True:
        time.sleep(0.00002)


def main():
    functions = int(sys.argv[1])
    names = ["f%d" % number for number in range(functions - 1)] + ["stay"]
    calls = zip(names, names[1:])
    text = "".join("def %s():\n    %s()\n" % call for call in calls)
    exec(text, globals())
    print("minor %d" % sys.version_info[1])
    print("ready", flush=True)
    # The caller calls the returned function outside main, so only these functions are below the
    # module.
    return globals()[names[0]]


main()()
