// SPDX-License-Identifier: Apache-2.0
// The SDK against the server in MAITENTO_URL. What is the same in all languages is in sdk/conformance; here is what this language has
// of its own: streams, signals, callbacks, many at once.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { ReadableStream, WritableStream } from "node:stream/web";
import { after, before, test } from "node:test";
import { CapsuleCommandAbortedError, Maitento, MaitentoError, type OutputChunk } from "../../src/index.js";
import { deploy, world, type World } from "../support/live.js";

let here: World;
before(async () => {
  here = await world();
});
after(async () => {
  await here[Symbol.asyncDispose]();
});

test("the first steps of the tutorial: a report by a capsule that ends by itself", async () => {
  const { mt } = here;
  assert.equal(await mt.namespaces.find("no-such-namespace"), null);
  assert.equal(await mt.vfs.findByName("sales"), null);
  await mt.vfs.create({ name: "sales" });
  assert.equal((await mt.vfs.findByName("sales"))?.name, "sales");
  const files = mt.vfs.open("sales");
  await files.writeText(
    "/count.py",
    "open('/mnt/data/report.md', 'w').write('%d\\r\\n' % sum(1 for _ in open('/mnt/data/sales.csv')))",
  );
  await files.writeText("/sales.csv", "order,product\r\n1001,Träger\r\n");
  await deploy(mt, {
    "capsules/report.mtr":
      'autoTerminate = true\nvfs = [{ vfs = @ref("sales") mountName = "data" }]\nstartup = [{ command = "python3" arguments = ["/mnt/data/count.py"] }]\n',
  });
  const run = await mt.capsules.run("report");
  assert.deepEqual([run.status, run.endReason, run.failureDetails], ["Finished", "exited", ""]);
  assert.equal(await files.readText("/report.md"), "2\r\n");
});

test("commands: sent while it starts, results with both outputs, in order", async () => {
  const { mt, run } = here;
  const listing = await mt.capsuleRuns.execAndWait(run.id, {
    command: "id -un; echo no >&2; exit 3",
    runAsUser: "sandbox",
  });
  assert.deepEqual(
    [listing.status, listing.exitCode, listing.outputStandard, listing.outputError],
    ["Error", 3, "sandbox\n", "no\n"],
  );
  const odd = ["a b", "$HOME", "$(id)", "x'y", '"', "", "l1\nl2", "*", "\\", ";", "~", "!x", "é", "😀"];
  const printed = await mt.capsuleRuns.execAndWait(run, { command: "printf", arguments: ["[%s]\\n", ...odd] });
  assert.equal(printed.outputStandard, odd.map((word) => `[${word}]\n`).join(""));
  await assert.rejects(mt.capsuleRuns.exec(run, { command: "ls", arguments: "-l" as unknown as string[] }), TypeError);
});

test("signals, time-outs and exit codes are told apart; durations may be given by their parts", async () => {
  const { mt, run } = here;
  const killed = await mt.capsuleRuns.execAndWait(run, { command: "sh", arguments: ["-c", "kill -9 $$"] });
  assert.deepEqual([killed.exitCode, killed.endReason, killed.signal], [137, "signaled", 9]);
  const late = await mt.capsuleRuns.execAndWait(run, { command: "sleep 30", maxDuration: { seconds: 1 } });
  assert.deepEqual([late.exitCode, late.endReason, late.limitMs], [143, "timeout", 1000]);
  const plain = await mt.capsuleRuns.execAndWait(run, { command: "exit 124" });
  assert.deepEqual([plain.exitCode, plain.endReason, plain.limitMs], [124, "exited", undefined]);
});

