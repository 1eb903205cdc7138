<?php
/*
 * Known nestings of PHP calls, at the end of which the process blocks or computes.
 *
 * usage: nesting.php TRUTH MODE
 *
 * The program prints "ready" and waits for a line. With MODE "block" it then blocks in each scene,
 * and with "busy" it uses 50 ms of CPU time in each scene. At the end it writes to TRUTH a line of
 * JSON for each scene, prints "done", and waits for another line:
 *   scene    name of the scene
 *   chain    [name, file, line] of each frame, outermost first, from debug_backtrace()
 *   seconds  time for which the scene blocked or computed
 *   elapsed  time from before the action until after it, in seconds
 */
namespace Nesting;

const DEPTH = 500;

$truth = [];
$scenes = [];
$current = '';
$pause = 10000;
$action = 'block';

/** Returns the frames of the caller, outermost first. The innermost frame is on line $line. */
function chain_of(int $line, string ...$callees): array
{
    $calls = array_slice(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS), 1);
    $chain = [];
    foreach ($callees as $callee)
        $chain[] = [$callee, '', 0];
    // Each entry has the place of its call, which is in the next entry's function.
    [$file, $at] = [__FILE__, $line];
    foreach ($calls as $call) {
        $name = isset($call['class']) ? strtok($call['class'], "\0") . '::' . $call['function'] : $call['function'];
        if (in_array($name, ['include', 'require', 'include_once', 'require_once']))
            $name = '{main}';
        else if ($name === 'eval')
            $name = '{eval}';
        $chain[] = $file === '' ? [$name, '', 0] : [$name, $file, $at];
        [$file, $at] = [$call['file'] ?? '', $call['line'] ?? 0];
    }
    $chain[] = ['{main}', $file, $at];
    return array_reverse($chain);
}

function tell(array $chain, float $seconds, float $began): void
{
    global $truth, $current;
    $elapsed = hrtime(true) / 1e9 - $began;
    $truth[] = ['scene' => $current, 'chain' => $chain, 'seconds' => $seconds, 'elapsed' => $elapsed];
}

function innermost()
{
    global $action, $pause;
    $began = hrtime(true) / 1e9;
    if ($action === 'block') {
        usleep($pause); tell(chain_of(__LINE__, 'usleep'), $pause / 1e6, $began);
        $pause += 500;
        return 1;
    }
    tell(chain_of(__LINE__), 0.05, $began);
    compute(cpu_time() + 0.05);
    return 1;
}

function cpu_time(): float
{
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']
        + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
}

/** Computes until a CPU time, mostly in PHP, with a few functions in C. */
function compute(float $end): void
{
    $sum = 0;
    do {
        for ($i = 0; $i < 300; $i++) {
            $sum += $i;
            $sum ^= 3;
        }
        $text = str_repeat('x', 50) . $sum;
        $words = [];
        for ($i = 0; $i < 20; $i++)
            $words[] = ($i * 7919) % 101;
        usort($words, fn($a, $b) => $a <=> $b);
    } while (cpu_time() < $end);
}

abstract class Shape
{
    public function __construct(bool $measures = false)
    {
        if ($measures)
            $this->measure();
    }

    public function measure()
    {
        return static::round();
    }

    public static function round()
    {
        return innermost();
    }
}

trait Named
{
    public function named()
    {
        return innermost();
    }
}

class Square extends Shape implements \IteratorAggregate, \ArrayAccess, \Countable, \JsonSerializable
{
    use Named;

    public function measure()
    {
        return parent::measure();
    }

    public function __call($name, $arguments)
    {
        return innermost();
    }

    public static function __callStatic($name, $arguments)
    {
        return innermost();
    }

    public function __get($name)
    {
        return innermost();
    }

    public function __toString()
    {
        innermost();
        return 'square';
    }

    public function __invoke()
    {
        return innermost();
    }

    public function getIterator(): \Iterator
    {
        innermost();
        return new \ArrayIterator([1]);
    }

    public function offsetGet(mixed $key): mixed
    {
        return innermost();
    }

    public function offsetSet($key, $value): void
    {
    }

    public function offsetExists($key): bool
    {
        return true;
    }

    public function offsetUnset($key): void
    {
    }

    public function count(): int
    {
        return innermost();
    }

    public function jsonSerialize(): mixed
    {
        return innermost();
    }
}

class Deleted
{
    public function __destruct()
    {
        innermost();
    }
}

function outer()
{
    return inner(1);
}

function inner($number)
{
    return $number
        + leaf();
}

function leaf()
{
    return innermost();
}

function recurse($level)
{
    return $level > 1 ? recurse($level - 1) + 1 : innermost();
}

function recurse_through_c($level)
{
    return array_map(fn($level) => $level ? recurse_through_c($level - 1) : innermost(), [$level]);
}

function generator()
{
    yield innermost();
}

function größe()
{
    return 名前();
}

function 名前()
{
    return innermost();
}

function compare($a, $b)
{
    innermost();
    return 0;
}

function last()
{
    try {
        return 1;
    } finally {
        innermost();
    }
}

function caught()
{
    try {
        throw new \Exception('thrown');
    } catch (\Exception $error) {
        return innermost();
    }
}

$folder = sys_get_temp_dir();
$included = tempnam($folder, 'included');
file_put_contents($included, "<?php\n\nreturn \\Nesting\\innermost();\n");

