/*
 * A thread that computes, and a thread for which the virtual machine stops the other one: it asks for
 * collections of a heap that takes long to collect, and for counts of its objects, and it allocates.
 *
 *     java Stops
 *
 * The threads run between the test's line and "done". The program prints for how long the second
 * thread waited for the collections that it asked for, and for the counts, in ns.
 */
import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

public class Stops {
    static final int NODES = 4000000;
    static final int ROUNDS = 4;
    static volatile boolean isOver;
    static volatile Object kept;
    static volatile long sink;

    static class Node {
        final Node next;
        final long value;

        Node(Node next, long value) { this.next = next; this.value = value; }
    }

    static Node[] live() {
        Node[] roots = new Node[1000];
        for (int i = 0; i < NODES; i++) {
            int root = i % roots.length;
            roots[root] = new Node(roots[root], i);
        }
        return roots;
    }

    static void compute() {
        while (!isOver) sink = sink * 31 + 1;
    }

    static void count() {
        Object[] arguments = { new String[] { "-all" } };
        String[] types = { String[].class.getName() };
        try {
            ManagementFactory.getPlatformMBeanServer().invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram", arguments, types);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    static void ask() {
        long collections = 0, counts = 0;
        for (int i = 0; i < ROUNDS; i++) {
            long begin = System.nanoTime();
            System.gc();
            long middle = System.nanoTime();
            count();
            collections += middle - begin;
            counts += System.nanoTime() - middle;
            kept = live();
        }
        System.out.println("collections " + collections + " counts " + counts);
    }

    public static void main(String[] arguments) throws Exception {
        kept = live();
        count();
        System.out.println("ready");
        System.in.read();
        Thread computing = new Thread(Stops::compute, "computing"), asking = new Thread(Stops::ask, "asking");
        computing.start();
        asking.start();
        asking.join();
        isOver = true;
        computing.join();
        System.out.println("done");
        System.in.read();
    }
}
