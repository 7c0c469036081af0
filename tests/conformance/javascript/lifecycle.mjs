// Drives the life of sandboxes, and the manager, with the published JavaScript client and prints what it saw as one JSON object.
// Usage: node lifecycle.mjs HOST:PORT KEY direct|proxied
import { ConnectionConfig, Sandbox, SandboxManager } from "@alibaba-group/opensandbox";

const [domain, apiKey, way] = process.argv.slice(2);
const options = { domain, useServerProxy: way === "proxied", protocol: "http", requestTimeoutSeconds: 20 };
const connectionConfig = new ConnectionConfig({ ...options, apiKey });
const entrypoint = ["tail", "-f", "/dev/null"];
const made = [];
const create = async (more) => {
  const sandbox = await Sandbox.create({ connectionConfig, image: "host", entrypoint, timeoutSeconds: 300, ...more });
  made.push(sandbox);
  return sandbox;
};
const seen = {};
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const text = async (sandbox, command) => (await sandbox.commands.run(command)).logs.stdout.map((message) => message.text);
const code = (promise) => promise.then(() => "done", (error) => error.error?.code ?? String(error));
const left = (info) => Math.round((info.expiresAt - Date.now()) / 1000);

try {
  const suite = `js-${way}-${process.pid}`;
  const first = await create({ metadata: { suite, n: "1" }, resource: { cpu: "1", memory: "256Mi" }, env: { COLOUR: "blue" } });
  let info = await first.getInfo();
  seen.info = [info.id === first.id, info.status.state, info.image.uri, info.metadata.n, info.entrypoint];
  seen.created = Math.abs(info.createdAt - Date.now()) < 60000;
  seen.left = left(info);
  seen.limits = await text(first, "nproc; head -1 /proc/meminfo; echo $COLOUR");

  await first.renew(3600);
  seen.renewed = left(await first.getInfo());
  seen.patched = (await first.patchMetadata({ n: null, kept: "yes" })).metadata;
  await first.patchMetadata({ n: "1", kept: null });
  seen.forever = (await (await create({ timeoutSeconds: null, metadata: { suite, n: "2" } })).getInfo()).expiresAt;

  await text(first, "echo kept > /tmp/x");
  await first.pause();
  seen.paused = (await first.getInfo()).status.state;
  seen.paused_twice = await code(first.pause());
  const resumed = await first.resume(); // shares the connections of the first object, so it is not closed by itself
  seen.resumed = [(await resumed.getInfo()).status.state, ...(await text(resumed, "cat /tmp/x"))];
  const connected = await Sandbox.connect({ connectionConfig, sandboxId: first.id });
  seen.connected = [await connected.isHealthy(), ...(await text(connected, "cat /tmp/x"))];

  // What a program in the sandbox serves
  await first.commands.run("mkdir /tmp/www && echo page > /tmp/www/p && cd /tmp/www && python3 -m http.server 8080", { background: true });
  const endpoint = await first.getEndpoint(8080);
  const get = () => fetch(`http://${endpoint.endpoint}/p`, { headers: endpoint.headers }).catch(() => ({ status: 0 }));
  let page = await get();
  for (let i = 0; i < 200 && page.status !== 200; ++i, await pause(50)) page = await get();
  seen.served = [page.status, await page.text()];
  seen.url = (await first.getEndpointUrl(8080)) === `http://${endpoint.endpoint}`;

  const ended = await create({ entrypoint: ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; exit 7"] });
  // Not at once: the end takes a command along whose answer is still on its way.
  await text(ended, "(sleep 0.5; touch /tmp/go) > /dev/null 2>&1 &");
  info = await ended.getInfo();
  for (let i = 0; i < 200 && info.status.state === "Running"; ++i, await pause(20)) info = await ended.getInfo();
  seen.ended = [info.status.state, info.status.reason];

  // The manager
  const manager = SandboxManager.create({ connectionConfig });
  const third = await create({ metadata: { suite, n: "3" } });
  const listed = async (filter) => (await manager.listSandboxInfos(filter)).items.map((item) => item.metadata.n);
  seen.listed = [
    await listed({ metadata: { suite } }),
    await listed({ metadata: { suite, n: "2" } }),
    await listed({ metadata: { suite }, states: ["Paused"] }),
  ];
  const second = await manager.listSandboxInfos({ metadata: { suite }, page: 2, pageSize: 2 });
  const { totalItems, totalPages, hasNextPage } = second.pagination;
  seen.page = [second.items.map((item) => item.metadata.n), totalItems, totalPages, hasNextPage];
  await manager.pauseSandbox(third.id);
  seen.managed = [(await manager.getSandboxInfo(third.id)).status.state, await listed({ metadata: { suite }, states: ["Paused"] })];
  await manager.resumeSandbox(third.id);
  await manager.renewSandbox(third.id, 7200);
  info = await manager.getSandboxInfo(third.id);
  seen.managed.push(info.status.state, left(info));
  seen.managed_patch = (await manager.patchSandboxMetadata(third.id, { more: "1" })).metadata.more;
  await manager.killSandbox(third.id);
  seen.killed = [await code(manager.getSandboxInfo(third.id)), await code(manager.killSandbox(third.id))];
  await manager.close();

  seen.refused = [
    await code(create({ image: "registry.example/none:1" })),
    await code(create({ resource: { memory: "lots" } })),
    await code(create({ entrypoint: ["/nope"] })),
    await code(Sandbox.connect({ connectionConfig: new ConnectionConfig({ ...options, apiKey: "wrong" }), sandboxId: first.id })),
  ];
} finally {
  for (const sandbox of made) {
    await sandbox.kill().catch(() => {});
    await sandbox.close();
  }
}
console.log(JSON.stringify(seen));
