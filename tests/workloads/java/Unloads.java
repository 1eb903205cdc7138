/*
 * Threads whose classes come and go. Each thread loads its own class in a new loader, over and over,
 * and runs it for some ms: `ClassN.outer` calls `ClassN.inner`, which computes and sleeps. The main
 * thread collects the classes that are gone, and other classes get their memory. The thread `loads-N`
 * runs only `ClassN`.
 *
 *     java Unloads    runs until a byte arrives on stdin
 */
import java.io.InputStream;

class Class0 {
    static long outer(int turns) { return inner(turns) + 1; }

    static long inner(int turns) { return Unloads.work(turns) + 1; }
}

class Class1 {
    static long outer(int turns) { return inner(turns) + 1; }

    static long inner(int turns) { return Unloads.work(turns) + 1; }
}

class Class2 {
    static long outer(int turns) { return inner(turns) + 1; }

    static long inner(int turns) { return Unloads.work(turns) + 1; }
}

public class Unloads {
    static volatile long sum;
    static volatile long loaded;

    /** Loads one class itself, and all others from its parent. */
    static class Loader extends ClassLoader {
        private final String own;

        Loader(String own) {
            super(Unloads.class.getClassLoader());
            this.own = own;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals(own)) return super.loadClass(name, resolve);
            try (InputStream stream = getResourceAsStream(name + ".class")) {
                byte[] bytes = new byte[64 << 10];
                int size = 0;
                for (int read; (read = stream.read(bytes, size, bytes.length - size)) > 0; ) {
                    size += read;
                }
                return defineClass(name, bytes, 0, size);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    public static long work(int turns) {
        long result = 0;
        for (int i = 0; i < turns; i++) result += i ^ result >> 3;
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
        return result;
    }

    static void load(String name) {
        try {
            for (;;) {
                java.lang.reflect.Method outer = new Loader(name).loadClass(name).getDeclaredMethod("outer", int.class);
                outer.setAccessible(true);
                for (int i = 0; i < 30; i++) sum += (long) outer.invoke(null, 300_000);
                loaded++;
            }
        } catch (ReflectiveOperationException e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < 3; number++) {
            String name = "Class" + number;
            Thread thread = new Thread(() -> load(name), "loads-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        System.out.flush();
        while (System.in.available() == 0) {
            System.gc();
            Thread.sleep(50);
        }
    }
}
