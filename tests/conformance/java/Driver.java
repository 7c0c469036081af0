import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxException;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.Execution;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.ExecutionHandlers;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.OutputMessage;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.ContentReplaceEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.EntryInfo;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.MoveEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SearchEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SetPermissionEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.WriteEntry;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Drives commands, files and metrics with the published Java client and prints what it saw as one JSON object. This client has no
 * sessions, no status and no logs of background commands. Usage: Driver HOST:PORT
 */
public class Driver {
  static final Map<String, Object> seen = new LinkedHashMap<>();

  public static void main(String[] args) throws Exception {
    ConnectionConfig config =
        ConnectionConfig.builder().domain(args[0]).apiKey(args[1]).protocol("http").requestTimeout(Duration.ofSeconds(20)).build();
    Sandbox sandbox =
        Sandbox.builder()
            .connectionConfig(config)
            .image("host")
            .entrypoint("tail", "-f", "/dev/null")
            .env("COLOUR", "blue")
            .timeout(Duration.ofMinutes(5))
            .build();
    try {
      commands(sandbox);
      interrupt(sandbox);
      files(sandbox);
      var metrics = sandbox.getMetrics();
      seen.put("metrics", List.of(metrics.getCpuCount(), metrics.getCpuUsedPercentage(), metrics.getMemoryTotalInMiB(),
          metrics.getMemoryUsedInMiB(), metrics.getTimestamp()));
      seen.put("now", System.currentTimeMillis());
      seen.put("healthy", sandbox.isHealthy());
    } finally {
      sandbox.kill();
      sandbox.close();
    }
    System.out.write((json(seen) + "\n").getBytes(StandardCharsets.UTF_8));
    System.out.flush();
    System.exit(0); // its connection pool would keep the process alive for a while
  }

  static void commands(Sandbox sandbox) {
    run(sandbox, "echo", "echo hi", null);
    run(sandbox, "failing", "echo out; echo err >&2; exit 3", null);
    run(sandbox, "killed", "kill -9 $$", null);
    run(sandbox, "unknown", "no-such-program-at-all", null);
    run(sandbox, "blank", "printf 'a\\n\\nb\\n'", null);
    run(sandbox, "unicode", "printf 'ünï ☃ \\342\\200\\250|\\302\\205 end\\n'", null);
    Execution many = sandbox.commands().run("seq 1 20000");
    List<OutputMessage> lines = many.getLogs().getStdout();
    seen.put("many", List.of(lines.size(), lines.get(lines.size() - 1).getText()));
    run(sandbox, "options", "echo \"$COLOUR|$(pwd)\"", "/usr/lib");
    List<String> streamed = new ArrayList<>();
    ExecutionHandlers handlers = ExecutionHandlers.builder().onStdout(message -> streamed.add(message.getText())).build();
    sandbox.commands().run(RunCommandRequest.builder().command("echo one; sleep 0.2; echo two").handlers(handlers).build());
    seen.put("streamed", streamed);
    Execution background =
        sandbox.commands().run(RunCommandRequest.builder().command("sleep 4772").background(true).build());
    seen.put("background", List.of(background.getId() != null, background.getError() == null));
    sandbox.commands().interrupt(background.getId());
    run(sandbox, "after_interrupt", "pgrep -c -f '^sleep 477[2]$'; true", null);
  }

  /** Ends a foreground command from another thread, as soon as its id is known. */
  static void interrupt(Sandbox sandbox) throws Exception {
    CompletableFuture<String> id = new CompletableFuture<>();
    ExecutionHandlers handlers = ExecutionHandlers.builder().onInit(init -> id.complete(init.getId())).build();
    CompletableFuture<Execution> running =
        CompletableFuture.supplyAsync(
            () -> sandbox.commands().run(RunCommandRequest.builder().command("echo on; sleep 4773").handlers(handlers).build()));
    sandbox.commands().interrupt(id.get(20, TimeUnit.SECONDS));
    seen.put("interrupted", shape(running.get(20, TimeUnit.SECONDS)));
  }

