/*
 * Threads that block, or work, below calls of every kind. Each first writes its own chain of calls
 * into a file, root first, as one line of JSON. It then stays on the line with which the chain ends.
 * The chain has the machine's hidden frames only with -XX:+ShowHiddenFrames.
 *
 *     java Nesting hold FILE    every thread waits once, for good
 *     java Nesting repeat FILE  every thread waits over and over, a few milliseconds each time
 *     java Nesting work FILE    every thread computes, a millisecond of about twenty
 */
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Proxy;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;

public class Nesting {
    interface Body {
        void run() throws Throwable;
    }

    /** Time for which a thread waits once, in ms. */
    static long pause;
    static int rounds;
    static volatile int sink;
    static final CountDownLatch told = new CountDownLatch(1);
    /** Version of the machine; 1.8 for Java 8. */
    static final double VERSION = Double.parseDouble(System.getProperty("java.specification.version"));

    // Ends of the chains. Each call of `tell` is on the line on which the thread then stays.

    static void sleep() throws Exception {
        for (int i = 0; i < rounds; i++) { tell(i); Thread.sleep(pause); }
    }

    static synchronized void waitInMonitor(Object monitor) throws Exception {
        synchronized (monitor) {
            for (int i = 0; i < rounds; i++) { tell(i); monitor.wait(pause); }
        }
    }

    static void park() {
        for (int i = 0; i < rounds; i++) { tell(i); LockSupport.parkNanos(Nesting.class, pause * 1000000); }
    }

    static void poll(LinkedBlockingQueue<String> queue) throws Exception {
        for (int i = 0; i < rounds; i++) { tell(i); queue.poll(pause, TimeUnit.MILLISECONDS); }
    }

    static void lock(ReentrantLock lock) throws Exception {
        for (int i = 0; i < rounds; i++) { tell(i); lock.tryLock(pause, TimeUnit.MILLISECONDS); }
    }

    static void read(Socket socket) throws Exception {
        socket.setSoTimeout((int) pause);
        byte[] buffer = new byte[8];
        for (int i = 0; i < rounds; i++) {
            try { tell(i); socket.getInputStream().read(buffer); } catch (SocketTimeoutException e) { }
        }
    }

    static void select(Selector selector) throws Exception {
        for (int i = 0; i < rounds; i++) { tell(i); selector.select(pause); }
    }

    static void work() throws Exception {
        for (int i = 0; i < rounds; i++) { tell(i); sink += sum(1000000, i); Thread.sleep(20); }
    }

    /** Computes for some time, in ns. */
    static int sum(long time, int start) {
        int sum = start;
        for (long end = System.nanoTime() + time; System.nanoTime() < end;) {
            for (int i = 0; i < 1000; i++) {
                sum = mixed(sum, i);
            }
        }
        return sum;
    }

    static int mixed(int sum, int i) {
        return sum * 31 ^ sum >>> 3 ^ i;
    }

    // Calls of every kind.

    static int recurse(int depth, Body body) throws Throwable {
        if (depth == 0) {
            body.run();
            return 0;
        }
        return recurse(depth - 1, body) + 1;
    }

    static void reflected(Body body) throws Throwable {
        body.run();
    }

    static synchronized void lockedAlready(Body body) throws Throwable {
        body.run();
    }

    synchronized void locked(long a, double b, Body body, int c, String d) throws Throwable {
        body.run();
    }

    static class Größe {
        final Body body;

        Größe(Body body) throws Throwable {
            this.body = body;
            überlauf(body, "日本");
        }

        void überlauf(Body body, String why) throws Throwable {
            body.run();
        }
    }

    static class Initialized {
        static Body body;

        static class Late {
            static int value = run(body);
        }
    }

    static int run(Body body) {
        try {
            body.run();
        } catch (Throwable e) {
            throw new RuntimeException(e);
        }
        return 1;
    }

    static void handler(Body body) throws Throwable {
        try {
            try {
                throw new IllegalStateException("expected");
            } finally {
                sink++;
            }
        } catch (IllegalStateException e) {
            body.run();
        }
    }

