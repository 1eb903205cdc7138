# encoding: utf-8
#
# Known nestings of Ruby calls, at the end of which the thread blocks or computes.
#
# usage: nesting.rb TRUTH MODE
#
# The program prints "ready" and waits for a line. With MODE "block" it then blocks in each scene,
# and with "busy" it uses 50 ms of CPU time in each scene. At the end it writes to TRUTH a line of
# JSON for each scene, prints "done", and waits for another line:
#   scene    name of the scene
#   chain    [name, file, line] of each frame, outermost first, from caller_locations()
#   seconds  time for which the scene blocked or computed
#   elapsed  time from before the action until after it, in seconds

require 'json'

DEPTH = 500
$truth = []
$pause = 0.010
$action = 'block'

def clock
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Returns the frames of the caller, outermost first. Functions in C have the place of their caller
# in Ruby, and no file in the truth. In Ruby, only blocks and recursive methods are on the line of
# their caller.
def chain_of(callees)
  places = caller_locations(1).map { |at| [name_of(at.label), at.path, at.lineno] }
  chain = places.zip(places.drop(1)).map do |place, caller|
    in_ruby = place[0].start_with?('block', 'recurse')
    in_c = place[1].nil? || !in_ruby && caller && place.drop(1) == caller.drop(1)
    in_c ? [place[0], '', 0] : place
  end
  (callees.map { |callee| [callee, '', 0] } + chain).reverse
end

