import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.SandboxManager;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxException;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.OutputMessage;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxFilter;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxInfo;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Drives the life of sandboxes, and the manager, with the published Java client and prints what it saw as one JSON object. This client
 * cannot change metadata, and has no sandboxes that live for ever. Usage: Lifecycle HOST:PORT KEY
 */
public class Lifecycle {
  static final Map<String, Object> seen = new LinkedHashMap<>();
  static final List<Sandbox> made = new ArrayList<>();
  static ConnectionConfig config;

  public static void main(String[] args) throws Exception {
    config = config(args[0], args[1]);
    try {
      live();
      manage();
      seen.put("refused", List.of(
          code(() -> create(start("9").image("registry.example/none:1"))),
          code(() -> create(start("9").resource(Map.of("memory", "lots")))),
          code(() -> create(start("9").entrypoint("/nope"))),
          code(() -> Sandbox.connector().connectionConfig(config(args[0], "wrong")).sandboxId(made.get(0).getId()).connect())));
    } finally {
      for (Sandbox sandbox : made) {
        code(sandbox::kill);
        sandbox.close();
      }
    }
    System.out.write((Driver.json(seen) + "\n").getBytes(StandardCharsets.UTF_8));
    System.out.flush();
    System.exit(0); // its connection pool would keep the process alive for a while
  }

  static void live() throws Exception {
    Sandbox first = create(start("1").resource(Map.of("cpu", "1", "memory", "256Mi")).env("COLOUR", "blue"));
    SandboxInfo info = first.getInfo();
    seen.put("info", List.of(info.getId().equals(first.getId()), info.getStatus().getState(), info.getImage().getImage(),
        info.getMetadata().get("n"), info.getEntrypoint()));
    seen.put("created", Math.abs(Duration.between(info.getCreatedAt(), OffsetDateTime.now()).toSeconds()) < 60);
    seen.put("left", left(info));
    seen.put("limits", text(first, "nproc; head -1 /proc/meminfo; echo $COLOUR"));
    first.renew(Duration.ofHours(1));
    seen.put("renewed", left(first.getInfo()));
    create(start("2"));

    text(first, "echo kept > /tmp/x");
    first.pause();
    seen.put("paused", first.getInfo().getStatus().getState());
    seen.put("paused_twice", code(first::pause));
    first.resume();
    first.checkReady(Duration.ofSeconds(20), Duration.ofMillis(50));
    seen.put("resumed", with(first.getInfo().getStatus().getState(), text(first, "cat /tmp/x")));
    Sandbox connected = Sandbox.connector().connectionConfig(config).sandboxId(first.getId()).connect();
    seen.put("connected", with(connected.isHealthy(), text(connected, "cat /tmp/x")));
    connected.close();

    String serve = "mkdir /tmp/www && echo page > /tmp/www/p && cd /tmp/www && python3 -m http.server 8080";
    first.commands().run(RunCommandRequest.builder().command(serve).background(true).build());
    URI page = URI.create("http://" + first.getEndpoint(8080).getEndpoint() + "/p");
    HttpResponse<String> answer = get(page);
    for (int i = 0; i < 200 && answer.statusCode() != 200; ++i) {
      Thread.sleep(50);
      answer = get(page);
    }
    seen.put("served", List.of(answer.statusCode(), answer.body()));

    Sandbox ended = create(start("4").metadata("suite", "ended").entrypoint("sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; exit 7"));
    // Not at once: the end takes a command along whose answer is still on its way.
    text(ended, "(sleep 0.5; touch /tmp/go) > /dev/null 2>&1 &");
    info = ended.getInfo();
    for (int i = 0; i < 200 && info.getStatus().getState().equals("Running"); ++i) {
      Thread.sleep(20);
      info = ended.getInfo();
    }
    seen.put("ended", List.of(info.getStatus().getState(), info.getStatus().getReason()));
  }

  static void manage() {
    SandboxManager manager = SandboxManager.builder().connectionConfig(config).build();
    Sandbox third = create(start("3"));
    seen.put("listed", List.of(listed(manager, filter()), listed(manager, SandboxFilter.builder().metadata(Map.of("suite", suite(), "n", "2"))),
        listed(manager, filter().states("Paused"))));
    var second = manager.listSandboxInfos(filter().page(2).pageSize(2).build());
    var pages = second.getPagination();
    seen.put("page", List.of(numbers(second.getSandboxInfos()), pages.getTotalItems(), pages.getTotalPages(), pages.getHasNextPage()));
    manager.pauseSandbox(third.getId());
    List<Object> managed = new ArrayList<>();
    managed.add(manager.getSandboxInfo(third.getId()).getStatus().getState());
    managed.add(listed(manager, filter().states("Paused")));
    manager.resumeSandbox(third.getId());
    manager.renewSandbox(third.getId(), Duration.ofHours(2));
    SandboxInfo info = manager.getSandboxInfo(third.getId());
    managed.add(info.getStatus().getState());
    managed.add(left(info));
    seen.put("managed", managed);
    manager.killSandbox(third.getId());
    seen.put("killed", List.of(code(() -> manager.getSandboxInfo(third.getId())), code(() -> manager.killSandbox(third.getId()))));
    manager.close();
  }

  static ConnectionConfig config(String domain, String key) {
    return ConnectionConfig.builder().domain(domain).apiKey(key).protocol("http").requestTimeout(Duration.ofSeconds(20)).build();
  }

  static String suite() {
    return "java-" + ProcessHandle.current().pid();
  }

  static Sandbox.Builder start(String number) {
    return Sandbox.builder().connectionConfig(config).image("host").entrypoint("tail", "-f", "/dev/null").timeout(Duration.ofMinutes(5))
        .metadata("suite", suite()).metadata("n", number);
  }

  static Sandbox create(Sandbox.Builder builder) {
    Sandbox sandbox = builder.build();
    made.add(sandbox);
    return sandbox;
  }

  static SandboxFilter.Builder filter() {
    return SandboxFilter.builder().metadata(Map.of("suite", suite()));
  }

  static List<Object> listed(SandboxManager manager, SandboxFilter.Builder filter) {
    return numbers(manager.listSandboxInfos(filter.build()).getSandboxInfos());
  }

  static List<Object> numbers(List<SandboxInfo> infos) {
    List<Object> out = new ArrayList<>();
    for (SandboxInfo info : infos) out.add(info.getMetadata().get("n"));
    return out;
  }

  static HttpResponse<String> get(URI page) throws Exception {
    return HttpClient.newHttpClient().send(HttpRequest.newBuilder(page).build(), HttpResponse.BodyHandlers.ofString());
  }

  static long left(SandboxInfo info) {
    return Duration.between(OffsetDateTime.now(), info.getExpiresAt()).toSeconds();
  }

  static List<Object> text(Sandbox sandbox, String command) {
    List<Object> out = new ArrayList<>();
    for (OutputMessage message : sandbox.commands().run(command).getLogs().getStdout()) out.add(message.getText());
    return out;
  }

  static List<Object> with(Object first, List<Object> rest) {
    List<Object> out = new ArrayList<>(rest);
    out.add(0, first);
    return out;
  }

  static String code(Runnable call) {
    try {
      call.run();
      return "done";
    } catch (SandboxException error) {
      return error.getError().getCode();
    }
  }
}
