/*
 * Threads that wait for monitors, with names that are longer than those of the kernel. At the end
 * each thread that waited prints one line of JSON into a file: its name, the class of the object, the
 * name of the thread that held the monitor, and for how long it waited, in ns.
 *
 *     java Monitors FILE    runs until a byte arrives on stdin
 */
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;

public class Monitors {
    static class Account { }

    static class Ledger { }

    static final int ROUNDS = 20;
    static final long HOLD_MS = 30;
    static final List<String> rows = Collections.synchronizedList(new ArrayList<>());
    static volatile boolean ends;

    static void start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static String id() {
        try {
            return Files.readSymbolicLink(Paths.get("/proc/thread-self")).getFileName().toString();
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    /** Two threads: one holds the monitor of `object` for a while, the other one then waits for it. */
    static void contend(Object object, String name) {
        Object turns = new Object();
        boolean[] isHeld = new boolean[1];
        String holder = "holder-of-the-" + name;
        start(holder, () -> {
            while (!ends) {
                synchronized (object) {
                    synchronized (turns) { isHeld[0] = true; turns.notify(); }
                    sleep(HOLD_MS);
                }
                synchronized (turns) {
                    while (isHeld[0] && !ends) {
                        try { turns.wait(100); } catch (InterruptedException e) { return; }
                    }
                }
            }
        });
        start("contender-for-the-" + name, () -> {
            String id = id();
            long waited = 0;
            while (!ends) {
                synchronized (turns) {
                    while (!isHeld[0] && !ends) {
                        try { turns.wait(100); } catch (InterruptedException e) { return; }
                    }
                }
                long before = System.nanoTime();
                synchronized (object) {
                    waited += System.nanoTime() - before;
                }
                synchronized (turns) { isHeld[0] = false; turns.notify(); }
            }
            rows.add(String.format("{\"name\": \"%s\", \"tid\": %s, \"object\": \"%s\", \"holder\": \"%s\", \"waited_ns\": %d}",
                Thread.currentThread().getName(), id, object.getClass().getName(), holder, waited));
        });
    }

    public static void main(String[] arguments) throws Exception {
        contend(new Account(), "account");
        contend(new Ledger(), "ledger");
        contend(new byte[3], "bytes");
        Object never = new Object();
        start("größe-mit-日本-und-mehr", () -> {
            synchronized (never) {
                try { never.wait(); } catch (InterruptedException e) { }
            }
        });
        System.out.println("ready");
        System.in.read();
        ends = true;
        while (rows.size() < 3) {
            Thread.sleep(10);
        }
        Files.write(Paths.get(arguments[0]), rows);
        System.out.println("done");
    }
}
