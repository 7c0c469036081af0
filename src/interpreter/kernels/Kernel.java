// The kernel of Java, on JShell. Java 17 or newer with the modules jdk.jshell and jdk.compiler (a JDK, not a JRE); Java compiles
// this file in memory. --add-opens is for descriptor 3, which Java has no public way to use. Cells run in this process: a second
// one, as JShell makes by default, costs memory and half a second.

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.UnresolvedReferenceException;
import jdk.jshell.execution.LocalExecutionControlProvider;

public final class Kernel {
  private static final int MAX_FRAME = 64 * 1024 * 1024;
  private static final int MAX_TRACE = 50;
  // What the jshell tool imports as well.
  private static final String[] IMPORTS = {"java.io", "java.math", "java.net", "java.nio.file", "java.util", "java.util.concurrent",
    "java.util.function", "java.util.regex", "java.util.stream"};

  private final DataInputStream in;
  private final OutputStream out;
  private final PrintStream stdout;
  private final PrintStream stderr;
  private final BlockingQueue<String[]> waiting = new ArrayBlockingQueue<>(1024);
  private final JShell shell;
  private volatile int count;
  private volatile boolean running;
  private volatile boolean interrupted;
  private String begun = "";  // the last cell that began, and the last that was to be interrupted; under the kernel's lock
  private String cancelled = "";

  /** A cell that failed, in the words of the protocol. */
  private record Failure(String name, String value, List<String> traceback) {}