test("20,000 euro signs come whole: in the record, in the callback, in the iterator, over events", async () => {
  const { mt, run } = here;
  for (let lead = 0; lead <= 3; lead++) {
    const wanted = "x".repeat(lead) + "€".repeat(20_000);
    await using events = await mt.events.open({ run, output: true });
    let live = "";
    const script = `import sys; sys.stdout.write("x" * ${String(lead)} + "€" * 20000)`;
    const onOutput = (chunk: OutputChunk): void => {
      live += chunk.text;
    };
    const done = await mt.capsuleRuns.execAndWait(run, { command: "python3", arguments: ["-c", script], onOutput });
    assert.ok(done.outputStandard === wanted && live === wanted);
    let read = "",
      heard = "";
    for await (const chunk of mt.capsuleRuns.output(run, done, { follow: true })) read += chunk.text;
    for await (const event of events) {
      if (event.event === "output" && event.commandId === done.id) heard += event.text;
      if (event.event === "change" && event.id === done.id && event.change === "ended") break;
    }
    assert.ok(read === wanted, `${String(read.length)} characters read`);
    assert.ok(heard === wanted, `${String(heard.length)} characters heard`);
  }
});

test("output comes while the command prints, from both streams", async () => {
  const { mt, run } = here;
  const go = "/tmp/go-on";
  const seen: string[] = [];
  const done = await mt.capsuleRuns.execAndWait(run, {
    command: `echo one; echo err >&2; until [ -e ${go} ]; do sleep 0.05; done; echo two`,
    async: true,
    onOutput: (chunk) => {
      seen.push(`${chunk.stream} ${chunk.text}`);
      // It ends only because this came before its end.
      if (seen.length === 2) void mt.capsuleRuns.exec(run, { command: `touch ${go}`, async: true });
    },
  });
  assert.equal(done.exitCode, 0);
  assert.deepEqual(seen.slice(0, 2).sort(), ["error err\n", "standard one\n"]);
  assert.equal(seen[2], "standard two\n");
});

test("the run ends first: aborted, with the reason, the command and the run", async () => {
  const { mt } = here;
  for (const stream of [false, true]) {
    await using events = stream ? await mt.events.open() : { [Symbol.asyncDispose]: () => Promise.resolve() };
    assert.ok(events);
    const run = await mt.capsules.start("bench");
    const wait = mt.capsuleRuns.execAndWait(run, { command: "sleep 300" });
    const ready = await mt.capsuleRuns.waitUntilReady(run);
    assert.equal(ready.status, "Running");
    await mt.capsuleRuns.terminate(run);
    await assert.rejects(
      wait,
      (error) =>
        error instanceof CapsuleCommandAbortedError &&
        error.reason.includes("stopped") &&
        error.command?.status === "Aborted" &&
        error.run?.endReason === "terminated",
    );
    await assert.rejects(
      mt.capsuleRuns.execAndWait(run, { command: "true" }),
      (error) =>
        error instanceof CapsuleCommandAbortedError && error.command === null && error.run?.status === "Finished",
    );
  }
  const short = await mt.capsules.start("bench", { maxDuration: "00:00:02" });
  await assert.rejects(
    mt.capsuleRuns.execAndWait(short, { command: "sleep 300", maxDuration: "00:05:00" }),
    /out of time/,
  );
});

test("giving up the wait leaves the command to go on", async () => {
  const { mt, run } = here;
  const controller = new AbortController();
  const wait = mt.capsuleRuns.execAndWait(run, {
    command: "echo begun; sleep 1; echo whole > /tmp/whole",
    idempotencyKey: "given-up",
    onOutput: () => {
      controller.abort();
    },
    signal: controller.signal,
  });
  await assert.rejects(wait, { name: "AbortError" });
  const again = await mt.capsuleRuns.execAndWait(run, {
    command: "echo begun; sleep 1; echo whole > /tmp/whole",
    idempotencyKey: "given-up",
  });
  assert.deepEqual([again.status, again.outputStandard], ["Finished", "begun\n"]);
  assert.equal((await mt.capsuleRuns.waitCommand(run, again, { timeoutMs: 5000 })).exitCode, 0);
});

