# Many short sleeps below nested calls. Each call is of another method.
#
#     ruby deep.rb METHODS
#
# The program prints "ready".
methods = ARGV[0].to_i
(1...methods).each { |i| eval("def f#{i} = f#{i + 1}") }
eval("def f#{methods}\n  loop { sleep 0.00002 }\nend")
$stdout.puts 'ready'
$stdout.flush
f1
