package clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.Watch;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.PutOption;
import java.io.File;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Takes jetcd through what test/clients asks of each client. */
public final class Jetcd {
  private static ByteSequence bytes(String text) {
    return ByteSequence.from(text, UTF_8);
  }

  private static void check(boolean condition, String what) {
    if (!condition) {
      throw new IllegalStateException(what);
    }
  }

  private static <T> T await(CompletableFuture<T> future) throws Exception {
    return future.get(20, TimeUnit.SECONDS);
  }

  private static Client connect(String password) throws Exception {
    String endpoint = System.getenv("ENDPOINT");
    return Client.builder()
        .endpoints("https://" + endpoint)
        .sslContext(ssl -> ssl.trustManager(new File(System.getenv("CA"))))
        .authority(endpoint.substring(0, endpoint.lastIndexOf(':')))
        .user(bytes("app"))
        .password(bytes(password))
        .build();
  }

  public static void main(String[] args) {
    try (Client client = connect("apw")) {
      run(client);
    } catch (Throwable failure) {
      System.err.println("failed: " + failure);
      System.exit(1);
    }
    System.exit(0);
  }

  private static void run(Client client) throws Exception {
    ByteSequence key = bytes("app/java");
    await(client.getKVClient().put(key, bytes("1")));
    check(await(client.getKVClient().get(key)).getKvs().get(0).getValue().toString(UTF_8).equals("1"), "put");
    System.out.println("ok put");

    for (boolean want : new boolean[] {true, false}) {
      boolean done = await(client.getKVClient().txn()
          .If(new Cmp(key, Cmp.Op.EQUAL, CmpTarget.value(bytes("1"))))
          .Then(Op.put(key, bytes("2"), PutOption.DEFAULT))
          .commit()).isSucceeded();
      check(done == want, "txn");
    }
    System.out.println("ok txn");

    CompletableFuture<String> event = new CompletableFuture<>();
    try (Watch.Watcher watcher = client.getWatchClient().watch(key,
        response -> event.complete(response.getEvents().get(0).getKeyValue().getValue().toString(UTF_8)))) {
      long revision = await(client.getKVClient().put(key, bytes("3"))).getHeader().getRevision();
      check(revision > 0 && await(event).equals("3"), "watch");
    }
    System.out.println("ok watch");

    long lease = await(client.getLeaseClient().grant(30)).getID();
    await(client.getKVClient().put(bytes("app/leased"), bytes("1"), PutOption.builder().withLeaseId(lease).build()));
    check(await(client.getLeaseClient().keepAliveOnce(lease)).getTTL() > 0, "lease: keep-alive");
    await(client.getLeaseClient().revoke(lease));
    check(await(client.getKVClient().get(bytes("app/leased"))).getKvs().isEmpty(), "lease: key after the end");
    System.out.println("ok lease");

    long holder = await(client.getLeaseClient().grant(10)).getID();
    ByteSequence held = await(client.getLockClient().lock(bytes("app/lock"), holder)).getKey();
    await(client.getLockClient().unlock(held));
    await(client.getLeaseClient().revoke(holder));
    System.out.println("ok lock");

    check(refusal(client, "other").contains("permission denied"), "auth: a key that is not permitted");
    try (Client wrong = connect("wrong")) {
      // The library keeps the reason to itself.
      String said = refusal(wrong, "app/java");
      check(said.contains("UNAUTHENTICATED"), "auth: a wrong password: " + said);
    }
    System.out.println("ok auth");
    System.out.println("ok tls");
  }

  private static String refusal(Client client, String key) {
    try {
      await(client.getKVClient().put(bytes(key), bytes("1")));
      return "";
    } catch (Exception error) {
      return String.valueOf(error);
    }
  }
}
