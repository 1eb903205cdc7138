"""Target of the tests, which read its memory.

usage: target.py frames     two threads block in nested calls
       target.py lines      the target keeps code objects of the standard library

The target prints "ready", and then a line of JSON for each thread or for each code object. After
the code objects it prints {}. Then it sleeps.
"""

import asyncio
import dis
import functools
import importlib
import json
import sys
import threading
import time

is_warm = False


def chain_of(frame):
    chain = []
    while frame is not None:
        code = frame.f_code
        # Versions before 3.11 have no co_qualname.
        name = getattr(code, "co_qualname", code.co_name)
        chain.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return chain


def tell(**row):
    print(json.dumps(row), flush=True)


def block():
    if not is_warm:
        return
    tell(thread=threading.get_native_id(), chain=chain_of(sys._getframe())); time.sleep(1000)


def recurse(level):
    return recurse(level - 1) if level > 1 else block()


class Made:
    def __init__(self, level):
        recurse(level)


class Größe:
    def é(self):
        return 名前()


def 名前():
    return 𠀀()


def 𠀀():
    # The interpreter specialises calls that run often.
    global is_warm
    made = 1
    for turn in range(64):
        is_warm = turn == 63
        made = Made(
            300
            if is_warm
            else 1,
        )


def key(number):
    return exec(compile("\n\nGröße().é()", "/страна/файл.py", "exec"), globals()) or 1


def generate():
    yield 1
    [1].sort(key=key)
    yield 2


async def leaf():
    await asyncio.sleep(0)
    [[number for number in generate()] for _ in range(1)]


async def middle():
    try:
        await leaf()
    finally:
        pass


class Shape:
    @property
    def area(self):
        class Body:
            asyncio.run(middle())

    @functools.lru_cache(maxsize=None)
    def cached(self):
        return (lambda: self.area)()


def other_thread(number):
    list(map(lambda _: recurse(3), [number]))


def frames():
    global is_warm
    is_warm = True
    threading.Thread(target=other_thread, args=(1,), daemon=True).start()
    time.sleep(0.1)
    is_warm = False
    Shape().cached()


MODULES = """argparse ast asyncio.base_events asyncio.tasks _pydecimal bdb calendar
collections configparser contextlib csv dataclasses datetime difflib dis doctest
email.message enum functools heapq inspect ipaddress json.decoder logging mailbox
multiprocessing.pool optparse pdb pickle pickletools platform random shutil
socketserver statistics string subprocess tarfile tempfile threading tokenize
traceback typing unittest.mock urllib.request uuid weakref zipfile""".split()

# Changes of the line that are too large for one entry of any table, forwards and backwards.
LONG = "def long():\n    f({}a,{}b,{}c)\n    return [{}]\n".format(
    "\n" * 300, "\n" * 200, "\n" * 40000, ", ".join(["a.b"] * 400)
)


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes_in(constant)


def lines_of(code):
    """Returns ranges of instructions, in bytes, and their lines."""
    if hasattr(code, "co_lines"):
        return list(code.co_lines())
    starts = [(0, code.co_firstlineno)] + list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    return [(start, end, line) for (start, line), end in zip(starts, ends)]


def begin_of(code):
    if sys.version_info < (3, 11):
        return None
    names = ((each.opname, each.offset) for each in dis.get_instructions(code))
    return next(offset for name, offset in names if name == "RESUME")


def lines():
    kept = [compile(LONG, "long", "exec")]
    for name in MODULES:
        file = importlib.import_module(name).__file__
        with open(file, encoding="utf-8") as source:
            kept.append(compile(source.read(), file, "exec"))
    for code in (code for module in kept for code in codes_in(module)):
        tell(
            address=id(code),
            name=getattr(code, "co_qualname", code.co_name),
            file=code.co_filename,
            first_line=code.co_firstlineno,
            lines=lines_of(code),
            begin=begin_of(code),
            is_generator=bool(code.co_flags & 0x2A0),
        )
    tell()
    time.sleep(1000)


print("ready", flush=True)
{"frames": frames, "lines": lines}[sys.argv[1]]()
