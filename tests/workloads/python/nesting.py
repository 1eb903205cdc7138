"""Known nestings of Python calls, at the end of which a thread blocks or computes.

usage: nesting.py TRUTH        each scene blocks twice: in its first run, and after enough runs
                               for the interpreter to specialise it
       nesting.py TRUTH busy   prints "ready", waits for a line, computes 50 ms in each scene,
                               prints "done", and waits for another line
       nesting.py TRUTH gil    one thread holds the interpreter's lock, two threads wait for it
       nesting.py TRUTH hold   each scene blocks for ever, in a thread of its own; prints "ready",
                               and on SIGUSR1 faulthandler writes to TRUTH.dump

At its end, or before "ready" with hold, the program writes to TRUTH a line of JSON for each run of
a scene:
  scene     name of the scene
  chain     [name, file, line] of each frame, outermost first, from the interpreter
  thread    kernel's ID of the thread
  ident     interpreter's ID of the thread, which is its POSIX ID
  seconds   shortest time for which the scene blocked, or the time for which it computed
  elapsed   time from before the action until after it, in seconds
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import functools
import json
import os
import signal
import sys
import tempfile
import threading
import time
import weakref
import zlib

# Number of runs after which every version has specialised the code.
WARM = 64
DEPTH = 500
FOREVER = 10**6

clock = time.monotonic
SCENES = []
truth = []
# Action of the innermost function.
action = None
current = None
pause = 0.01


def scene(function):
    """Registers a function as a scene of each mode."""
    SCENES.append((function.__name__, function))
    return function


def chain_of(frame):
    chain = []
    while frame is not None:
        code = frame.f_code
        # Versions before 3.11 have no co_qualname.
        name = getattr(code, "co_qualname", code.co_name)
        chain.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return chain[::-1]


def tell(frame, seconds, elapsed):
    """Records the thread's frames after the action, because reading frames changes them."""
    row = {"scene": current, "chain": chain_of(frame), "seconds": seconds}
    ids = {"thread": threading.get_native_id(), "ident": threading.get_ident()}
    truth.append(dict(row, elapsed=elapsed, **ids))


def innermost():
    """Function that each scene calls, so that its call is specialised as other calls are."""
    if action is None:
        return
    # A frame is on the line of its call, so these statements must share a line.
    if action == "block":
        began = clock(); time.sleep(pause); tell(sys._getframe(), pause, clock() - began)
        return
    if action == "hold":
        tell(sys._getframe(), 0, 0); time.sleep(FOREVER)
    began, cpu = clock(), time.thread_time()
    end = cpu + 0.05
    if action == "loop":
        total = 0
        while time.thread_time() < end:
            for number in range(1000):
                total += number
    elif action == "sum":
        while time.thread_time() < end:
            sum(range(10000))
    else:
        data = bytes(range(256)) * 100
        while time.thread_time() < end:
            zlib.compress(data)
    tell(sys._getframe(), time.thread_time() - cpu, clock() - began)


@scene
def plain():
    def inner():
        innermost()

    def outer(first, *others, **named):
        inner()

    outer(1, 2, three=3)


class Shape:
    side = 2

    def area(self):
        self.measure(self.side)

    @classmethod
    def measure(cls, side):
        cls.round(side)

    @staticmethod
    def round(side):
        innermost()


class Square(Shape):
    def area(self):
        super().area()


@scene
def methods():
    Square().area()


@scene
def closure():
    depth = 3

    def descend(level):
        if level < depth:
            return descend(level + 1)
        innermost()

    descend(0)


@scene
def comprehensions():
    def in_a_list():
        return [innermost() for _ in range(1)]

    {key: in_a_list() for key in range(1)}


@scene
def a_set_comprehension():
    {innermost() for _ in range(1)}


@scene
def a_generator_expression():
    sum(1 for _ in range(1) if innermost() is None)


@scene
def generators():
    def leaf():
        yield 1
        innermost()
        yield 2

    def middle():
        yield from leaf()

    for _ in middle():
        pass


@scene
def a_generator_that_is_closed():
    def generator():
        try:
            yield
        finally:
            innermost()

    running = generator()
    next(running)
    running.close()


@scene
def a_generator_that_is_thrown_at():
    def generator():
        try:
            yield
        except ValueError:
            innermost()
            yield

    running = generator()
    next(running)
    running.throw(ValueError("thrown"))


class Made:
    def __new__(cls, *arguments):
        return super().__new__(cls)

    def __init__(self, run=innermost):
        self.prepare(run)

    def prepare(self, run):
        run()


