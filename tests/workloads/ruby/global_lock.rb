# A thread that waits for Ruby's global lock while another thread computes.
#
# usage: global_lock.rb
#
# The program prints "ready" and waits for a line. For 1.5 s one thread computes, and the main thread
# sleeps for 2 ms over and over. After each sleep the main thread needs the lock. Then the program
# prints "waited WAITER HOLDER TIME" with the kernel's IDs of both threads, and the time in ns for
# which the waiter slept longer than 2 ms. It prints "done" and waits for another line.

def clock
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

SLEEP_NS = 2_000_000

puts 'ready'
$stdout.flush
$stdin.gets
is_done = false
holder = nil
computes = Thread.new do
  Thread.current.name = 'computes'
  holder = Thread.current.native_thread_id
  i = 0
  i += 1 until is_done
end
waited = 0
finish = clock + 1_500_000_000
while clock < finish
  began = clock
  sleep(SLEEP_NS / 1e9)
  waited += clock - began - SLEEP_NS
end
is_done = true
computes.join
puts "waited #{Thread.main.native_thread_id} #{holder} #{waited}"
puts 'done'
$stdout.flush
$stdin.gets
