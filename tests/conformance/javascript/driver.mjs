// Drives commands, sessions, files and metrics with the published JavaScript client and prints what it saw as one JSON object.
// Usage: node driver.mjs HOST:PORT KEY direct|proxied   (the module is found through the node_modules beside this file's copy)
import { ConnectionConfig, Sandbox, SandboxManager } from "@alibaba-group/opensandbox";

const [domain, apiKey, way] = process.argv.slice(2);
const connectionConfig = new ConnectionConfig({ domain, apiKey, useServerProxy: way === "proxied", protocol: "http", requestTimeoutSeconds: 20 });
const sandbox = await Sandbox.create({
  connectionConfig,
  image: "host",
  entrypoint: ["tail", "-f", "/dev/null"],
  env: { COLOUR: "blue" },
  timeoutSeconds: 300,
});
const { commands, files } = sandbox;
const seen = { version: process.version };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const shape = (ran) => ({
  stdout: ran.logs.stdout.map((message) => message.text),
  stderr: ran.logs.stderr.map((message) => message.text),
  exit: ran.exitCode ?? null,
  error: ran.error ? ran.error.name : null,
});
const run = async (command, options) => shape(await commands.run(command, options));

try {
  // Commands
  seen.echo = await run("echo hi");
  seen.failing = await run("echo out; echo err >&2; exit 3");
  seen.killed = await run("kill -9 $$");
  seen.unknown = await run("no-such-program-at-all");
  seen.blank = await run("printf 'a\\n\\nb\\n'");
  seen.unicode = await run("printf 'ünï ☃ \\342\\200\\250|\\302\\205 end\\n'");
  const many = await commands.run("seq 1 20000");
  seen.many = [many.logs.stdout.length, many.logs.stdout.at(-1).text];
  seen.options = await run('echo "$A|$COLOUR|$(pwd)"', { envs: { A: "x y" }, workingDirectory: "/usr/lib" });
  seen.identity = await run("id -u; id -g", { uid: 65534, gid: 65534 });
  seen.timeout = await run("sleep 30", { timeoutSeconds: 1 });
  const streamed = [];
  await commands.run("echo one; sleep 0.2; echo two", undefined, { onStdout: (message) => streamed.push(message.text) });
  seen.streamed = streamed;
  seen.events = [];
  for await (const event of commands.runStream("echo a; echo b >&2; exit 2")) seen.events.push([event.type, event.text ?? null]);
  // A caller that gives up leaves; the command goes on.
  const leftAt = Date.now();
  for await (const event of commands.runStream("sleep 3; echo done > /tmp/left")) if (event.type === "init") break;
  seen.left_after = Date.now() - leftAt;

  // Background: status, logs by cursor, interrupt
  const background = await commands.run("echo started; sleep 4771", { background: true });
  seen.running = (await commands.getCommandStatus(background.id)).running;
  let logs = await commands.getBackgroundCommandLogs(background.id);
  for (let i = 0; i < 100 && logs.content === ""; ++i, await pause(50)) logs = await commands.getBackgroundCommandLogs(background.id);
  seen.logs = [logs.content, logs.cursor];
  seen.logs_rest = (await commands.getBackgroundCommandLogs(background.id, logs.cursor)).content;
  await commands.interrupt(background.id);
  let status = await commands.getCommandStatus(background.id);
  for (let i = 0; i < 100 && status.running; ++i, await pause(50)) status = await commands.getCommandStatus(background.id);
  seen.interrupted = [status.running, status.exitCode, status.content];

  // Sessions
  const session = await commands.createSession({ workingDirectory: "/tmp" });
  seen.session = [
    shape(await commands.runInSession(session, "pwd; export KEPT=yes; plain=1; f() { echo f; }; cd /usr")),
    shape(await commands.runInSession(session, "echo $KEPT $plain $(pwd); f")),
    shape(await commands.runInSession(session, "exit 7")),
    shape(await commands.runInSession(session, "echo $KEPT", { workingDirectory: "/usr/lib" })),
    shape(await commands.runInSession(session, "sleep 30", { timeoutSeconds: 1 })),
  ];
  seen.session_streamed = [];
  await commands.runInSession(session, "echo out; echo err >&2", undefined, {
    onStdout: (message) => seen.session_streamed.push(message.text),
    onStderr: (message) => seen.session_streamed.push(message.text),
    onExecutionComplete: () => seen.session_streamed.push("complete"),
  });
  await commands.deleteSession(session);

  // Files
  const bytes = new Uint8Array(300000).map((_, i) => i % 251);
  await files.createDirectories([{ path: "/tmp/js/deep", mode: 700 }]);
  await files.writeFiles([
    { path: "/tmp/js/a.txt", data: "one two one\n", mode: 644 },
    { path: "/tmp/js/deep/файл.bin", data: bytes, mode: 600 },
    { path: "/tmp/js/owned", data: "", owner: "nobody", group: "nogroup" },
  ]);
  seen.read = await files.readFile("/tmp/js/a.txt");
  const back = await files.readBytes("/tmp/js/deep/файл.bin");
  seen.binary = back.length === bytes.length && back.every((byte, i) => byte === bytes[i]);
  let streamedBytes = 0;
  for await (const chunk of files.readBytesStream("/tmp/js/deep/файл.bin")) streamedBytes += chunk.length;
  seen.streamed_bytes = streamedBytes;
  seen.range = await files.readFile("/tmp/js/a.txt", { range: "bytes=4-6" });
  await files.writeFiles([{ path: "/tmp/js/lines", data: new Blob(["1\n2\n", "3\n4\n"]) }]);
  seen.lines = await files.readFile("/tmp/js/lines", { offset: 2, limit: 2 });
  async function* pieces() {
    for (let i = 0; i < 100; ++i) yield new Uint8Array(65536).fill(i);
  }
  await files.writeFiles([{ path: "/tmp/js/streamed", data: pieces() }]);
  await files.writeFiles([{ path: "/tmp/js/streamed2", data: ReadableStream.from(pieces()) }]);
  seen.streamed_up = await run("stat -c %s /tmp/js/streamed; cmp /tmp/js/streamed /tmp/js/streamed2 && rm /tmp/js/streamed /tmp/js/streamed2 /tmp/js/lines");
  const info = await files.getFileInfo(["/tmp/js/a.txt", "/tmp/js/deep", "/tmp/js/owned"]);
  seen.info = Object.values(info).map(({ path, type, size, mode, owner, group }) => ({ path, type, size, mode, owner, group }));
  seen.dates = Object.values(info).every((entry) => entry.modifiedAt instanceof Date && !Number.isNaN(entry.modifiedAt.getTime()));
  seen.search = (await files.search({ path: "/tmp/js", pattern: "*.{txt,bin}" })).map((entry) => entry.path);
  seen.list = (await files.listDirectory({ path: "/tmp/js", depth: 2 })).map((entry) => entry.path);
  seen.replaced = (await files.replaceContentsDetailed([{ path: "/tmp/js/a.txt", oldContent: "one", newContent: "1" }])).map((entry) => entry.replacedCount);
  await files.replaceContents([{ path: "/tmp/js/a.txt", oldContent: "two", newContent: "2" }]);
  seen.after_replace = await files.readFile("/tmp/js/a.txt");
  await files.setPermissions([{ path: "/tmp/js/a.txt", mode: 600, owner: "nobody", group: "nogroup" }]);
  const changed = Object.values(await files.getFileInfo(["/tmp/js/a.txt"]))[0];
  seen.permissions = [changed.mode, changed.owner, changed.group];
  await files.moveFiles([{ src: "/tmp/js/a.txt", dest: "/tmp/js/new/b.txt" }]);
  seen.moved = await files.readFile("/tmp/js/new/b.txt");
  await files.deleteFiles(["/tmp/js/new/b.txt"]);
  await files.deleteDirectories(["/tmp/js"]);
  seen.missing = await files.getFileInfo(["/tmp/js/a.txt"]).then(() => "found", (error) => error.error?.code ?? String(error));

  // Snapshots
  const manager = SandboxManager.create({ connectionConfig });
  await run("echo kept > /root/kept");
  let snapshot = await manager.createSnapshot(sandbox.id, { name: "js" });
  seen.snapshot = [snapshot.status.state, snapshot.sandboxId === sandbox.id, snapshot.name];
  for (let i = 0; i < 200 && snapshot.status.state === "Creating"; ++i, await pause(20)) snapshot = await manager.getSnapshot(snapshot.id);
  const restored = await Sandbox.create({ connectionConfig, snapshotId: snapshot.id, timeoutSeconds: 300 });
  seen.restored = shape(await restored.commands.run("cat /root/kept"));
  seen.snapshots = (await manager.listSnapshots({ sandboxId: sandbox.id })).items.map((item) => [item.id === snapshot.id, item.status.state]);
  await restored.kill();
  await restored.close();
  await manager.deleteSnapshot(snapshot.id);
  seen.no_snapshot = await manager.getSnapshot(snapshot.id).then(() => "found", (error) => error.error?.code ?? String(error));
  await manager.close();

  // Volumes
  const common = { connectionConfig, image: "host", entrypoint: ["tail", "-f", "/dev/null"], timeoutSeconds: 300 };
  const volume = { name: "v", pvc: { claimName: "js-volume", deleteOnSandboxTermination: true }, mountPath: "/v" };
  const writer = await Sandbox.create({ ...common, volumes: [volume] });
  seen.volume_written = shape(await writer.commands.run("echo shared > /v/f"));
  const reader = await Sandbox.create({ ...common, volumes: [{ ...volume, readOnly: true }] });
  seen.volume_read = shape(await reader.commands.run("cat /v/f; touch /v/x"));
  for (const one of [writer, reader]) {
    await one.kill();
    await one.close();
  }
  const refused = (wanted) => Sandbox.create({ ...common, volumes: [wanted] }).then(() => "made", (error) => error.error?.code ?? String(error));
  seen.volumes_refused = [
    await refused({ name: "h", host: { path: "/etc" }, mountPath: "/h" }),
    await refused({ name: "p", pvc: { claimName: "js-volume", createIfNotExists: false }, mountPath: "/p" }),
  ];

  // A claim; the client has no calls for pools themselves
  const pools = (method, path, body) =>
    fetch(`http://${domain}/v1/pools${path}`, { method, body: body && JSON.stringify(body), headers: { "Content-Type": "application/json", "OPEN-SANDBOX-API-KEY": apiKey } });
  const pool = `js-${way}`;
  await pools("POST", "", { name: pool, template: { image: { uri: "host" }, resourceLimits: {} }, capacitySpec: { bufferMin: 1, bufferMax: 1, poolMin: 0, poolMax: 4 } });
  for (let i = 0; i < 200 && (await (await pools("GET", `/${pool}`)).json()).status.available < 1; ++i) await pause(50);
  const claimed = await Sandbox.create({ ...common, env: { CLAIM: "mine" }, extensions: { poolRef: pool } });
  seen.claimed = shape(await claimed.commands.run("echo $CLAIM"));
  seen.claims = (await (await pools("GET", `/${pool}`)).json()).status.allocated;
  await claimed.kill();
  await claimed.close();
  seen.pool_gone = (await pools("DELETE", `/${pool}`)).status;
  seen.no_pool = await Sandbox.create({ ...common, extensions: { poolRef: pool } }).then(() => "made", (error) => error.error?.code ?? String(error));

  // Metrics
  const metrics = await sandbox.getMetrics();
  seen.metrics = [metrics.cpuCount, metrics.cpuUsedPercentage, metrics.memoryTotalMiB, metrics.memoryUsedMiB, metrics.timestamp];
  seen.now = Date.now();
  seen.metrics_service = (await sandbox.metrics.getMetrics()).memoryTotalMiB === metrics.memoryTotalMiB;
  seen.healthy = [await sandbox.health.ping(), await sandbox.isHealthy()];
  const isolation = await sandbox.isolation.capabilities();
  seen.isolation = isolation.available;
  const finished = () => files.readFile("/tmp/left").catch(() => "");
  for (let i = 0; i < 200 && (await finished()) === ""; ++i) await pause(50);
  seen.left = await finished();
} finally {
  await sandbox.kill();
  await sandbox.close();
}
console.log(JSON.stringify(seen));