test("files: every kind of content there and back, with progress", async () => {
  const files = here.mt.vfs.open("work");
  const bytes = new Uint8Array(300_000).map((_, i) => i % 251);
  const hash = createHash("sha256").update(bytes).digest("hex");
  const web = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start: (to) => {
        to.enqueue(bytes);
        to.close();
      },
    });
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 1000) yield await Promise.resolve(bytes.subarray(at, at + 1000));
  }
  for (const [name, content] of [
    ["bytes", bytes],
    ["web", web()],
    ["node", Readable.from([Buffer.from(bytes)])],
    ["pieces", pieces()],
  ] as const) {
    let sent = 0;
    assert.equal(
      (
        await files.write(`/kinds/${name}`, content, {
          onProgress: (now) => {
            sent = now.bytes;
          },
        })
      ).size,
      300_000,
      name,
    );
    if (name !== "bytes") assert.equal(sent, 300_000, name);
    const read = await files.read(`/kinds/${name}`);
    assert.equal(createHash("sha256").update(read).digest("hex"), hash, name);
  }
  const chunks: Uint8Array[] = [];
  const sink = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk) });
  assert.equal(await files.download("/kinds/web", sink), 300_000);
  assert.equal(createHash("sha256").update(Buffer.concat(chunks)).digest("hex"), hash);
  const folder = await mkdtemp(join(tmpdir(), "sdk-"));
  try {
    await writeFile(join(folder, "up"), bytes);
    assert.equal((await files.upload("/kinds/up", join(folder, "up"))).size, 300_000);
    assert.equal(await files.download("/kinds/up", join(folder, "down")), 300_000);
    assert.deepEqual(await readFile(join(folder, "down")), Buffer.from(bytes));
    await assert.rejects(
      files.download("/no", join(folder, "down")),
      (error) => error instanceof MaitentoError && error.code === "notFound",
    );
    assert.equal((await stat(join(folder, "down"))).size, 300_000, "what was there stays");
    await writeFile(join(folder, "empty"), "");
    assert.equal((await files.upload("/kinds/empty", join(folder, "empty"))).size, 0);
  } finally {
    await rm(folder, { recursive: true });
  }
  const broken = Readable.from(
    (function* () {
      yield Buffer.from("half");
      throw new Error("my source");
    })(),
  );
  await assert.rejects(files.write("/kinds/bytes", broken), /my source/);
  assert.equal((await files.stat("/kinds/bytes")).size, 300_000, "the old content stands");
  await assert.rejects(files.writeText("/x", 5 as unknown as string), TypeError);
});

test("files: names of any bytes, by their entries", async () => {
  const { mt, run } = here;
  const files = mt.vfs.open("work");
  await mt.capsuleRuns.execAndWait(run, {
    workingDirectory: "/mnt/work",
    command:
      "mkdir odd; cd odd; printf raw > \"$(printf 'b\\377%%')\"; printf c > 'p%41'; printf d > é; printf e > \"$(printf 'e\\314\\201')\"",
  });
  const found = await files.list("/odd");
  assert.equal(found.length, 4);
  const texts = await Promise.all(found.map((entry) => files.readText(entry)));
  assert.deepEqual(texts.sort(), ["c", "d", "e", "raw"]);
  const odd = found.filter((entry) => entry.nameEscaped);
  assert.deepEqual(
    odd.map((entry) => entry.name),
    ["b%FF%25"],
  );
  for (const entry of odd) await files.delete(entry);
  assert.equal((await files.list("/odd")).length, 3);
  for (const name of [
    "a b",
    "naïve-日本.txt",
    "-rf",
    'q"q',
    "b\\b",
    "h#h",
    "p%41",
    "q?x=1",
    "plus+",
    "n\nl",
    "x".repeat(255),
  ]) {
    await files.writeText(`/odd/${name}`, name);
    const inside = await mt.capsuleRuns.execAndWait(run, { command: "cat", arguments: [`/mnt/work/odd/${name}`] });
    assert.equal(inside.outputStandard, name);
    assert.equal(await files.readText(`/odd/${name}`), name);
  }
});

