import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.regex.*;

/**
 * Makes Snowflakes. Their node id is leased from `randflake serve --layout …` over HTTP, and the
 * lease is renewed in the background. To print some (Java 17 or newer):
 *
 *     java Snowflakes.java --url http://127.0.0.1:8080 --count 10 --threads 4
 *
 * RANDFLAKE_SERVE_TOKEN is the token of the service, if it has one. For your own program, take all
 * but main and print. No id is made twice, because
 *
 *   - the tick of each id lies in a second s with start <= s < end_exclusive, as the service last
 *     answered; nothing else moves that end;
 *   - ticks never go back in this process, not even from one lease to the next, and each
 *     (tick, sequence) is used once;
 *   - an id is decided under one lock, by one reading of the clock: the second that is compared
 *     with the lease is the second in the id;
 *   - a lease is for one run of one process: it is saved nowhere, and released after the last id.
 */
public final class Snowflakes implements AutoCloseable {
    /** How long to wait for an answer, for a lease, or for a clock that is behind. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final HttpClient client =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final SecureRandom random = new SecureRandom();
    private final CountDownLatch stop = new CountDownLatch(1);
    private final Thread keeper = new Thread(this::keep, "keeper of the lease");
    private final String url;
    private final String token;
    private final Duration ttl;
    private final LongSupplier clock; // unix milliseconds
    private final Layout layout;

    // Guarded by this.
    private Lease lease;
    private long usedUntil; // the second after the last id of this lease, or its start
    private long tick; // of the last id
    private long next; // sequence in that tick
    private boolean closed;

    /** Takes a lease from the service. The token may be null. */
    public Snowflakes(String url, String token, Duration ttl)
            throws IOException, InterruptedException {
        this(url, token, ttl, System::currentTimeMillis);
    }

    Snowflakes(String url, String token, Duration ttl, LongSupplier clock)
            throws IOException, InterruptedException {
        this.url = url;
        this.token = token;
        this.ttl = ttl;
        this.clock = clock;
        layout = Layout.of(ask("GET", "/v1/layout", ""));
        for (long until = System.nanoTime() + PATIENCE.toNanos(); lease == null; ) {
            try {
                lease(null);
            } catch (Refusal refusal) {
                long again = TimeUnit.SECONDS.toNanos(refusal.retryAfter);
                if (again == 0 || System.nanoTime() + again > until) {
                    throw refusal;
                }
                TimeUnit.NANOSECONDS.sleep(again);
            }
        }
        keeper.setDaemon(true);
        keeper.start();
    }

    /**
     * Returns an id, an unsigned number. Waits while the ids of a tick are used up or the clock is
     * a little behind, and fails if no lease covers the current second.
     */
    public long next() throws InterruptedException {
        while (true) {
            long wait;
            synchronized (this) {
                long now = clock.getAsLong();
                wait = untilFree(now);
                if (wait <= 0) {
                    return take(now);
                }
            }
            Thread.sleep(wait);
        }
    }

    /** Returns how many milliseconds to wait for an id. */
    synchronized long untilFree(long now) {
        long first = next > layout.sequence.max() ? tick + 1 : tick;
        long from = Math.max(layout.epochMs + first * layout.tickMs, lease.start * 1000);
        if (closed) {
            throw new IllegalStateException("the generator is closed");
        } else if (now >= lease.endExclusive * 1000) {
            throw new IllegalStateException(
                "no lease covers this second: the service did not renew it in time");
        } else if (from - now > PATIENCE.toMillis()) {
            throw new IllegalStateException(
                "the clock is " + (from - now) + " ms behind the last id or the lease's start");
        } else if (from <= now && (now - layout.epochMs) / layout.tickMs > layout.time.max()) {
            throw new IllegalStateException("the layout has no ids for what the clock shows");
        }
        return from - now;
    }

    /** Returns an id of a time for which untilFree has found no wait. */
    synchronized long take(long now) {
        long current = (now - layout.epochMs) / layout.tickMs;
        if (current > tick) {
            tick = current;
            next = 0;
        }
        usedUntil = now / 1000 + 1;
        return tick << layout.time.shift
            | lease.nodeId << layout.node.shift
            | next++ << layout.sequence.shift;
    }