class MadeSimply:
    def __init__(self):
        innermost()


@scene
def a_new_object():
    Made(innermost)


@scene
def a_new_simple_object():
    MadeSimply()


class Meta(type):
    def __call__(cls, *arguments):
        return super().__call__(*arguments)


@scene
def a_metaclass():
    class OfMeta(Made, metaclass=Meta):
        pass

    OfMeta()


@scene
def a_class_body():
    class Body:
        value = innermost()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named)

    return wrapper


@decorated
@decorated
def with_decorators():
    innermost()


@scene
def decorators():
    with_decorators()


@functools.lru_cache(maxsize=None)
def cached(key):
    innermost()


@functools.singledispatch
def dispatched(value):
    raise TypeError(value)


@dispatched.register(int)
def of_an_int(value):
    innermost()


@scene
def a_cache():
    cached.cache_clear()
    cached(1)


@scene
def a_single_dispatch():
    dispatched(1)


def key_of(number):
    innermost()
    return number


@scene
def a_sort_key():
    [1].sort(key=key_of)


@scene
def a_map():
    list(map(key_of, [1]))


@scene
def reduce():
    functools.reduce(lambda sum, number: innermost(), [1, 2])


@scene
def a_partial():
    functools.partial(key_of, 1)()


class Attributes:
    @property
    def computed(self):
        return self.missing

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, key):
        innermost()


@scene
def attributes():
    Attributes().computed


class Operators:
    def __call__(self):
        return self + self

    def __add__(self, other):
        return self in [Operators()]

    def __eq__(self, other):
        return hash(self)

    def __hash__(self):
        for number in self:
            return number

    def __iter__(self):
        return self

    def __next__(self):
        innermost()
        return 1


@scene
def operators():
    Operators()()


class Deleted:
    def __del__(self):
        innermost()


@scene
def a_deleted_object():
    deleted = Deleted()
    del deleted


@scene
def a_weak_reference():
    watched = Deleted.__new__(Made)
    reference = weakref.ref(watched, lambda _: innermost())
    del watched


@contextlib.contextmanager
def managed():
    yield
    innermost()


@scene
def a_context_manager():
    with managed():
        pass


def recurse(level):
    if level > 1:
        return recurse(level - 1)
    innermost()


@scene
def recursion():
    recurse(DEPTH)


def recurse_through_c(level):
    def key(level):
        return (recurse_through_c(level - 1) if level else innermost()) or 0

    return max([level], key=key)


@scene
def recursion_through_c():
    recurse_through_c(5)


# Names with one, two and four bytes a character.
class Größe:
    def é(self):
        名前()


def 名前():
    𠀀()


def 𠀀():
    innermost()


@scene
def names_that_are_not_ascii():
    Größe().é()


# Each is compiled once, because the interpreter specialises only code that it runs repeatedly.
MADE = compile("def made():\n\n    innermost()\nmade()\n", "made/of text.py", "exec")
ABROAD = compile("innermost()", "/страна/файл.py", "exec")
TEXT = compile("\ninnermost()", "<string>", "eval")


@scene
def code_from_text():
    exec(MADE, globals())


@scene
def code_with_a_file_that_is_not_ascii():
    exec(ABROAD)


@scene
def an_expression_from_text():
    eval(TEXT)


@scene
def a_lambda():
    (lambda: (lambda: innermost())())()


@scene
def an_import():
    sys.modules.pop("imported_by_nesting", None)
    import imported_by_nesting


@scene
def a_signal_handler():
    signal.signal(signal.SIGUSR1, lambda number, frame: innermost())
    signal.raise_signal(signal.SIGUSR1)


@scene
def a_callback_from_ctypes():
    integers = (ctypes.c_int * 2)(1, 2)
    libc.qsort(integers, 2, ctypes.sizeof(ctypes.c_int), compare_in_c)


def compare(left, right):
    innermost()
    # qsort compares equal elements once.
    return 0


@scene
def a_thread_that_is_not_pythons():
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, start_in_c, None)
    libc.pthread_join(thread, None)


def start(argument):
    innermost()


libc = ctypes.CDLL(None)
start_in_c = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(start)
compare_in_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(compare)


@scene
def an_exception_handler():
    try:
        raise ValueError("raised")
    except ValueError:
        innermost()
    finally:
        pass


@scene
def a_thread():
    thread = threading.Thread(target=key_of, args=(1,), name="a thread of its own")
    thread.start()
    thread.join()


