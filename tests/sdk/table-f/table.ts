// SPDX-License-Identifier: Apache-2.0
// The calls of the three SDKs that are promised by name, one after the other: table.ts, table.py and table.cs print the same.
import { CapsuleCommandAbortedError, Maitento, MaitentoError } from "@maitento/sdk";

const ns = process.argv[2];
const mt = new Maitento();
const repr = (text: string) => `'${text.replaceAll("\n", "\\n")}'`;
const list = (texts: string[]) => `[${texts.map(repr).join(", ")}]`;
const yes = (value: unknown) => (value ? "True" : "False");

console.log("default namespace", yes(mt.defaultNamespace === ns));
console.log("found", yes(await mt.namespaces.find(ns)));
if (!(await mt.namespaces.find(ns))) await mt.namespaces.create({ name: ns });
console.log("found", yes((await mt.namespaces.find(ns))?.name === ns));
if (!(await mt.vfs.findByName("sales"))) await mt.vfs.create({ name: "sales" });
console.log("file system", (await mt.vfs.findByName("sales"))?.name);
const files = mt.vfs.open("sales");
await files.writeText("/sales.csv", "order,product\n1001,Desk lamp\n");
console.log("text", (await files.readText("/sales.csv")).length);
await mt.secrets.create({ name: "token", value: "s3cret" });
console.log("deployed", (await mt.deploy("maitento")).created.length);

const run = await mt.capsules.run("report");
console.log("report", run.status, (await files.readText("/report.md")).trim());

const capsule = await mt.capsules.start("bench");
const listing = await mt.capsuleRuns.execAndWait(capsule.id, { command: "echo", arguments: ["a  b", "$HOME"], runAsUser: "sandbox" });
console.log("command", listing.exitCode, repr(listing.outputStandard), repr(listing.outputError), listing.status);
const failed = await mt.capsuleRuns.execAndWait(capsule.id, { command: "cat /nowhere; exit 3" });
console.log("command", failed.exitCode, repr(failed.outputStandard), repr(failed.outputError), failed.status);
const slow = await mt.capsuleRuns.exec(capsule.id, { command: "until [ -e /tmp/go ]; do sleep 0.05; done; echo slow", async: true });
const touched = await mt.capsuleRuns.execAndWait(capsule.id, { command: "touch", arguments: ["/tmp/go"] });
console.log("sent", yes(slow.exitCode === null), touched.exitCode);
let followed = "";
for await (const chunk of mt.capsuleRuns.output(capsule.id, slow.id, { follow: true })) followed += chunk.text;
console.log("followed", followed.trim());
console.log("read later", (await mt.capsuleRuns.getCommand(capsule.id, slow.id)).outputStandard.trim());

const started = await mt.capsules.start("bench", {
  version: 1,
  environment: { WORD: "x y" },
  maxDuration: "00:06:00",
  startup: [{ command: "cp", arguments: ["/mnt/secrets/word", "/mnt/more/copied"] }],
  vfs: [{ vfs: "sales", mountName: "more" }],
  secrets: [{ secret: "token", mountName: "word" }],
  labels: { ticket: "4711" },
});
console.log("options", started.version, started.maxDuration, started.labels["ticket"]);
const copied = await mt.capsuleRuns.execAndWait(started.id, { command: 'cat /mnt/more/copied; echo " $WORD"' });
console.log("options", copied.outputStandard.trim());
console.log("extended", (await mt.capsuleRuns.extend(started.id, "00:20:00")).maxDuration);
const inside = mt.capsuleRuns.files(started.id);
await inside.writeText("/tmp/note", "Träger\n");
await inside.write("/tmp/raw", new Uint8Array([0, 255]));
const names = (await inside.list("/tmp")).map((file) => file.name);
console.log("files", (await inside.readText("/tmp/note")).trim(), (await inside.read("/tmp/raw")).length, list(names));

// What `await using` does, which Node takes from version 24 on.
const events = await mt.events.open();
try {
  console.log("events", (await mt.capsuleRuns.execAndWait(started.id, { command: "exit 4" })).exitCode);
  for await (const event of events) {
    if (event.event === "change" && event.kind === "command" && event.change === "ended") {
      console.log("event", event.exitCode);
      break;
    }
  }
} finally {
  await events[Symbol.asyncDispose]();
}

const app = await mt.apps.run("greet", { inputs: { name: "Ada" } });
console.log("app", list(app.consoleOutputs.map((output) => output.text)), app.returnValue);

await mt.capsuleRuns.terminate(started.id);
await mt.capsuleRuns.terminate(capsule.id);
try {
  await mt.capsuleRuns.execAndWait(started.id, { command: "true" });
} catch (error) {
  if (!(error instanceof CapsuleCommandAbortedError)) throw error;
  const gone = !error.command || error.command.status === "Aborted"; // it may have been sent a moment before the end
  console.log("aborted", yes(error.reason), yes(gone), yes(error.run?.failureDetails.startsWith("stopped by")));
}
try {
  await mt.capsules.start("nothing");
} catch (error) {
  if (!(error instanceof MaitentoError)) throw error;
  console.log("error", error.code, error.status);
}