  static void files(Sandbox sandbox) throws Exception {
    var files = sandbox.files();
    byte[] bytes = new byte[300000];
    for (int i = 0; i < bytes.length; ++i) bytes[i] = (byte) (i % 251);
    files.createDirectories(List.of(WriteEntry.builder().path("/tmp/java/deep").mode(700).build()));
    files.write(List.of(
        WriteEntry.builder().path("/tmp/java/a.txt").data("one two one\n").mode(644).build(),
        WriteEntry.builder().path("/tmp/java/deep/файл.bin").data(bytes).mode(600).build(),
        WriteEntry.builder().path("/tmp/java/owned").data("").mode(755).owner("nobody").group("nogroup").build()));
    seen.put("read", files.readFile("/tmp/java/a.txt"));
    seen.put("binary", Arrays.equals(bytes, files.readByteArray("/tmp/java/deep/файл.bin")));
    try (InputStream stream = files.readStream("/tmp/java/deep/файл.bin")) {
      seen.put("streamed_bytes", stream.readAllBytes().length);
    }
    seen.put("range", files.readFile("/tmp/java/a.txt", "UTF-8", "bytes=4-6"));
    try (InputStream stream = files.readStream("/tmp/java/a.txt", "bytes=0-2")) {
      seen.put("ranges", List.of(new String(files.readByteArray("/tmp/java/a.txt", "bytes=-4"), StandardCharsets.UTF_8),
          new String(stream.readAllBytes(), StandardCharsets.UTF_8)));
    }
    byte[] large = new byte[5_000_000];
    for (int i = 0; i < large.length; ++i) large[i] = (byte) (i % 249);
    files.writeFile("/tmp/java/text", "plain");
    files.writeFile(WriteEntry.builder().path("/tmp/java/large").data(new ByteArrayInputStream(large)).mode(640).build());
    seen.put("written", List.of(files.readFile("/tmp/java/text"), Arrays.equals(large, files.readByteArray("/tmp/java/large"))));
    files.deleteFiles(List.of("/tmp/java/text", "/tmp/java/large"));
    List<Object> info = new ArrayList<>();
    boolean dates = true;
    for (EntryInfo entry : files.readFileInfo(List.of("/tmp/java/a.txt", "/tmp/java/deep", "/tmp/java/owned")).values()) {
      info.add(Map.of("path", entry.getPath(), "size", entry.getSize(), "mode", entry.getMode(), "owner", entry.getOwner(),
          "group", entry.getGroup()));
      dates = dates && Math.abs(entry.getModifiedAt().toEpochSecond() * 1000 - System.currentTimeMillis()) < 60000;
    }
    seen.put("info", info);
    seen.put("dates", dates);
    List<String> found = new ArrayList<>();
    for (EntryInfo entry : files.search(SearchEntry.builder().path("/tmp/java").pattern("*.{txt,bin}").build())) {
      found.add(entry.getPath());
    }
    seen.put("search", found);
    files.replaceContents(List.of(
        ContentReplaceEntry.builder().path("/tmp/java/a.txt").oldContent("one").newContent("1").build()));
    files.replaceContents(List.of(
        ContentReplaceEntry.builder().path("/tmp/java/a.txt").oldContent("two").newContent("2").build()));
    seen.put("after_replace", files.readFile("/tmp/java/a.txt"));
    files.setPermissions(List.of(
        SetPermissionEntry.builder().path("/tmp/java/a.txt").mode(600).owner("nobody").group("nogroup").build()));
    EntryInfo changed = files.readFileInfo(List.of("/tmp/java/a.txt")).get("/tmp/java/a.txt");
    seen.put("permissions", List.of(changed.getMode(), changed.getOwner(), changed.getGroup()));
    files.moveFiles(List.of(MoveEntry.builder().src("/tmp/java/a.txt").dest("/tmp/java/new/b.txt").build()));
    seen.put("moved", files.readFile("/tmp/java/new/b.txt"));
    files.deleteFiles(List.of("/tmp/java/new/b.txt"));
    files.deleteDirectories(List.of("/tmp/java"));
    try {
      files.readFile("/tmp/java/a.txt");
      seen.put("missing", "read");
    } catch (SandboxException error) {
      seen.put("missing", error.getError().getCode());
    }
  }

  static void run(Sandbox sandbox, String name, String command, String directory) {
    RunCommandRequest.Builder request = RunCommandRequest.builder().command(command);
    if (directory != null) request = request.workingDirectory(directory);
    seen.put(name, shape(sandbox.commands().run(request.build())));
  }

  static Map<String, Object> shape(Execution ran) {
    Map<String, Object> out = new LinkedHashMap<>();
    out.put("stdout", texts(ran.getLogs().getStdout()));
    out.put("stderr", texts(ran.getLogs().getStderr()));
    out.put("exit", ran.getError() == null ? 0 : Integer.parseInt(ran.getError().getValue()));
    out.put("error", ran.getError() == null ? null : ran.getError().getName());
    return out;
  }

  static List<String> texts(List<OutputMessage> messages) {
    List<String> out = new ArrayList<>();
    for (OutputMessage message : messages) out.add(message.getText());
    return out;
  }

  static String json(Object value) {
    StringBuilder out = new StringBuilder();
    if (value instanceof Map<?, ?> map) {
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        out.append(out.isEmpty() ? "" : ",").append(json(entry.getKey())).append(':').append(json(entry.getValue()));
      }
      return "{" + out + "}";
    }
    if (value instanceof Collection<?> list) {
      for (Object element : list) out.append(out.isEmpty() ? "" : ",").append(json(element));
      return "[" + out + "]";
    }
    if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
    for (char c : value.toString().toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 0x20 || c > 0x7e) out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    return "\"" + out + "\"";
  }
}
