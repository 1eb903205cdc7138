# A thread that computes and waits in methods of its own, and measures these times.
#
#     ruby phases.rb SECONDS
#
# It does so between the test's line and "done". The program prints for each method the CPU time
# ("on-") and the time off the CPU ("off-") in ns.
require 'digest'

NUMBERS = (1..2000).map { |i| i * 7919 % 10_007 }
BYTES = 'x' * (1 << 20)

def loop_on
  total = 0
  i = 0
  while i < 400_000
    total = (total * 31 + i) & 0xffff
    i += 1
  end
  total
end

def sorted
  5.times { NUMBERS.sort { |one, other| one <=> other } }
end

def checksum
  4.times { Digest::SHA1.digest(BYTES) }
end

def doze
  sleep 0.02
end

def now(clock) = Process.clock_gettime(clock, :nanosecond)

def measure(name)
  cpu = now(Process::CLOCK_THREAD_CPUTIME_ID)
  began = now(Process::CLOCK_MONOTONIC)
  send(name)
  elapsed = now(Process::CLOCK_MONOTONIC) - began
  cpu = now(Process::CLOCK_THREAD_CPUTIME_ID) - cpu
  $spent[name][0] += cpu
  $spent[name][1] += elapsed - cpu
end

$stdout.sync = true
$spent = Hash.new { |sums, name| sums[name] = [0, 0] }
puts 'ready'
$stdin.gets
finish = now(Process::CLOCK_MONOTONIC) + ARGV[0].to_f * 1e9
%i[loop_on sorted checksum doze].each { |name| measure(name) } while now(Process::CLOCK_MONOTONIC) < finish
$spent.each { |name, (on, off)| puts "on-#{name} #{on} off-#{name} #{[off, 0].max}" }
puts 'done'
$stdin.gets