# Returns a label without the class, which labels have from 3.4 on, as in "block in Shape.round".
def name_of(label)
  label.sub(/(?:[[:upper:]][[:word:]]*::)*[[:upper:]][[:word:]]*[#.](?=.)/, '')
end

def tell(chain, seconds, began)
  $truth << { scene: $current, chain: chain, seconds: seconds, elapsed: clock - began }
end

def innermost
  began = clock
  if $action == 'block'
    sleep($pause); tell(chain_of(['sleep']), $pause, began)
    $pause += 0.0005
  else
    tell(chain_of([]), 0.05, began)
    compute(cpu_time + 0.05)
  end
  1
end

def cpu_time
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

# Computes until a CPU time, mostly in Ruby, with a few functions in C.
def compute(finish)
  sum = 0
  while cpu_time < finish
    i = 0
    while i < 300
      sum += i
      sum ^= 3
      i += 1
    end
    [3, 1, 2].sort_by { |each| -each }
    'x' * 50 + sum.to_s
  end
end

class Shape
  include Enumerable

  def initialize(measures = false)
    measure if measures
  end

  def measure
    self.class.round
  end

  def self.round
    innermost
  end

  def [](index)
    innermost
  end

  def +(other)
    innermost
  end

  def method_missing(name, *arguments)
    name == :missing ? innermost : super
  end

  def respond_to_missing?(*)
    true
  end

  def each
    yield 1
  end

  define_method(:defined) { |each| innermost }

  def keywords(first:, second: innermost)
    second
  end

  def ensured
    1
  ensure
    innermost
  end

  def rescued
    raise 'raised'
  rescue
    innermost
  end

  def to_s
    innermost
    'shape'
  end

  def größe
    名前
  end

  def 名前
    innermost
  end

  class << self
    def single
      new.instance_eval { innermost }
    end
  end

  alias_method :aliased, :rescued
end

module Measured
  def measure
    super
  end
end

class Square < Shape
  prepend Measured

  def measure
    super
  end
end

def outer
  inner(1)
end

def inner(number)
  number +
    leaf
end

def leaf
  innermost
end

def recurse(level)
  level > 1 ? recurse(level - 1) + 1 : innermost
end

def recurse_through_c(level)
  [level].each { |each| each > 0 ? recurse_through_c(each - 1) : innermost }
end

def yields
  yield
end

SCENES = {
  'methods' => -> { outer },
  'new' => -> { Shape.new(true) },
  'super' => -> { Square.new(true) },
  'map' => -> { [1].map { |each| innermost } },
  'each' => -> { [1].each do |each|
    innermost
  end },
  'sort_by' => -> { [1].sort_by { |each| innermost } },
  'each of a hash' => -> { { key: 1 }.each { |key, value| innermost } },
  'a lambda' => -> { ->(each) { innermost }.call(1) },
  'a proc' => -> { proc { innermost }.call },
  'send' => -> { Shape.new.send(:measure) },
  'public_send' => -> { Shape.new.public_send(:defined, 1) },
  'method_missing' => -> { Shape.new.missing },
  'yield' => -> { yields { innermost } },
  'Enumerable' => -> { Shape.new.map { |each| innermost } },
  'inject' => -> { [1, 2].inject { |sum, each| innermost } },
  'keywords' => -> { Shape.new.keywords(first: 1) },
  'ensure' => -> { Shape.new.ensured },
  'rescue' => -> { Shape.new.aliased },
  'an operator' => -> { Shape.new + 1 },
  'an index' => -> { Shape.new[3] },
  'to_s' => -> { "#{Shape.new}" },
  'names that are not ASCII' => -> { Shape.new.größe },
  'a singleton method' => -> { Shape.single },
  'eval' => -> { eval('innermost', binding, 'of eval.rb', 77) },
  'a method from eval' => -> { eval("def made\n  innermost\nend", TOPLEVEL_BINDING, 'made by eval.rb', 5); made },
  'instance_exec' => -> { Shape.new.instance_exec(1) { |each| innermost } },
  'class_eval' => -> { Shape.class_eval { innermost } },
  'catch' => -> { catch(:thrown) { innermost; throw :thrown } },
  'recursion' => -> { recurse(DEPTH) },
  'recursion through C' => -> { recurse_through_c(5) },
  'gsub' => -> { 'abc'.gsub(/b/) { innermost; 'x' } },
  'a method object' => -> { Shape.new.method(:measure).call },
  'define_method' => -> { Shape.new.defined(1) },
  'synchronize' => -> { Mutex.new.synchronize { innermost } },
  'while' => lambda do
    i = 0
    while i < 1
      i += 1
      innermost
    end
  end,
  'several lines' => -> { [1, 2,
    innermost,
    3] },
  'a long method' => lambda do
    text = "def long(a)\n" + (1..400).map { |i| "  a += #{i}\n" }.join + "  innermost\nend"
    eval(text, TOPLEVEL_BINDING, 'long eval.rb', 1)
    long(1)
  end,
  'a fiber' => -> { Fiber.new { innermost }.resume },
  'an enumerator' => -> { Enumerator.new { |each| innermost; each << 1 }.next },
  'a thread' => -> { Thread.new { innermost }.join },
  'instance_eval' => -> { Shape.new.instance_eval { innermost } },
}.freeze

# Scenes that wait for something else than a timer.
def condition
  $current = 'condition'
  mutex, condition = Mutex.new, ConditionVariable.new
  writer = Thread.new { sleep 0.04; mutex.synchronize { condition.signal } }
  mutex.lock
  began = clock
  condition.wait(mutex); tell(chain_of(%w[sleep wait]), 0.02, began)
  mutex.unlock
  writer.join
end

def mutex
  $current = 'mutex'
  mutex = Mutex.new
  holder = Thread.new { mutex.synchronize { sleep 0.05 } }
  sleep 0.01
  began = clock
  mutex.lock; tell(chain_of(['lock']), 0.02, began)
  mutex.unlock
  holder.join
end

def pipe
  $current = 'pipe'
  reading, writing = IO.pipe
  writer = Thread.new { sleep 0.04; writing.syswrite('x') }
  began = clock
  reading.sysread(1); tell(chain_of(['sysread']), 0.02, began)
  writer.join
end

$action = ARGV[1] == 'block' ? 'block' : 'compute'
puts 'ready'
$stdout.flush
$stdin.gets
SCENES.each do |name, scene|
  $current = name
  scene.call
end
if $action == 'block'
  condition
  mutex
  pipe
end
File.write(ARGV[0], $truth.map { |row| JSON.dump(row) + "\n" }.join)
puts 'done'
$stdout.flush
$stdin.gets
