/*
 * Many short sleeps below nested calls. Each call is of another method.
 *
 *     java Deep METHODS
 *
 * The program prints "ready". It returns from all methods between two sleeps, so that the virtual
 * machine compiles them unless its flags say otherwise.
 */
import java.util.concurrent.locks.LockSupport;

public class Deep {
    static void stop() { LockSupport.parkNanos(20000); }
    static void f1(int left) { if (left == 1) stop(); else f2(left - 1); }
    static void f2(int left) { if (left == 1) stop(); else f3(left - 1); }
    static void f3(int left) { if (left == 1) stop(); else f4(left - 1); }
    static void f4(int left) { if (left == 1) stop(); else f5(left - 1); }
    static void f5(int left) { if (left == 1) stop(); else f6(left - 1); }
    static void f6(int left) { if (left == 1) stop(); else f7(left - 1); }
    static void f7(int left) { if (left == 1) stop(); else f8(left - 1); }
    static void f8(int left) { if (left == 1) stop(); else f9(left - 1); }
    static void f9(int left) { if (left == 1) stop(); else f10(left - 1); }
    static void f10(int left) { if (left == 1) stop(); else f11(left - 1); }
    static void f11(int left) { if (left == 1) stop(); else f12(left - 1); }
    static void f12(int left) { if (left == 1) stop(); else f13(left - 1); }
    static void f13(int left) { if (left == 1) stop(); else f14(left - 1); }
    static void f14(int left) { if (left == 1) stop(); else f15(left - 1); }
    static void f15(int left) { if (left == 1) stop(); else f16(left - 1); }
    static void f16(int left) { if (left == 1) stop(); else f17(left - 1); }
    static void f17(int left) { if (left == 1) stop(); else f18(left - 1); }
    static void f18(int left) { if (left == 1) stop(); else f19(left - 1); }
    static void f19(int left) { if (left == 1) stop(); else f20(left - 1); }
    static void f20(int left) { stop(); }

    public static void main(String[] arguments) {
        int methods = Integer.parseInt(arguments[0]);
        System.out.println("ready");
        while (true) f1(methods);
    }
}