test("files of a run, as one of its users", async () => {
  const { mt, run } = here;
  const own = mt.capsuleRuns.files(run, "sandbox");
  await own.writeText("notes/a.txt", "é");
  assert.equal(await own.readText("/home/sandbox/notes/a.txt"), "é");
  await own.move("notes/a.txt", "notes/b.txt");
  await own.link("latest", "notes/b.txt");
  assert.equal(await own.readText("latest"), "é");
  assert.deepEqual(
    (await own.list("notes")).map((entry) => entry.name),
    ["b.txt"],
  );
  await assert.rejects(
    own.readText("/mnt/work/x"),
    (error) => error instanceof MaitentoError && error.code === "accessDenied",
  );
  await own.delete("notes", { recursive: true });
});

test("an upload of a gigabyte is not held in memory, nor is its download", { timeout: 240_000 }, async () => {
  await here.mt.vfs.setLimit("work", "3GiB");
  const files = here.mt.vfs.open("work");
  const size = 1 << 30;
  const piece = new Uint8Array(1 << 20);
  let most = 0;
  const look = (): void => {
    most = Math.max(most, process.memoryUsage().rss);
  };
  async function* big(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < size; at += piece.length) {
      look();
      yield await Promise.resolve(piece);
    }
  }
  const before = process.memoryUsage().rss;
  assert.equal((await files.write("/big", big(), { length: size })).size, size);
  let read = 0;
  const slow = new Writable({
    write: (chunk: Buffer, _, done) => {
      read += chunk.length;
      look();
      done();
    },
  });
  assert.equal(await files.download("/big", slow), size);
  assert.equal(read, size);
  await files.delete("/big");
  assert.ok(most - before < 200 << 20, `${String((most - before) >> 20)} MiB more`);
});

test("an upload that has no room is refused with the reason, and the old content stands", async () => {
  const { mt } = here;
  await mt.vfs.create({ name: "small" });
  await mt.vfs.setLimit("small", "8MiB");
  const files = mt.vfs.open("small");
  await files.writeText("/f", "old");
  async function* much(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 64; i++) yield await Promise.resolve(new Uint8Array(1 << 20));
  }
  await assert.rejects(
    files.write("/f", much()),
    (error) => error instanceof MaitentoError && error.code === "diskFull",
    "from a stream",
  );
  await assert.rejects(
    files.write("/f", new Uint8Array(64 << 20)),
    (error) => error instanceof MaitentoError && error.code === "diskFull",
    "of bytes",
  );
  await assert.rejects(
    mt.vfs.open("none").write("/f", much()),
    (error) => error instanceof MaitentoError && error.code === "notFound",
  );
  assert.equal(await files.readText("/f"), "old");
});

test("1,000 commands at once on one event stream", { timeout: 240_000 }, async () => {
  const { mt, run } = here;
  await using events = await mt.events.open({ kind: "command" });
  const began = performance.now();
  const all = await Promise.all(
    Array.from({ length: 1000 }, (_, i) => mt.capsuleRuns.execAndWait(run, { command: `exit ${String(i % 3)}` })),
  );
  assert.equal(new Set(all.map((one) => one.id)).size, 1000);
  all.forEach((one, i) => {
    assert.equal(one.exitCode, i % 3);
  });
  assert.ok(events.after !== undefined);
  console.log(`# 1,000 commands in ${((performance.now() - began) / 1000).toFixed(1)} s`);
});

test("events: changes as they are, and the stream serves who waits", async () => {
  const { mt, run, namespace } = here;
  await using events = await mt.events.open({ namespace });
  await mt.secrets.create({ name: "token", value: "CANARY" });
  const done = await mt.capsuleRuns.execAndWait(run, { command: "exit 3" });
  const seen: string[] = [];
  for await (const event of events) {
    if (event.event !== "change") continue;
    seen.push(`${event.kind} ${event.change}`);
    if (event.id === done.id && event.change === "ended") {
      assert.deepEqual([event.exitCode, event.status, event.runId, event.namespace], [3, "Error", run.id, namespace]);
      break;
    }
  }
  assert.ok(seen.includes("secret created") && seen.includes("command created"), seen.join());
  const kept = await mt.events.list({ namespace, kind: "secret", last: 10 });
  assert.ok(kept.some((event) => event.event === "change" && event.name === "token"));
  assert.doesNotMatch(JSON.stringify(kept), /CANARY/);
});