$scenes['functions'] = fn() => outer();
$scenes['a closure'] = function () {
    $closure = function () use (&$closure) {
        return innermost();
    };
    return $closure();
};
$scenes['a constructor of an anonymous class'] = fn() => new class(true) extends Shape {};
$scenes['a static method'] = fn() => Square::round();
$scenes['methods'] = fn() => (new Square)->measure();
$scenes['a trait'] = fn() => (new Square)->named();
$scenes['__call'] = fn() => (new Square)->missing();
$scenes['__callStatic'] = fn() => Square::missing();
$scenes['__get'] = fn() => (new Square)->missing;
$scenes['__toString'] = fn() => '' . (new Square);
$scenes['__invoke'] = fn() => (new Square)();
$scenes['an iterator'] = function () {
    foreach (new Square as $each)
        return $each;
};
$scenes['an offset'] = fn() => (new Square)['key'];
$scenes['count'] = fn() => count(new Square);
$scenes['json_encode'] = fn() => json_encode(new Square);
$scenes['a destructor'] = function () {
    $deleted = new Deleted;
    unset($deleted);
};
$scenes['array_map'] = fn() => array_map(fn($each) => innermost(), [1]);
$scenes['array_map of a name'] = fn() => array_map('Nesting\inner', [1]);
$scenes['usort'] = function () {
    $array = [2, 1];
    usort($array, 'Nesting\compare');
};
$scenes['preg_replace_callback'] = fn() => preg_replace_callback('/b/', function ($match) {
    innermost();
    return 'x';
}, 'abc');
$scenes['call_user_func'] = fn() => call_user_func([new Square, 'named']);
$scenes['call_user_func_array'] = fn() => call_user_func_array('Nesting\inner', [1]);
$scenes['a first-class callable'] = function () {
    $callable = leaf(...);
    return $callable();
};
$scenes['a generator'] = function () {
    foreach (generator() as $each)
        return $each;
};
$scenes['the current value of a generator'] = fn() => generator()->current();
$scenes['iterator_to_array'] = fn() => iterator_to_array(generator());
$scenes['recursion'] = fn() => recurse(DEPTH);
$scenes['recursion through C'] = fn() => recurse_through_c(5);
$scenes['names that are not ASCII'] = fn() => größe();
$scenes['finally'] = fn() => last();
$scenes['catch'] = fn() => caught();
$scenes['eval'] = fn() => eval("\n\nreturn \\Nesting\\innermost();");
$scenes['a function from eval'] = function () {
    eval('function made() { return \Nesting\innermost(); }');
    return \made();
};
$scenes['include'] = function () use ($included) {
    return include $included;
};
$scenes['require'] = function () use ($included) {
    return require $included;
};
$scenes['a reflected method'] = fn() => (new \ReflectionMethod(Square::class, 'named'))->invoke(new Square);
$scenes['a bound closure'] = fn() => \Closure::bind(function () {
    return $this->named();
}, new Square, Square::class)();
$scenes['match'] = fn() => match (true) {
    innermost() == 1 => 1,
};
$scenes['array_walk'] = function () {
    $array = [1];
    array_walk($array, function ($value, $key) {
        innermost();
    });
};
$scenes['array_reduce'] = fn() => array_reduce([1], fn($carry, $each) => innermost());
$scenes['uasort of an object'] = function () {
    (new \ArrayObject([3, 1]))->uasort('Nesting\compare');
};
$scenes['an autoloader'] = function () {
    $load = function ($class) {
        innermost();
    };
    spl_autoload_register($load);
    try {
        new \Missing;
    } catch (\Error $error) {
    }
    spl_autoload_unregister($load);
};
$scenes['a fiber'] = function () {
    (new \Fiber(function () {
        innermost();
    }))->start();
};
$scenes['a fiber in a fiber'] = function () {
    (new \Fiber(function () {
        (new \Fiber(function () {
            innermost();
        }))->start();
    }))->start();
};

/** Scenes that wait for something else than a timer. */
function lock()
{
    global $truth, $current, $included;
    $current = __FUNCTION__;
    $held = fopen($included, 'r');
    flock($held, LOCK_EX);
    $child = pcntl_fork();
    if ($child === 0) {
        usleep(40000);
        exit(0);
    }
    fclose($held);
    $other = fopen($included, 'r');
    $began = hrtime(true) / 1e9;
    flock($other, LOCK_EX); tell(chain_of(__LINE__, 'flock'), 0.02, $began);
    pcntl_waitpid($child, $status);
}

function socket()
{
    global $current;
    $current = __FUNCTION__;
    [$reading, $writing] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $child = pcntl_fork();
    if ($child === 0) {
        usleep(40000);
        fwrite($writing, 'x');
        exit(0);
    }
    $began = hrtime(true) / 1e9;
    fread($reading, 1); tell(chain_of(__LINE__, 'fread'), 0.02, $began);
    pcntl_waitpid($child, $status);
}

$action = $argv[2] === 'block' ? 'block' : 'compute';
echo "ready\n";
fgets(STDIN);
foreach ($scenes as $current => $scene)
    $scene();
if ($action === 'block') {
    lock();
    socket();
}
file_put_contents($argv[1], implode('', array_map(fn($row) => json_encode($row) . "\n", $truth)));
unlink($included);
echo "done\n";
fgets(STDIN);
