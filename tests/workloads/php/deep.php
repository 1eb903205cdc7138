<?php
// Many short sleeps below nested calls. Each call is of another function.
//
//     php deep.php FUNCTIONS
//
// The program prints "ready".
$functions = (int) $argv[1];
$text = '';
for ($i = 1; $i < $functions; $i++) {
    $text .= sprintf("function f%d() { f%d(); }\n", $i, $i + 1);
}
eval($text . "function f$functions() { for (;;) usleep(20); }");
echo "ready\n";
f1();
