/*
 * A thread that computes and a thread that waits, each in methods of its own. The program measures
 * these times.
 *
 *     java Phases SECONDS
 *
 * The threads run between the test's line and "done". The program prints for each method the CPU
 * time ("on-") and the time off the CPU ("off-") in ns.
 */
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32;

public class Phases {
    interface Body {
        void run() throws Exception;
    }

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final Map<String, long[]> SPENT = new LinkedHashMap<>();
    static final byte[] BYTES = new byte[1 << 20];
    static final long[] NUMBERS = new java.util.Random(1).longs(60000).toArray();
    static final Object MONITOR = new Object();
    static volatile boolean isOver;
    static volatile long sink;

    static void loop() {
        long total = 0;
        for (int i = 0; i < 4000000; i++) total = total * 31 + i;
        sink = total;
    }

    static void sort() {
        long[] numbers = NUMBERS.clone();
        Arrays.sort(numbers);
        sink = numbers[0];
    }

    static void checksum() {
        CRC32 sum = new CRC32();
        for (int i = 0; i < 30; i++) sum.update(BYTES);
        sink = sum.getValue();
    }

    static void doze() throws Exception { Thread.sleep(20); }

    static void park() { LockSupport.parkNanos(15000000); }

    static void waitInMonitor() throws Exception {
        synchronized (MONITOR) { MONITOR.wait(10); }
    }

    static void measure(String name, Body body) throws Exception {
        long cpu = THREADS.getCurrentThreadCpuTime(), began = System.nanoTime();
        body.run();
        long elapsed = System.nanoTime() - began;
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        long[] spent = SPENT.get(name);
        spent[0] += cpu;
        spent[1] += elapsed - cpu;
    }

    static void compute() {
        try {
            while (!isOver) {
                measure("loop", Phases::loop);
                measure("sort", Phases::sort);
                measure("checksum", Phases::checksum);
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    static void rest() {
        try {
            while (!isOver) {
                measure("doze", Phases::doze);
                measure("park", Phases::park);
                measure("waitInMonitor", Phases::waitInMonitor);
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        double seconds = Double.parseDouble(arguments[0]);
        // The virtual machine compiles the methods before they are measured.
        for (int i = 0; i < 200; i++) { loop(); sort(); checksum(); }
        String[] names = {"loop", "sort", "checksum", "doze", "park", "waitInMonitor"};
        for (String name : names) SPENT.put(name, new long[2]);
        System.out.println("ready");
        System.in.read();
        Thread[] threads = {new Thread(Phases::compute), new Thread(Phases::rest)};
        for (Thread thread : threads) thread.start();
        Thread.sleep((long) (seconds * 1000));
        isOver = true;
        for (Thread thread : threads) thread.join();
        SPENT.forEach((name, spent) ->
            System.out.println("on-" + name + " " + spent[0] + " off-" + name + " " + Math.max(0, spent[1])));
        System.out.println("done");
        System.in.read();
    }
}
