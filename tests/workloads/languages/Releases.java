// Threads that want locks of Java, and a thread that holds these locks nearly all of the time. The
// program prints "ready", and ends with standard input.
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

public class Releases {
	private static final Object monitor = new Object();
	private static final Object condition = new Object();
	private static final ReentrantLock lock = new ReentrantLock();

	private interface Work {
		void once() throws InterruptedException;
	}

	private static void wantMonitor() {
		synchronized (monitor) {
			return;
		}
	}

	private static void wantLock() {
		lock.lock();
		lock.unlock();
	}

	private static void wantCondition() throws InterruptedException {
		synchronized (condition) {
			condition.wait();
		}
	}

	private static void holdAll() throws InterruptedException {
		synchronized (monitor) {
			lock.lock();
			Thread.sleep(10);
			lock.unlock();
		}
		synchronized (condition) {
			condition.notifyAll();
		}
		LockSupport.parkNanos(200_000);
	}

	private static void start(String name, Work work) {
		Thread thread = new Thread(() -> {
			try {
				while (true)
					work.once();
			} catch (InterruptedException interrupted) {
				return;
			}
		}, name);
		thread.setDaemon(true);
		thread.start();
	}

	public static void main(String[] arguments) throws Exception {
		start("l_holder", Releases::holdAll);
		start("l_monitor", Releases::wantMonitor);
		start("l_lock", Releases::wantLock);
		start("l_condition", Releases::wantCondition);
		System.out.println("ready");
		while (System.in.read() >= 0)
			continue;
	}
}