    /** Stops for good, then gives the node id back: others may use it from the next second on. */
    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        stop.countDown();
        try {
            keeper.join();
            // If a renewal has had no answer, the lease may have another name by now. This then
            // releases nothing, and the node id is free after its end.
            ask("POST", path("release"), "{\"used_until\":" + usedUntil + "}");
        } catch (IOException | InterruptedException e) {
            // All ids are right all the same.
            System.err.println("the node id is free only after the end of its lease: " + e);
        }
    }

    /** Renews the lease, and takes another one if it is lost. */
    private void keep() {
        String nextToken = randomToken();
        long wait = untilRenewal();
        try {
            while (!stop.await(wait, TimeUnit.MILLISECONDS)) {
                try {
                    lease(nextToken);
                    nextToken = randomToken();
                    wait = untilRenewal();
                } catch (LostException e) {
                    nextToken = null; // meanwhile, ids go on to the end that is known
                    wait = 0;
                } catch (IOException e) {
                    // A renewal is repeated with the same token, and so done once.
                    System.err.println("the lease is not renewed yet: " + e);
                    long again = e instanceof Refusal refusal ? refusal.retryAfter : 0;
                    wait = Math.max(1, again) * 1000;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // ids go on to the end that is known
        }
    }

    /** Returns a third of what is left: the answer to a repeated renewal has its first end. */
    private long untilRenewal() {
        return Math.min(ttl.toMillis(), lease.endExclusive * 1000 - clock.getAsLong()) / 3;
    }

    /** Renews the lease, or takes another one if there is no token for a renewal. */
    private void lease(String nextToken) throws IOException, InterruptedException {
        // The service compares its clock with now, also when a renewal is repeated: its token stays.
        String both = "{\"ttl_seconds\":%d,\"now\":%d,"
            .formatted(ttl.toSeconds(), clock.getAsLong() / 1000);
        String note = "java:" + ProcessHandle.current().pid();
        Lease got = Lease.of(nextToken == null
            ? ask("POST", "/v1/leases", both + "\"count\":1,\"note\":\"%s\"}".formatted(note))
            : ask("POST", path("renew"), both + "\"next_token\":\"%s\"}".formatted(nextToken)));
        synchronized (this) {
            if (nextToken == null) {
                if (got.nodeId > layout.node.max()) {
                    throw new IOException("the layout has no node id " + got.nodeId);
                }
                usedUntil = got.start;
            } else if (got.nodeId != lease.nodeId || got.start != lease.start) {
                throw new LostException();
            }
            lease = got;
        }
    }

    private String path(String operation) {
        String name = URLEncoder.encode(lease.name, StandardCharsets.UTF_8);
        return "/v1/leases/" + name + "/" + operation;
    }

    private String randomToken() {
        byte[] bytes = new byte[16];
        random.nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private String ask(String method, String path, String body)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path))
            .timeout(PATIENCE)
            .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        HttpResponse<String> answer =
            client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() == 410) {
            throw new LostException();
        } else if (answer.statusCode() >= 300) {
            String after = answer.headers().firstValue("Retry-After").orElse("0");
            throw new Refusal(answer.statusCode() + " " + answer.body().strip(), after);
        }
        return answer.body();
    }

    /** The lease was released, or others have its node id. */
    private static final class LostException extends IOException {}

    /** Another error that the service answered with. */
    private static final class Refusal extends IOException {
        final long retryAfter; // seconds, or 0

        Refusal(String message, String retryAfter) {
            super(message);
            this.retryAfter = retryAfter.matches("\\d{1,5}") ? Long.parseLong(retryAfter) : 0;
        }

        @Override
        public String toString() {
            return getMessage();
        }
    }

    /** As the service last answered. Whoever has the name can renew and release the lease. */
    record Lease(String name, long nodeId, long start, long endExclusive) {
        static Lease of(String json) throws IOException {
            return new Lease(
                find("\"lease\"\\s*:\\s*\"([^\"]+)\"", json),
                Long.parseLong(find("\"node_ids\"\\s*:\\s*\\[\\s*(\\d+)\\s*]", json)),
                Long.parseLong(find("\"start\"\\s*:\\s*(\\d+)", json)),
                Long.parseLong(find("\"end_exclusive\"\\s*:\\s*(\\d+)", json)));
        }
    }

    /** Where a field is in an id. */
    record Field(int shift, int bits) {
        long max() {
            return (1L << bits) - 1;
        }
    }

    /** What an id is made of. */
    record Layout(Field time, Field node, Field sequence, long tickMs, long epochMs) {
        /** Reads what the service answers, and refuses a layout that this class is not made for. */
        static Layout of(String json) throws IOException {
            Pattern field = Pattern.compile("\\[\\s*\"(time|node|sequence)\"\\s*,\\s*(\\d+)\\s*]");
            List<MatchResult> found = field.matcher(json).results().toList(); // from the top
            int shift = found.stream().mapToInt(it -> Integer.parseInt(it.group(2))).sum();
            boolean fits = shift <= 64;
            Map<String, Field> fields = new HashMap<>(Map.of("sequence", new Field(0, 0)));
            for (MatchResult it : found) {
                int bits = Integer.parseInt(it.group(2));
                shift -= bits;
                fields.put(it.group(1), new Field(shift, bits));
            }
            if (!fits || !fields.containsKey("time") || !fields.containsKey("node")) {
                throw new IOException("a layout must have a time and a node id, in 64 bits");
            }
            long tickMs = Long.parseLong(find("\"tick_ms\"\\s*:\\s*(\\d+)", json));
            long epochMs = Long.parseLong(find("\"epoch_ms\"\\s*:\\s*(\\d+)", json));
            boolean isZero = json.matches("(?s).*\"sequence\"\\s*:\\s*\"zero\".*");
            if (!isZero || tickMs == 0 || 1000 % tickMs != 0 || epochMs % tickMs != 0) {
                throw new IOException(
                    "only for layouts whose sequence begins at 0, and whose ticks are in one second");
            }
            return new Layout(
                fields.get("time"), fields.get("node"), fields.get("sequence"), tickMs, epochMs);
        }
    }

    /** Finds a part of what the service answers; the JDK has no reader of JSON. */
    private static String find(String pattern, String json) throws IOException {
        Matcher matcher = Pattern.compile(pattern).matcher(json);
        if (!matcher.find()) {
            throw new IOException("the service answered something else than expected");
        }
        return matcher.group(1);
    }

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>(Map.of(
            "--url", "http://127.0.0.1:8080", "--count", "1", "--threads", "1", "--ttl", "60"));
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i], arguments[i + 1]);
        }
        try {
            print(options.get("--url"), Long.parseLong(options.get("--count")),
                Integer.parseInt(options.get("--threads")),
                Duration.ofSeconds(Long.parseLong(options.get("--ttl"))));
        } catch (Exception e) {
            System.err.println("error: " + (e instanceof ExecutionException ? e.getCause() : e));
            System.exit(1);
        }
    }

    private static void print(String url, long count, int threads, Duration ttl) throws Exception {
        Writer out = new BufferedWriter(new OutputStreamWriter(System.out));
        try (var ids = new Snowflakes(url, System.getenv("RANDFLAKE_SERVE_TOKEN"), ttl)) {
            // After SIGTERM and Ctrl-C, too.
            Runtime.getRuntime().addShutdownHook(new Thread(ids::close));
            AtomicLong left = new AtomicLong(count);
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            List<Future<?>> parts = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                parts.add(pool.submit(() -> {
                    while (left.decrementAndGet() >= 0) {
                        out.write(Long.toUnsignedString(ids.next()) + "\n");
                    }
                    return null;
                }));
            }
            pool.shutdown();
            for (Future<?> part : parts) {
                part.get();
            }
        } finally {
            out.flush();
        }
    }
}