async def await_leaf():
    await asyncio.sleep(0)
    innermost()


async def await_middle():
    async with Managed():
        async for _ in numbers():
            return


async def numbers():
    await await_leaf()
    yield 1


class Managed:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *raised):
        return False


async def await_task():
    await asyncio.gather(await_middle())


@scene
def coroutines():
    asyncio.run(await_middle())


@scene
def a_task():
    asyncio.run(await_task())


def blocks_elsewhere(function):
    """Registers a scene that ends in a wait of its own instead of innermost()."""
    BLOCKING.append((function.__name__, function))
    return function


BLOCKING = []


@blocks_elsewhere
def a_pipe():
    reading, writing = os.pipe()
    written = []

    def write_later():
        time.sleep(pause)
        written.append(clock())
        os.write(writing, b"x")

    writer = threading.Thread(target=write_later)
    writer.start()
    began = clock(); os.read(reading, 1); tell(sys._getframe(), written[0] - began, clock() - began)
    writer.join()
    os.close(reading)
    os.close(writing)


@blocks_elsewhere
def a_lock():
    lock, is_held, released = threading.Lock(), threading.Event(), []

    def hold():
        with lock:
            is_held.set()
            time.sleep(pause)
            released.append(clock())

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    began = clock(); lock.acquire(); tell(sys._getframe(), released[0] - began, clock() - began)
    holder.join()


def once(function):
    function()


def warmed(function):
    function()


def block():
    global action, current, pause
    for name, function in SCENES + BLOCKING:
        for run in once, warmed:
            if run is warmed and function not in [scene for _, scene in BLOCKING]:
                action = None
                for _ in range(WARM):
                    run(function)
            action, current = "block", name + ", " + run.__name__
            run(function)
            # Each scene blocks for a time of its own.
            pause += 0.0005


def busy():
    global action, current
    for _, function in SCENES:
        for _ in range(WARM):
            warmed(function)
    print("ready", flush=True)
    sys.stdin.readline()
    for index, (name, function) in enumerate(SCENES):
        action, current = ["loop", "sum", "compress"][index % 3], name
        warmed(function)
    action = None


def hold():
    global action, current
    # The variable keeps the file open.
    dump = open(sys.argv[1] + ".dump", "w")
    faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
    # Python runs signal handlers in the main thread.
    scenes = [pair for pair in SCENES if pair[1] is not a_signal_handler]
    for _, function in scenes:
        for _ in range(WARM):
            warmed(function)
    action = "hold"
    for current, function in scenes:
        threading.Thread(target=warmed, args=(function,), daemon=True).start()
        # The next scene changes `current`.
        while not truth or truth[-1]["scene"] != current:
            time.sleep(0.001)


def hold_the_lock(count, is_held):
    began, cpu = clock(), time.thread_time()
    # No other thread gets the lock before a sum is done.
    for _ in range(5):
        sum(range(count)); is_held.set()
    tell(sys._getframe(), time.thread_time() - cpu, clock() - began)


def wait_for_the_lock(holder, is_held):
    is_held.wait()
    while holder.is_alive():
        # A sleep releases the lock, and the thread must get the lock again to continue.
        began = clock(); time.sleep(0.001); tell(sys._getframe(), 0.001, clock() - began)


def gil():
    global current
    current = "gil"
    began = clock()
    sum(range(10**6))
    # A sum of this many numbers takes 0.2 s.
    count = int(10**6 * 0.2 / (clock() - began))
    is_held = threading.Event()
    holder = threading.Thread(target=hold_the_lock, args=(count, is_held), name="holder")
    threads = [holder]
    for number in (1, 2):
        arguments = dict(args=(holder, is_held), name="waiter %d" % number)
        threads.append(threading.Thread(target=wait_for_the_lock, **arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    path, mode = sys.argv[1], (sys.argv[2:] or ["block"])[0]
    sys.setrecursionlimit(10 * DEPTH)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "imported_by_nesting.py"), "w") as module:
            module.write("import __main__\n\n__main__.innermost()\n")
        sys.path.insert(0, folder)
        # A tool that runs this program as a command needs time to learn which libraries it has.
        for _ in range(6):
            time.sleep(0.1)
        {"block": block, "busy": busy, "gil": gil, "hold": hold}[mode]()
    with open(path, "w") as file:
        for row in truth:
            file.write(json.dumps(row) + "\n")
    if mode in ("busy", "hold"):
        print({"busy": "done", "hold": "ready"}[mode], flush=True)
        sys.stdin.readline()


main()