test("from exit to return, by an event stream", async () => {
  const { mt, run } = here;
  await using events = await mt.events.open();
  assert.ok(events);
  const times: number[] = [];
  for (let i = 0; i < 30; i++) {
    const done = await mt.capsuleRuns.execAndWait(run, { command: "sleep 0.05" });
    const returned = performance.timeOrigin + performance.now();
    times.push(returned - Date.parse(done.dateEnded ?? ""));
  }
  times.sort((a, b) => a - b);
  console.log(
    `# from exit to return: p50 ${String(times[15]?.toFixed(1))} ms, p90 ${String(times[27]?.toFixed(1))} ms`,
  );
  assert.ok((times[15] ?? Infinity) < 1_000);
});

test("deploys: what changed, what was left out, and faults with their places", async () => {
  const { mt } = here;
  await assert.rejects(
    deploy(mt, { "capsules/x.mtr": 'vfs = [{ vfs = @ref("nope") mountName = "n" }]\n' }),
    (error) =>
      error instanceof MaitentoError &&
      error.code === "deployFailed" &&
      error.diagnostics[0]?.file === "capsules/x.mtr" &&
      error.message.includes("nope"),
  );
  assert.equal(await mt.capsules.find("x"), null);
  const plan = await mt.capsules.plan("bench", { labels: { a: "b" } });
  assert.deepEqual([plan.dryRun, plan.mounts[0]?.mountName], [true, "work"]);
});

test("a shell is typed into and read", async () => {
  const { mt, run } = here;
  const shell = await mt.shells.start(run, { user: "sandbox", columns: 120, rows: 40 });
  let screen = "";
  const reading = (async () => {
    for await (const piece of mt.shells.output(run, shell)) screen += Buffer.from(piece).toString("utf8");
  })();
  await mt.shells.type(run, shell, "id -un; exit 3\r");
  await reading;
  assert.match(screen, /sandbox/);
  assert.equal((await mt.shells.get(run, shell)).exitCode, 3);
});

test("apps: inputs, console as it comes, what they return", async () => {
  const { mt } = here;
  await deploy(mt, {
    "apps/greet/greet.mtc":
      'string main(string who) {\n\tPrintLine("hello");\n\tPrintLine(who);\n\tLogInfo("logged");\n\treturn("bye " + who);\n}\n',
    "apps/fails/fails.mtc": 'string main() {\n\tthrow("no luck");\n}\n',
  });
  const lines: string[] = [];
  const run = await mt.apps.run("greet", { inputs: { WHO: "ädä" }, onConsole: (line) => lines.push(line.text) });
  assert.deepEqual(
    [run.status, run.returnValue, run.consoleOutputs.map((line) => line.text)],
    ["Finished", "bye ädä", ["hello\n", "ädä\n"]],
  );
  assert.deepEqual(lines, ["hello\n", "ädä\n"]);
  assert.deepEqual(
    (await mt.appRuns.log(run)).map((line) => line.text),
    ["logged"],
  );
  const again = await mt.appRuns.wait(await mt.appRuns.rerun(run));
  assert.deepEqual([again.rerunOf, again.returnValue], [run.id, "bye ädä"]);
  const failed = await mt.apps.run("fails");
  assert.deepEqual([failed.status, failed.failureDetails], ["Error", "no luck"]);
  await assert.rejects(
    mt.apps.run("none"),
    (error) => error instanceof MaitentoError && error.code === "notFound" && error.message.includes("is from"),
  );
});

test("keys and users: a key of one's own signs in", async () => {
  const { mt } = here;
  const { key, id } = await mt.keys.create({ name: "own", expires: new Date(Date.now() + 3_600_000) });
  await using own = new Maitento({ url: mt.url, apiKey: key });
  assert.equal((await own.whoami()).via, "key");
  await mt.keys.delete(id);
  await assert.rejects(own.whoami(), (error) => error instanceof MaitentoError && error.code === "unauthenticated");
});
