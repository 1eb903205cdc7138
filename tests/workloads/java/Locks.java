/*
 * Threads that wait for monitors and locks, with names that are longer than those of the kernel. Each
 * thread notes when it asks for a lock, gets it, and leaves it. At the end the program writes one line
 * of JSON for each thread that waited, lock, and thread that held the lock meanwhile: their names, the
 * kind of the lock, the class of the object, and for how long, in ns. The lock of readers names no
 * holder.
 *
 *     java Locks FILE
 *
 * The threads run for 3 s between the test's line and "done".
 */
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public class Locks {
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

    /** Visit of a thread to a lock, in ns: it asks, gets the lock, and leaves it. */
    static class Visit {
        final String thread = Thread.currentThread().getName();
        final long asks = System.nanoTime();
        long gets;
        long leaves;

        void stay(Body body) throws Exception {
            gets = System.nanoTime();
            body.run();
            leaves = System.nanoTime();
        }

        /** Returns for how long this visit waits while the other one lasts. */
        long behind(Visit other) {
            return Math.max(0, Math.min(gets, other.leaves) - Math.max(asks, other.gets));
        }
    }

    /** Lock and its visits. */
    static abstract class Visited {
        final String kind;
        final String type;
        final List<Visit> visits = Collections.synchronizedList(new ArrayList<>());

        Visited(String kind, String type) {
            this.kind = kind;
            this.type = type;
        }

        abstract void enter(Visit visit, Body body) throws Exception;

        final void enter(Body body) throws Exception {
            Visit visit = new Visit();
            enter(visit, body);
            visits.add(visit);
        }

        String holder(String thread) { return thread; }

        void addUp() {
            for (Visit visit : visits) {
                for (Visit other : visits) {
                    long waited = other == visit ? 0 : visit.behind(other);
                    if (waited == 0) continue;
                    String row = String.format("\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", \"holder\": \"%s\"",
                        visit.thread, kind, type, holder(other.thread));
                    sums.merge(row, waited, Long::sum);
                }
            }
        }
    }

    static Visited monitor(Object object) {
        return new Visited("Java monitor", object.getClass().getTypeName()) {
            @Override
            void enter(Visit visit, Body body) throws Exception {
                synchronized (object) {
                    visit.stay(body);
                }
            }
        };
    }

    static Visited lock(Lock lock, Class<?> outer) {
        return new Visited("Java lock", outer.getName() + "$NonfairSync") {
            @Override
            void enter(Visit visit, Body body) throws Exception {
                lock.lock();
                try {
                    visit.stay(body);
                } finally {
                    lock.unlock();
                }
            }
        };
    }

    /** The lock of readers, which all but the contender are. */
    static Visited lockOfReaders() {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        return new Visited("Java lock", ReentrantReadWriteLock.class.getName() + "$NonfairSync") {
            @Override
            void enter(Visit visit, Body body) throws Exception {
                Lock part = visit.thread.startsWith("contender") ? lock.writeLock() : lock.readLock();
                part.lock();
                try {
                    visit.stay(body);
                } finally {
                    part.unlock();
                }
            }

            @Override
            String holder(String thread) { return ""; }
        };
    }

    /** Owners that hold a lock in turn, each for its time, and a thread that waits for each of them. */
    static Visited inTurn(Visited lock, String name, long... times) {
        Semaphore isHeld = new Semaphore(0), isOver = new Semaphore(0);
        Semaphore turns = new Semaphore(1, true);
        for (int i = 0; i < times.length; i++) {
            long time = times[i];
            repeat("holder-" + (i + 1) + "-of-the-" + name, () -> {
                turns.acquire();
                lock.enter(() -> {
                    isHeld.release();
                    Thread.sleep(time);
                });
                isOver.acquire();
                turns.release();
            });
        }
        repeat("contender-for-the-" + name, () -> {
            isHeld.acquire();
            lock.enter(() -> { });
            isOver.release();
        });
        return lock;
    }

    static volatile boolean isLeft;

    /** Two owners, and a thread that waits. The second owner takes the lock while the thread wakes up. */
    static Visited snatched(Visited lock, String name) {
        Semaphore isHeld = new Semaphore(0), isOver = new Semaphore(0);
        repeat("holder-1-of-the-" + name, () -> {
            isLeft = false;
            lock.enter(() -> {
                isHeld.release(2);
                Thread.sleep(30);
                isLeft = true;
            });
            isOver.acquire(2);
        });
        repeat("holder-2-of-the-" + name, () -> {
            isHeld.acquire();
            Thread.sleep(28);
            while (!isLeft) { }
            lock.enter(() -> Thread.sleep(20));
            isOver.release();
        });
        repeat("contender-for-the-" + name, () -> {
            isHeld.acquire();
            lock.enter(() -> { });
            isOver.release();
        });
        return lock;
    }

    public static void main(String[] arguments) throws Exception {
        Visited[] locks = {
            inTurn(monitor(new Account()), "account", 40),
            inTurn(monitor(new Ledger()), "ledger", 25, 50),
            snatched(monitor(new byte[3]), "bytes"),
            inTurn(lock(new ReentrantLock(), ReentrantLock.class), "lock", 30, 45),
            inTurn(lock(new ReentrantReadWriteLock().writeLock(), ReentrantReadWriteLock.class), "file", 40),
            inTurn(lockOfReaders(), "page", 40),
        };
        int repeating = threads.size();
        Object never = new Object();
        start("größe-mit-日本-und-mehr", () -> {
            synchronized (never) {
                never.wait();
            }
        });
        CountDownLatch latch = new CountDownLatch(1);
        start("waiting-for-the-latch", () -> {
            go.acquire();
            latch.await();
        });
        System.out.println("ready");
        System.in.read();
        go.release(repeating + 1);
        Thread.sleep(TIME_MS);
        ends = true;
        latch.countDown();
        // The last rounds of the others may lack a partner.
        Thread.sleep(300);
        for (Visited lock : locks) {
            synchronized (lock.visits) {
                lock.addUp();
            }
        }
        List<String> rows = new ArrayList<>();
        sums.forEach((row, waited) -> rows.add("{" + row + ", \"waited_ns\": " + waited + "}"));
        Files.write(Paths.get(arguments[0]), rows);
        System.out.println("done");
        System.in.read();
    }
}
