import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What a generator does when the clock is wrong. The service here grants one lease of 10 seconds.
 *
 *     javac -d classes *.java && java -cp classes SnowflakesTest
 */
final class SnowflakesTest {
    private static final String LAYOUT = "{\"name\":\"custom\",\"fields\":[[\"time\",39],"
        + "[\"sequence\",1],[\"node\",16]],\"tick_ms\":10,\"epoch_ms\":1600000000000,\"sequence\":";
    private static final String LEASE = "{\"lease\":\"a.1700000000.7\",\"node_ids\":[7],"
        + "\"start\":1700000000,\"end_exclusive\":1700000010}";
    private static final long START = 1_700_000_000_000L;
    private static final long FIRST = 10_000_000_000L << 17 | 7; // in the first tick of the lease
    private static final long SEQUENCE = 1 << 16;
    private static final long TICK = 1 << 17;

    private static String released;

    public static void main(String[] arguments) throws Exception {
        HttpServer service = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        service.createContext("/v1/layout", it -> answer(it, 200, LAYOUT + "\"zero\"}"));
        service.createContext("/v1/leases", SnowflakesTest::lease);
        service.start();
        try {
            test("http://127.0.0.1:" + service.getAddress().getPort());
        } finally {
            service.stop(0);
        }
    }

    private static void test(String url) throws Exception {
        AtomicLong clock = new AtomicLong(START);

        try (var ids = new Snowflakes(url, null, Duration.ofSeconds(60), clock::get)) {
            // No id is of a second before the lease.
            equal(ids.untilFree(START - 1), 1);

            // A tick has each sequence once.
            equal(ids.take(START), FIRST);
            equal(ids.take(START + 9), FIRST + SEQUENCE);
            equal(ids.untilFree(START + 9), 1);
            clock.set(START + 10);
            equal(ids.next(), FIRST + TICK);

            // Ticks do not follow a clock that steps back.
            clock.set(START + 5000);
            equal(ids.next(), FIRST + 500 * TICK);
            equal(ids.untilFree(START + 4000), 1000);
            fails(() -> ids.untilFree(START - 3_600_000));
            equal(ids.next(), FIRST + 500 * TICK + SEQUENCE);

            // The last second is that before the end.
            clock.set(START + 9999);
            equal(ids.next(), FIRST + 999 * TICK);
            clock.set(START + 10_000);
            fails(ids::next);
            clock.set(START + 9999);
        }
        equal(released, "{\"used_until\":1700000010}");

        var unused = new Snowflakes(url, null, Duration.ofSeconds(60), () -> START);
        unused.close();
        fails(unused::next);
        equal(released, "{\"used_until\":1700000000}");

        fails(() -> Snowflakes.Layout.of(LAYOUT + "\"continuing\"}"));
        fails(() -> Snowflakes.Layout.of(LAYOUT + "[\"random\",2]}"));
        fails(() -> Snowflakes.Layout.of((LAYOUT + "\"zero\"}").replace("00000,", "00005,")));
        fails(() -> Snowflakes.Layout.of((LAYOUT + "\"zero\"}").replace(":10,", ":2000,")));
    }

    private static void lease(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.endsWith("/release")) {
            released = new String(exchange.getRequestBody().readAllBytes());
            answer(exchange, 200, "{\"released\":1}");
        } else {
            answer(exchange, path.endsWith("/renew") ? 503 : 201, LEASE);
        }
    }

    private static void answer(HttpExchange exchange, int status, String json) throws IOException {
        byte[] bytes = json.getBytes();
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private static void equal(Object got, Object expected) {
        if (!got.equals(expected)) {
            throw new AssertionError("got " + got + ", expected " + expected);
        }
    }

    private static void equal(long got, long expected) {
        equal((Object) got, (Object) expected);
    }

    private interface Call {
        void run() throws Exception;
    }

    private static void fails(Call call) throws Exception {
        try {
            call.run();
        } catch (IllegalStateException | IOException expected) {
            return;
        }
        throw new AssertionError("did not fail");
    }
}
