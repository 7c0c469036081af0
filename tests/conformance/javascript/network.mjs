// Drives network policies with the published JavaScript client and prints what it saw as one JSON object.
// Usage: node network.mjs HOST:PORT KEY direct|proxied
import { ConnectionConfig, Sandbox } from "@alibaba-group/opensandbox";

const [domain, apiKey, way] = process.argv.slice(2);
const connectionConfig = new ConnectionConfig({ domain, apiKey, useServerProxy: way === "proxied", protocol: "http", requestTimeoutSeconds: 20 });
const made = [];
const create = async (networkPolicy) => {
  const more = networkPolicy === undefined ? {} : { networkPolicy };
  made.push(await Sandbox.create({ connectionConfig, image: "host", entrypoint: ["tail", "-f", "/dev/null"], timeoutSeconds: 300, ...more }));
  return made.at(-1);
};
const shape = (policy) => [policy.defaultAction, policy.egress.map((rule) => `${rule.action} ${rule.target}`)];
const refusal = (promise) => promise.then(() => "done", (error) => error.error?.message ?? String(error));
const seen = {};

try {
  const sandbox = await create({ defaultAction: "deny", egress: [{ action: "allow", target: "example.com" }, { action: "deny", target: "*.example.com" }] });
  seen.given = shape(await sandbox.getEgressPolicy());
  await sandbox.patchEgressRules([{ action: "deny", target: "blocked.example" }, { action: "allow", target: "EXAMPLE.com" }]);
  seen.patched = shape(await sandbox.getEgressPolicy());
  await sandbox.deleteEgressRules(["example.com", "unknown.example"]);
  seen.deleted = shape(await sandbox.getEgressPolicy());
  const denied = await sandbox.commands.run("python3 -c 'import socket; socket.getaddrinfo(\"denied.example\", 80)'");
  seen.denied = denied.exitCode;
  seen.wrong_patch = await refusal(sandbox.patchEgressRules([{ action: "allow", target: "example.com:443" }]));
  seen.wrong_create = await refusal(create({ egress: [{ action: "allow", target: "http://example.com/" }] }));
  seen.empty = shape(await (await create({})).getEgressPolicy());
  seen.none = shape(await (await create()).getEgressPolicy());
} finally {
  for (const sandbox of made) {
    await sandbox.kill();
    await sandbox.close();
  }
}
console.log(JSON.stringify(seen));
