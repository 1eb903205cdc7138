<?php
// A thread that computes and waits in functions of its own, and measures these times.
//
//     php phases.php SECONDS
//
// It does so between the test's line and "done". The program prints for each function the CPU time
// ("on-") and the time off the CPU ("off-") in ns.

function loop() {
    $total = 0;
    for ($i = 0; $i < 500000; $i++) $total = ($total * 31 + $i) & 0xffff;
    return $total;
}

function sorted() {
    static $numbers = null;
    $numbers ??= array_map(fn($i) => $i * 7919 % 10007, range(1, 2000));
    for ($i = 0; $i < 5; $i++) {
        $copy = $numbers;
        usort($copy, fn($one, $other) => $one <=> $other);
    }
}

function checksum() {
    static $bytes = null;
    $bytes ??= str_repeat('x', 1 << 20);
    for ($i = 0; $i < 4; $i++) sha1($bytes);
}

function doze() {
    usleep(20000);
}

function cpu_ns() {
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

function measure($body) {
    global $spent;
    $cpu = cpu_ns();
    $began = hrtime(true);
    $body();
    $elapsed = hrtime(true) - $began;
    $cpu = cpu_ns() - $cpu;
    $spent[$body][0] = ($spent[$body][0] ?? 0) + $cpu;
    $spent[$body][1] = ($spent[$body][1] ?? 0) + $elapsed - $cpu;
}

$spent = [];
echo "ready\n";
fgets(STDIN);
$end = microtime(true) + (float) $argv[1];
while (microtime(true) < $end) {
    foreach (['loop', 'sorted', 'checksum', 'doze'] as $body) measure($body);
}
foreach ($spent as $name => [$on, $off]) {
    $off = max(0, $off);
    echo "on-$name $on off-$name $off\n";
}
echo "done\n";
fgets(STDIN);
