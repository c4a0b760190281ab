// SPDX-License-Identifier: Apache-2.0
/** Seven calls that are known, from run() on, in the first thread and in one more. usage: java Seven.java SECONDS */
public class Seven {
	static long sum;

	static long seventh(long n) { for (long i = 0; i < 2000; i++) n = n * 6364136223846793005L + i; return n; }
	static long sixth(long n) { return seventh(n) + 1; }
	static long fifth(long n) { return sixth(n) + 1; }
	static long fourth(long n) { return fifth(n) + 1; }
	static long third(long n) { return fourth(n) + 1; }
	static long second(long n) { return third(n) + 1; }
	static long first(long n) { return second(n) + 1; }

	static void run(long until) {
		while (System.nanoTime() < until)
			sum += first(sum);
	}

	public static void main(String[] arguments) throws InterruptedException {
		long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
		Thread other = new Thread(() -> run(until));

		other.start();
		System.out.println("ready");
		run(until);
		other.join();
	}
}