  public static void main(String[] arguments) throws Exception {
    Kernel kernel = new Kernel();
    sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> {});  // it is for the cell's children; a frame says the rest
    kernel.send("{\"op\":\"ready\",\"language\":\"java\",\"version\":" + quoted(System.getProperty("java.version")) + "}");
    Thread reader = new Thread(kernel::read, "kernel reader");
    reader.setDaemon(true);
    reader.start();
    kernel.work();
  }

  private Kernel() throws Exception {
    var constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
    constructor.setAccessible(true);
    FileDescriptor socket = constructor.newInstance(3);
    in = new DataInputStream(new java.io.BufferedInputStream(new FileInputStream(socket), 1 << 16));
    out = new FileOutputStream(socket);
    stdout = replaced(FileDescriptor.out);
    stderr = replaced(FileDescriptor.err);
    System.setOut(stdout);
    System.setErr(stderr);
    shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), null).build();
    for (String each : IMPORTS) shell.eval("import " + each + ".*;");
  }

  // UTF-8 whatever the locale; a line goes out when it is complete, the rest before the next frame.
  private static PrintStream replaced(FileDescriptor fd) {
    return new PrintStream(new java.io.BufferedOutputStream(new FileOutputStream(fd), 1 << 13), true, StandardCharsets.UTF_8);
  }

  // ---- Frames

  private void read() {
    try {
      while (true) {
        int length = in.readInt();
        if (length < 0 || length > MAX_FRAME) break;
        String frame = new String(in.readNBytes(length), StandardCharsets.UTF_8);
        String op = member(frame, "op");
        if (op.equals("run")) waiting.put(new String[] {member(frame, "id"), member(frame, "code")});
        if (op.equals("interrupt") && cancel(member(frame, "id"))) interrupt();
      }
    } catch (EOFException end) {
      // execd is gone, or wants this kernel gone
    } catch (IOException | InterruptedException broken) {
      Runtime.getRuntime().halt(2);
    }
    flush();
    Runtime.getRuntime().halt(0);  // not exit: a cell may have left threads that do not end
  }

  private void flush() {
    System.out.flush();
    System.err.flush();
    stdout.flush();
    stderr.flush();
  }

  private synchronized void send(String json) {
    flush();
    byte[] body = json.getBytes(StandardCharsets.UTF_8);
    byte[] frame = new byte[4 + body.length];
    for (int i = 0; i < 4; i++) frame[i] = (byte) (body.length >>> (24 - 8 * i));
    System.arraycopy(body, 0, frame, 4, body.length);
    try {
      out.write(frame);
    } catch (IOException gone) {
      Runtime.getRuntime().halt(0);
    }
  }

  // ---- Runs

  private void work() throws InterruptedException {
    while (true) {
      String[] run = waiting.take();
      String id = quoted(run[0]);
      begin(run[0]);
      List<String> values = new ArrayList<>();
      Failure failure;
      try {
        failure = evaluate(run[1], values);
      } catch (Throwable broken) {
        failure = new Failure(broken.getClass().getSimpleName(), String.valueOf(broken.getMessage()), List.of(broken.toString()));
      }
      running = false;
      if (interrupted) failure = new Failure("KeyboardInterrupt", "the run was interrupted", List.of("KeyboardInterrupt: the run was interrupted"));
      if (failure == null && !values.isEmpty()) {
        String text = values.get(0);
        if (text.length() > MAX_FRAME / 8) text = text.substring(0, MAX_FRAME / 8) + "…";
        send("{\"op\":\"result\",\"id\":" + id + ",\"count\":" + count + ",\"data\":{\"text/plain\":" + quoted(text) + "}}");
      }
      if (failure != null) {
        StringBuilder lines = new StringBuilder();
        for (String line : failure.traceback) lines.append(lines.length() == 0 ? "" : ",").append(quoted(line));
        send("{\"op\":\"error\",\"id\":" + id + ",\"ename\":" + quoted(failure.name) + ",\"evalue\":" + quoted(failure.value)
            + ",\"traceback\":[" + lines + "]}");
      }
      send("{\"op\":\"done\",\"id\":" + id + ",\"count\":" + count + "}");
    }
  }

  private synchronized void begin(String id) {
    count++;
    begun = id;
    interrupted = cancelled.equals(id);
    running = true;
  }

  // Whether the cell has begun.
  private synchronized boolean cancel(String id) {
    cancelled = id;
    return begun.equals(id);
  }

  // Stops what runs, again and again until the run is over: between two snippets, or while one is compiled, nothing hears it.
  private void interrupt() {
    if (!running) return;
    interrupted = true;
    int run = count;
    while (running && count == run) {
      shell.stop();
      try {
        Thread.sleep(10);
      } catch (InterruptedException never) {
        return;
      }
    }
  }

  // Snippet by snippet. The value of the last one, if it is an expression that has one, goes to `values`.
  private Failure evaluate(String code, List<String> values) {
    SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
    String rest = code;
    while (!rest.isBlank() && !interrupted) {
      CompletionInfo next = analysis.analyzeCompletion(rest);
      if (next.completeness() == Completeness.EMPTY) break;
      boolean whole = next.completeness().isComplete() && next.source() != null;
      String source = whole ? next.source() : rest;
      rest = whole ? next.remaining() : "";
      values.clear();
      List<SnippetEvent> events = shell.eval(source);
      for (SnippetEvent event : events) {
        if (event.causeSnippet() != null) continue;  // an earlier snippet that this one changed
        Failure failure = failure_of(event, source);
        if (failure != null) return failure;
        Snippet snippet = event.snippet();
        boolean expression = snippet.kind() == Snippet.Kind.EXPRESSION || snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
        String value = event.value();
        if (expression && value != null && !value.isEmpty()) values.add(value);
      }
      if (events.isEmpty() && !whole && !interrupted) {
        return new Failure("CompilationException", "the cell ends in the middle of something", List.of(source));
      }
    }
    return null;
  }

  private Failure failure_of(SnippetEvent event, String source) {
    JShellException exception = event.exception();
    if (exception instanceof EvalException thrown) {
      List<String> lines = new ArrayList<>();
      describe(thrown, "", lines);
      return new Failure("EvalException", headline(thrown), lines);
    }
    if (exception instanceof UnresolvedReferenceException unresolved) {
      String what = "refers to something that is not declared: " + String.join(", ", shell.unresolvedDependencies(unresolved.getSnippet()).toList());
      return new Failure("UnresolvedReferenceException", what, List.of(what));
    }
    if (event.status() != Snippet.Status.REJECTED) return null;
    List<String> lines = new ArrayList<>();
    String first = null;
    for (Diag diagnostic : shell.diagnostics(event.snippet()).toList()) {
      if (!diagnostic.isError()) continue;
      String message = diagnostic.getMessage(Locale.ROOT);
      if (first == null) first = message.lines().findFirst().orElse(message);
      excerpt(source, diagnostic, lines);
      message.lines().filter(line -> !line.matches("\\s*location: class (REPL\\..*)?")).forEach(lines::add);
    }
    return new Failure("CompilationException", first == null ? "the cell was refused" : first, lines);
  }

  // The line of the error, and a mark below it.
  private static void excerpt(String source, Diag diagnostic, List<String> lines) {
    int at = (int) Math.max(0, Math.min(diagnostic.getPosition(), source.length()));
    int start = source.lastIndexOf('\n', at - 1) + 1;
    int end = source.indexOf('\n', at);
    lines.add(source.substring(start, end < 0 ? source.length() : end));
    lines.add(" ".repeat(at - start) + "^");
  }

  private static String headline(EvalException thrown) {
    // Variables of cells are members of classes that JShell makes; nobody knows them by those.
    String message = thrown.getMessage() == null ? "" : ": " + thrown.getMessage().replaceAll("REPL\\.\\$JShell\\$\\w+\\.", "");
    return thrown.getExceptionClassName() + message;
  }

  private static void describe(EvalException thrown, String lead, List<String> lines) {
    lines.add(lead + headline(thrown));
    int shown = 0;
    for (StackTraceElement frame : thrown.getStackTrace()) {
      if (shown++ == MAX_TRACE) {
        lines.add("    ... " + (thrown.getStackTrace().length - MAX_TRACE) + " more");
        break;
      }
      String type = frame.getClassName();
      if (type.startsWith("jdk.jshell.") || type.startsWith("jdk.internal.reflect.") || type.equals("Kernel")) continue;
      // JShell names a snippet's file by its number, "#12", and hides its own class around it.
      String method = type.isEmpty() ? frame.getMethodName() : type + "." + frame.getMethodName();
      boolean snippet = frame.getFileName() != null && frame.getFileName().startsWith("#");
      lines.add("    at " + (snippet ? (method + " ").stripLeading() + "(" + frame.getFileName() + ":" + frame.getLineNumber() + ")" : frame));
    }
    if (thrown.getCause() instanceof EvalException cause) describe(cause, "Caused by: ", lines);
  }

  // ---- JSON, as much of it as there is here

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder(text.length() + 16).append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean lone = Character.isSurrogate(c)
          && !(Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1)))
          && !(Character.isLowSurrogate(c) && i > 0 && Character.isHighSurrogate(text.charAt(i - 1)));
      if (c == '"' || c == '\\') json.append('\\').append(c);
      else if (c == '\n') json.append("\\n");
      else if (c < 0x20 || lone) json.append(String.format("\\u%04x", lone ? 0xfffd : (int) c));
      else json.append(c);
    }
    return json.append('"').toString();
  }

  // The string that is the member `name` of an object whose members are all strings.
  private static String member(String json, String name) {
    int at = json.indexOf('{') + 1;
    while (true) {
      int[] end = new int[1];
      int start = json.indexOf('"', at);
      if (start < 0) return "";
      String key = string_at(json, start, end);
      at = json.indexOf(':', end[0]) + 1;
      while (Character.isWhitespace(json.charAt(at))) at++;
      if (json.charAt(at) != '"') {  // a number or the like: not of interest
        at = json.indexOf(',', at);
        if (at < 0) return "";
        continue;
      }
      String value = string_at(json, at, end);
      if (key.equals(name)) return value;
      at = end[0];
    }
  }

  // The string whose opening quote is at `start`; end[0] becomes the place after its closing one.
  private static String string_at(String json, int start, int[] end) {
    StringBuilder text = new StringBuilder();
    int i = start + 1;
    for (; json.charAt(i) != '"'; i++) {
      char c = json.charAt(i);
      if (c != '\\') {
        text.append(c);
        continue;
      }
      c = json.charAt(++i);
      switch (c) {
        case 'n' -> text.append('\n');
        case 't' -> text.append('\t');
        case 'r' -> text.append('\r');
        case 'b' -> text.append('\b');
        case 'f' -> text.append('\f');
        case 'u' -> {
          text.append((char) Integer.parseInt(json.substring(i + 1, i + 5), 16));
          i += 4;
        }
        default -> text.append(c);
      }
    }
    end[0] = i + 1;
    return text.toString();
  }
}
