/*
 * A thread that computes and a thread that waits, each in twelve methods that take different times.
 *
 *     java Ranked
 *
 * The threads run from the beginning to the end of the program.
 */
import java.util.concurrent.locks.LockSupport;

public class Ranked {
    static volatile long sink;

    /** Computes for about 50 us times `units`. */
    static void compute(int units) {
        long sum = sink;
        for (int i = 0; i < 50000 * units; i++) sum = sum * 31 + i;
        sink = sum;
    }

    static void rest(int units) { LockSupport.parkNanos(200000L * units); }

    static void first() { compute(1); }
    static void second() { compute(2); }
    static void third() { compute(3); }
    static void fourth() { compute(4); }
    static void fifth() { compute(5); }
    static void sixth() { compute(6); }
    static void seventh() { compute(7); }
    static void eighth() { compute(8); }
    static void ninth() { compute(9); }
    static void tenth() { compute(10); }
    static void eleventh() { compute(11); }
    static void twelfth() { compute(12); }

    static void firstWait() { rest(1); }
    static void secondWait() { rest(2); }
    static void thirdWait() { rest(3); }
    static void fourthWait() { rest(4); }
    static void fifthWait() { rest(5); }
    static void sixthWait() { rest(6); }
    static void seventhWait() { rest(7); }
    static void eighthWait() { rest(8); }
    static void ninthWait() { rest(9); }
    static void tenthWait() { rest(10); }
    static void eleventhWait() { rest(11); }
    static void twelfthWait() { rest(12); }

    public static void main(String[] arguments) throws Exception {
        Thread computing = new Thread(() -> {
            while (true) {
                first(); second(); third(); fourth(); fifth(); sixth();
                seventh(); eighth(); ninth(); tenth(); eleventh(); twelfth();
            }
        }, "computing");
        Thread waiting = new Thread(() -> {
            while (true) {
                firstWait(); secondWait(); thirdWait(); fourthWait(); fifthWait(); sixthWait();
                seventhWait(); eighthWait(); ninthWait(); tenthWait(); eleventhWait(); twelfthWait();
            }
        }, "waiting");
        computing.setDaemon(true);
        waiting.setDaemon(true);
        computing.start();
        waiting.start();
        // The virtual machine compiles the methods before they are measured.
        Thread.sleep(2000);
        System.out.println("ready");
        System.in.read();
    }
}
