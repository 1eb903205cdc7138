// SPDX-License-Identifier: MIT
// Java threads that compute, sort, wait for each other and sleep.

import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

public class Busy {
    static final BlockingQueue<int[]> WORK = new ArrayBlockingQueue<>(4);

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static int[] numbers(int seed) {
        int[] numbers = new int[5000];
        for (int i = 0; i < numbers.length; i++) {
            seed = seed * 1103515245 + 12345;
            numbers[i] = seed;
        }
        return numbers;
    }

    static void give() {
        for (int seed = 0;; seed += fibonacci(18) & 1) {
            try {
                WORK.put(numbers(seed));
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static void take() {
        while (true) {
            try {
                Arrays.sort(WORK.take());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (Runnable body : new Runnable[] {Busy::give, Busy::give, Busy::take}) {
            Thread thread = new Thread(body);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        System.out.flush();
        // The read returns -1 once the test is gone.
        while (System.in.read() >= 0) {
        }
    }
}