    static void scene(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Throwable e) {
                e.printStackTrace();
                System.exit(1);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        threads++;
    }

    /** A collector would close a socket that nothing refers to. */
    static ServerSocket server;
    static int threads;
    static final List<String> rows = Collections.synchronizedList(new ArrayList<>());

    static void tell(int round) {
        if (round > 0) {
            return;
        }
        List<String> chain = new ArrayList<>();
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            // Before Java 15 this name of a lambda's class ends with a number that the class's own name
            // lacks. Java 8 numbers the instructions of code without lines from a million on.
            String name = frame.getClassName();
            if (VERSION < 15) {
                name = name.replaceFirst("/[0-9a-fx]+$", "");
            }
            int line = frame.getLineNumber() < 1000000 ? frame.getLineNumber() : -1;
            chain.add(0, String.format("[\"%s.%s\", %d]", name, frame.getMethodName(), line));
        }
        chain.remove(chain.size() - 1);
        try {
            String thread = Files.readSymbolicLink(Paths.get("/proc/thread-self")).getFileName().toString();
            rows.add(String.format("{\"name\": \"%s\", \"tid\": %s, \"chain\": %s}",
                Thread.currentThread().getName(), thread, chain));
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    static void scenes(Body end) throws Throwable {
        scene("direct", end);
        scene("lambda", () -> Stream.of(1).forEach(x -> run(end)));
        scene("deep", () -> recurse(500, end));
        scene("largely-longer-than-fifteen", () -> new Größe(end));
        scene("locked", () -> new Nesting().locked(1, 2, end, 3, "x"));
        scene("reflection", () -> Nesting.class.getDeclaredMethod("reflected", Body.class).invoke(null, end));
        MethodHandle handle = MethodHandles.lookup().findStatic(
            Nesting.class, "reflected", MethodType.methodType(void.class, Body.class));
        scene("handle", () -> handle.invoke(end));
        scene("proxy", () -> ((Body) Proxy.newProxyInstance(Nesting.class.getClassLoader(),
            new Class<?>[] { Body.class }, (proxy, method, arguments) -> run(end))).run());
        Initialized.body = end;
        scene("initializer", () -> sink += Initialized.Late.value);
        scene("handler", () -> handler(end));
        scene("comparator", () -> Arrays.sort(new Integer[] { 2, 1 }, (a, b) -> run(end)));
        scene("anonymous", () -> new Object() {
            @Override
            public String toString() {
                return "" + Nesting.run(end);
            }
        }.toString().length());
        ExecutorService pool = Executors.newFixedThreadPool(1, body -> {
            Thread thread = new Thread(body, "pool");
            thread.setDaemon(true);
            return thread;
        });
        pool.submit(() -> run(end));
        threads++;
    }

    public static void main(String[] arguments) throws Throwable {
        boolean holds = arguments[0].equals("hold");
        pause = holds ? 1000000 : 5;
        rounds = holds ? 1 : Integer.MAX_VALUE;
        if (arguments[0].equals("work")) {
            scenes(Nesting::work);
        } else {
            scenes(Nesting::sleep);
            ReentrantLock lock = new ReentrantLock();
            lock.lock();
            server = new ServerSocket(0);
            Socket socket = new Socket("127.0.0.1", server.getLocalPort());
            Selector selector = Selector.open();
            scene("wait", () -> recurse(3, () -> waitInMonitor(new Object())));
            scene("park", () -> recurse(3, Nesting::park));
            scene("poll", () -> recurse(3, () -> poll(new LinkedBlockingQueue<>())));
            scene("lock", () -> recurse(3, () -> lock(lock)));
            scene("read", () -> recurse(3, () -> read(socket)));
            scene("select", () -> recurse(3, () -> select(selector)));
        }
        while (rows.size() < threads) {
            Thread.sleep(10);
        }
        Files.write(Paths.get(arguments[1]), rows);
        System.out.println("ready");
        System.in.read();
    }
}
