// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.net.URI;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Programs that need the JDK alone: the first argument says which. Each works until it is killed. */
public class Work {
	interface Round { void run() throws Exception; }

	static class Source extends SimpleJavaFileObject {
		Source() { super(URI.create("string:///T.java"), Kind.SOURCE); }

		@Override
		public CharSequence getCharContent(boolean ignore) {
			StringBuilder text = new StringBuilder("import java.util.*; class T {");
			for (int i = 0; i < 60; i++)
				text.append("static <E extends Comparable<E>> List<E> m" + i + "(List<? extends E> l) { List<E> r = new ArrayList<>(l); r.sort((a, b) -> a.compareTo(b)); return r; }\n");
			return text.append("}");
		}
	}

	static void compile() {
		String to = System.getProperty("java.io.tmpdir");
		ToolProvider.getSystemJavaCompiler().getTask(null, null, null, List.of("-proc:none", "-d", to), null, List.<JavaFileObject>of(new Source())).call();
	}

	static void streams() {
		Map<Integer, List<String>> groups = IntStream.range(0, 5000).mapToObj(i -> "word" + i * 7919 % 997)
			.sorted(Comparator.comparing(String::length).thenComparing(Comparator.reverseOrder())).collect(Collectors.groupingBy(String::length));
		if (groups.isEmpty())
			throw new IllegalStateException();
	}

	static void zip() throws Exception {
		ByteArrayOutputStream out = new ByteArrayOutputStream();
		try (GZIPOutputStream zip = new GZIPOutputStream(out)) {
			for (int i = 0; i < 3000; i++)
				zip.write(("line " + i * i + "\n").getBytes());
		}
		new GZIPInputStream(new ByteArrayInputStream(out.toByteArray())).readAllBytes();
	}

	static void numbers() {
		BigInteger a = BigInteger.valueOf(3).pow(2000), b = BigInteger.valueOf(7).pow(1500);
		for (int i = 0; i < 20; i++)
			a = a.multiply(b).mod(BigInteger.TWO.pow(4000)).add(a.gcd(b));
		if (Pattern.compile("(\\d+)7(\\d+)7").matcher(a.toString()).find())
			a.isProbablePrime(2);
	}

	static final ForkJoinPool POOL = new ForkJoinPool(2);

	static class Sum extends RecursiveTask<Long> {
		final int from, to;
		Sum(int from, int to) { this.from = from; this.to = to; }

		@Override
		protected Long compute() {
			if (to - from < 200)
				return IntStream.range(from, to).mapToLong(i -> Long.numberOfTrailingZeros(i * 2654435761L)).sum();
			Sum left = new Sum(from, (from + to) / 2), right = new Sum((from + to) / 2, to);
			left.fork();
			return right.compute() + left.join();
		}
	}

	static final Map<Integer, Object[]> KEPT = new ConcurrentHashMap<>();
	static int turn;

	/** Stores of references into old objects: the barriers of collectors. */
	static void store(Object[] in, int at, Object what) { in[at] = what; }

	static void stores() {
		for (int i = 0; i < 20000; i++) {
			Object[] array = KEPT.computeIfAbsent(i % 500, k -> new Object[64]);
			store(array, i & 63, new int[] {turn++});
		}
	}

	static final Object LOCK = new Object();
	static long guarded;

	static void locks() {
		for (int i = 0; i < 10000; i++)
			synchronized (LOCK) {
				guarded += Thread.holdsLock(LOCK) ? 1 : 2;
			}
	}

	static void text() {
		List<String> out = new ArrayList<>();
		for (int i = 0; i < 500; i++)
			out.add(String.format("%05d %s", i, "x".repeat(i % 40)).toUpperCase().replace("X", "yz"));
		if (String.join(",", out).hashCode() == 42)
			System.out.println();
	}

	static void forever(Round round) {
		try {
			while (true)
				round.run();
		} catch (Exception e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] arguments) {
		Map<String, Round> rounds = Map.of("compile", Work::compile, "streams", () -> streams(), "zip", Work::zip, "numbers", Work::numbers,
			"sum", () -> POOL.invoke(new Sum(0, 2_000_000)), "stores", Work::stores, "locks", Work::locks, "text", Work::text);
		Round round = rounds.get(arguments[0]);
		for (int i = 1; i < Integer.getInteger("threads", 1); i++)
			new Thread(() -> forever(round)).start();
		forever(round);
	}
}
