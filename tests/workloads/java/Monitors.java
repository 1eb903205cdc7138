/*
 * Threads that wait for monitors, with names that are longer than those of the kernel. Each thread
 * notes when it asks for a monitor, gets it, and leaves it. At the end the program writes one line of
 * JSON for each thread that waited, object, and thread that held the monitor meanwhile: their names,
 * the class of the object, and for how long, in ns.
 *
 *     java Monitors FILE
 *
 * The threads run for 3 s between the test's line and "done".
 */
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;

public class Monitors {
    static class Account { }

    static class Ledger { }

    static final long TIME_MS = 3000;
    static final List<Thread> threads = new ArrayList<>();
    static final Semaphore go = new Semaphore(0);
    static final Map<String, Long> sums = new LinkedHashMap<>();
    static volatile boolean ends;

    interface Body {
        void run() throws Exception;
    }

    static void start(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        threads.add(thread);
    }

    /** Starts a thread that repeats `round` in the test's time. */
    static void repeat(String name, Body round) {
        start(name, () -> {
            go.acquire();
            while (!ends) round.run();
        });
    }

    /** Visit of a thread to a monitor, in ns: it asks, gets the monitor, and leaves it. */
    static class Visit {
        final String thread = Thread.currentThread().getName();
        final long asks = System.nanoTime();
        long gets;
        long leaves;

        /** Returns for how long this visit waits while the other one lasts. */
        long behind(Visit other) {
            return Math.max(0, Math.min(gets, other.leaves) - Math.max(asks, other.gets));
        }
    }

    /** Monitor and its visits. */
    static class Monitor {
        final Object object;
        final List<Visit> visits = Collections.synchronizedList(new ArrayList<>());

        Monitor(Object object) { this.object = object; }

        void enter(Body body) throws Exception {
            Visit visit = new Visit();
            synchronized (object) {
                visit.gets = System.nanoTime();
                body.run();
                visit.leaves = System.nanoTime();
            }
            visits.add(visit);
        }

        void addUp() {
            for (Visit visit : visits) {
                for (Visit other : visits) {
                    long waited = other == visit ? 0 : visit.behind(other);
                    String row = String.format("\"name\": \"%s\", \"object\": \"%s\", \"holder\": \"%s\"",
                        visit.thread, object.getClass().getName(), other.thread);
                    if (waited > 0) sums.merge(row, waited, Long::sum);
                }
            }
        }
    }

    /** Owners that hold a monitor in turn, each for its time, and a thread that waits for each of them. */
    static Monitor inTurn(Object object, String name, long... times) {
        Monitor monitor = new Monitor(object);
        Semaphore isHeld = new Semaphore(0), isOver = new Semaphore(0);
        Semaphore turns = new Semaphore(1, true);
        for (int i = 0; i < times.length; i++) {
            long time = times[i];
            repeat("holder-" + (i + 1) + "-of-the-" + name, () -> {
                turns.acquire();
                monitor.enter(() -> {
                    isHeld.release();
                    Thread.sleep(time);
                });
                isOver.acquire();
                turns.release();
            });
        }
        repeat("contender-for-the-" + name, () -> {
            isHeld.acquire();
            monitor.enter(() -> { });
            isOver.release();
        });
        return monitor;
    }

    static volatile boolean isLeft;

    /** Two owners, and a thread that waits. The second owner takes the monitor while the thread wakes up. */
    static Monitor snatched(Object object, String name) {
        Monitor monitor = new Monitor(object);
        Semaphore isHeld = new Semaphore(0), isOver = new Semaphore(0);
        repeat("holder-1-of-the-" + name, () -> {
            isLeft = false;
            monitor.enter(() -> {
                isHeld.release(2);
                Thread.sleep(30);
                isLeft = true;
            });
            isOver.acquire(2);
        });
        repeat("holder-2-of-the-" + name, () -> {
            isHeld.acquire();
            Thread.sleep(28);
            while (!isLeft) Thread.onSpinWait();
            monitor.enter(() -> Thread.sleep(20));
            isOver.release();
        });
        repeat("contender-for-the-" + name, () -> {
            isHeld.acquire();
            monitor.enter(() -> { });
            isOver.release();
        });
        return monitor;
    }

    public static void main(String[] arguments) throws Exception {
        Monitor[] monitors = {
            inTurn(new Account(), "account", 40),
            inTurn(new Ledger(), "ledger", 25, 50),
            snatched(new byte[3], "bytes"),
        };
        int repeating = threads.size();
        Object never = new Object();
        start("größe-mit-日本-und-mehr", () -> {
            synchronized (never) {
                never.wait();
            }
        });
        System.out.println("ready");
        System.in.read();
        go.release(repeating);
        Thread.sleep(TIME_MS);
        ends = true;
        // The last rounds of the others may lack a partner.
        Thread.sleep(300);
        for (Monitor monitor : monitors) {
            synchronized (monitor.visits) {
                monitor.addUp();
            }
        }
        List<String> rows = new ArrayList<>();
        sums.forEach((row, waited) -> rows.add("{" + row + ", \"waited_ns\": " + waited + "}"));
        Files.write(Path.of(arguments[0]), rows);
        System.out.println("done");
        System.in.read();
    }
}
