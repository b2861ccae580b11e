// SPDX-License-Identifier: Apache-2.0
/** Native methods, synchronized ones too, in several threads. */
public class Natives {
	static synchronized native int sync(int x);
	static native int plain(int x);
	native int member(int x);
	int field;
	synchronized native int guarded(int x);

	static int caller(int x) { return sync(x) + plain(x + 1); }
	int callee(int x) { return x + 1; }
	int through(int x) { return member(x) + guarded(x); }

	static int run(Natives n, int rounds) {
		int sum = 0;
		for (int i = 0; i < rounds; i++)
			sum += caller(i) + n.through(i);
		return sum;
	}

	public static void main(String[] arguments) {
		System.load(arguments[0]);
		Natives shared = new Natives();
		for (int t = 0; t < 2; t++)
			new Thread(() -> { while (true) shared.field += run(shared, 1000); }).start();
		while (true)
			shared.field += run(shared, 1000);
	}
}
