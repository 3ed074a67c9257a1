// SPDX-License-Identifier: Apache-2.0
// Waiting for ends: by long-polls, by an event stream, through cuts; output while it comes. Against a server that does what a test says.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { CapsuleCommandAbortedError, MaitentoError, type MaitentoEvent, type OutputChunk } from "../../src/index.js";
import {
  command,
  ended,
  frame,
  hello,
  json,
  later,
  problem,
  Scripted,
  until,
  type Asked,
} from "../support/scripted.js";

/** Commands that end when a test says, and event streams that it feeds. */
class Fake {
  readonly streams: { answer: ServerResponse; asked: Asked }[] = [];
  readonly status = new Map<string, string>();
  readonly waits: { id: string; answer: ServerResponse }[] = [];
  /** Number of GETs of each command's record. */
  readonly gets = new Map<string, number>();
  readonly keys = new Map<string, string>();
  number = 100;
  sent = 0;
  refuse: ((asked: Asked, answer: ServerResponse) => boolean) | undefined;

  readonly handle = (asked: Asked, answer: ServerResponse): unknown => {
    if (this.refuse?.(asked, answer) === true) return true;
    if (asked.path === "/v1/events") return this.#open(asked, answer);
    const id = /\/commands\/([^/]+)$/.exec(asked.path)?.[1];
    if (asked.method === "POST" && asked.path.endsWith("/commands")) this.#send(asked, answer);
    else if (id !== undefined) this.#get(id, asked, answer);
    else if (/^\/v1\/capsule-runs\/[^/]+$/.test(asked.path))
      json(answer, 200, { id: "r1", status: "Finished", endReason: "terminated" });
    else return undefined;
    return true;
  };

  #open(asked: Asked, answer: ServerResponse): boolean {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    const last = asked.headers["last-event-id"];
    answer.write(hello(last === undefined ? this.number : Number(last)));
    this.streams.push({ answer, asked });
    return true;
  }

  #send(asked: Asked, answer: ServerResponse): void {
    const key = String(asked.headers["idempotency-key"]);
    const id = this.keys.get(key) ?? `c${String(++this.sent)}`;
    this.keys.set(key, id);
    if (!this.status.has(id)) this.status.set(id, "Running");
    if (asked.query.has("wait") && this.status.get(id) === "Running") this.waits.push({ id, answer });
    else json(answer, 201, this.record(id));
  }

  #get(id: string, asked: Asked, answer: ServerResponse): void {
    this.gets.set(id, (this.gets.get(id) ?? 0) + 1);
    if (asked.query.has("wait") && this.status.get(id) === "Running") this.waits.push({ id, answer });
    else json(answer, 200, this.record(id));
  }

  record(id: string): object {
    const status = this.status.get(id) ?? "Running";
    return command(id, status, status === "Aborted" ? { failureDetails: "the run was stopped by ada" } : {});
  }

  /** The command ends; streams tell, unless silent. */
  end(id: string, status = "Error", silent = false): void {
    this.status.set(id, status);
    for (const wait of this.waits.filter((one) => one.id === id && !one.answer.headersSent))
      json(wait.answer, 200, this.record(id));
    if (!silent) this.tell(ended(++this.number, "command", id, "r1"));
  }

  tell(text: string): void {
    for (const { answer } of this.streams) if (!answer.destroyed) answer.write(text);
  }

  get stream(): ServerResponse {
    const last = this.streams.at(-1);
    if (!last) throw new Error("no stream");
    return last.answer;
  }
}

const LS = { command: "ls" } as const;

test("without a stream the request itself waits, and its answer is the end", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.waits.length === 1, "the request");
  fake.end("c1");
  assert.equal((await wait).exitCode, 3);
  assert.deepEqual([fake.sent, fake.gets.size], [1, 0]);
});

test("with a stream the end is heard, and then read: one request each", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.status.has("c1"), "the command");
  fake.end("c1");
  assert.equal((await wait).exitCode, 3);
  assert.deepEqual([fake.waits.length, fake.gets.get("c1")], [0, 1]);
  const [seen] = await take(events, 1);
  assert.deepEqual([seen?.event, events.after], ["change", 101]);
});

test("an end that is told before the sending is answered is not missed", async () => {
  const fake = new Fake();
  await using server = await Scripted.start((asked, answer) => {
    if (asked.method !== "POST") return fake.handle(asked, answer);
    fake.status.set("c1", "Error");
    fake.tell(ended(++fake.number, "command", "c1", "r1"));
    setTimeout(() => {
      json(answer, 201, command("c1", "Running"));
    }, 50);
    return true;
  });
  await using mt = server.client();
  await using events = await mt.events.open();
  assert.equal((await mt.capsuleRuns.execAndWait("r1", LS)).exitCode, 3);
  assert.equal(events.after, 101);
});

async function take(events: AsyncIterable<MaitentoEvent>, count: number): Promise<MaitentoEvent[]> {
  const found: MaitentoEvent[] = [];
  for await (const event of events) if (found.push(event) === count) break;
  return found;
}

test("a stream that is cut comes back after the last number, and each waiter asks", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  fake.tell(ended(101, "command", "other", "r9"));
  assert.equal((await take(events, 1)).length, 1);
  const waits = [mt.capsuleRuns.execAndWait("r1", LS), mt.capsuleRuns.execAndWait("r1", LS)];
  await until(() => fake.sent === 2, "the commands");
  fake.end("c1", "Error", true); // nobody tells
  fake.end("c2", "Finished", true);
  fake.stream.destroy();
  assert.deepEqual((await Promise.all(waits)).map((one) => one.exitCode).sort(), [0, 3]);
  await until(() => fake.streams.length === 2, "the next stream");
  assert.equal(fake.streams[1]?.asked.headers["last-event-id"], "101");
  assert.equal(fake.sent, 2);
});

test("events that the server keeps no longer are a gap, and the stream goes on", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  fake.refuse = (asked, answer) => {
    if (asked.headers["last-event-id"] === undefined) return false;
    problem(answer, 410, "gone");
    return true;
  };
  fake.stream.destroy();
  await until(() => fake.streams.length === 2, "the next stream");
  fake.tell(ended(200, "command", "c9", "r1"));
  assert.deepEqual(
    (await take(events, 2)).map((one) => one.event),
    ["gap", "change"],
  );
  fake.refuse = undefined;
});

test("the server says why it ends a stream: come back, or not", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  fake.stream.end(frame("end", { code: "tooSlow", after: 150, sentence: "too slow" }));
  await until(() => fake.streams.length === 2, "the next stream");
  assert.equal(fake.streams[1]?.asked.headers["last-event-id"], "150");
  fake.stream.end(frame("end", { code: "accessLost", after: 151, sentence: "the key is gone" }));
  await assert.rejects(
    take(events, 1),
    (error) => error instanceof MaitentoError && error.message.includes("the key is gone"),
  );
  await using own = await mt.events.open({ run: "r1" });
  fake.stream.end(frame("end", { code: "runEnded", after: 152, sentence: "the run has ended" }));
  assert.deepEqual(await take(own, 1), []);
});

test("a stream ends with its signal, and when it is closed; who waits goes on without it", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const controller = new AbortController();
  const events = await mt.events.open({ signal: controller.signal });
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.status.has("c1"), "the command");
  const reading = take(events, 1);
  controller.abort(new Error("mine"));
  await assert.rejects(reading, /mine/);
  await until(() => fake.waits.length === 1, "a request that waits in its place");
  fake.end("c1");
  assert.equal((await wait).exitCode, 3);
  const other = await mt.events.open();
  const rest = take(other, 1);
  await other.close();
  assert.deepEqual(await rest, []);
  await assert.rejects(mt.events.open({ signal: controller.signal }), /mine/);
});

test("filters go to the server, and a filtered stream is asked only for what it hears of", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open({ kind: ["vfs", "secret"], namespace: "n", last: 5 });
  assert.equal(fake.streams[0]?.asked.query.toString(), "last=5&namespace=n&kind=vfs%2Csecret");
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.waits.length === 1, "a request that waits");
  fake.end("c1", "Error", true);
  assert.equal((await wait).exitCode, 3);
  await events.close();
  await using own = await mt.events.open({ run: { id: "r1" }, output: true });
  const heard = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.status.has("c2"), "the command");
  fake.end("c2");
  assert.equal((await heard).exitCode, 3);
  assert.equal(fake.waits.length, 1, "no request waited");
  assert.equal(own.after, 101);
});

test("events wait for their reader, whole, and the oldest give way to a gap", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  const text = "é€😀".repeat(50);
  for (const byte of Buffer.from(
    frame("output", { runId: "r1", commandId: "c1", stream: "standard", offset: 0, bytes: 9, text }),
  ))
    fake.stream.write(Buffer.from([byte]));
  const [first] = await take(events, 1);
  assert.ok(first?.event === "output" && first.text === text);
  for (let i = 0; i < 10_500; i++) fake.tell(ended(++fake.number, "command", `x${String(i)}`, "r1"));
  await until(() => events.after === fake.number, "all events");
  const [gap, next] = await take(events, 2);
  assert.equal(gap?.event, "gap");
  assert.ok(next?.event === "change" && next.number > 101);
});

test("1,000 commands at once by one stream: few connections, each sent once, each its own record", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  const waits = Array.from({ length: 1000 }, () => mt.capsuleRuns.execAndWait("r1", LS));
  await until(() => fake.sent === 1000, "the commands");
  for (let i = 1; i <= 1000; i++) fake.end(`c${String(i)}`, i % 2 === 0 ? "Finished" : "Error");
  const done = await Promise.all(waits);
  assert.equal(new Set(done.map((one) => one.id)).size, 1000);
  assert.equal(done.filter((one) => one.exitCode === 0).length, 500);
  assert.ok(server.most <= 20, `${String(server.most)} connections`);
  assert.equal(events.after, 1100);
});

test("1,000 commands at once without a stream: few connections, and all come back", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const waits = Array.from({ length: 1000 }, () => mt.capsuleRuns.execAndWait("r1", LS));
  await until(() => fake.sent === 1000, "the commands");
  for (let i = 1; i <= 1000; i++) fake.end(`c${String(i)}`);
  assert.equal(new Set((await Promise.all(waits)).map((one) => one.id)).size, 1000);
  assert.ok(server.most <= 80, `${String(server.most)} connections`);
});

test("what cuts long-polls is met by asking each second, and the command is sent once", async () => {
  const fake = new Fake();
  await using server = await Scripted.start((asked, answer) => {
    if (asked.query.has("wait")) {
      fake.handle({ ...asked, query: new URLSearchParams() }, answer);
      answer.destroy();
      return true;
    }
    return fake.handle(asked, answer);
  });
  await using mt = server.client();
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => (fake.gets.get("c1") ?? 0) >= 2, "questions");
  fake.end("c1", "Error", true);
  assert.equal((await wait).exitCode, 3);
  assert.equal(fake.sent, 1);
});

test("a run that ends first is the error that says so: while it waits, and when it is sent", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const wait = mt.capsuleRuns.execAndWait("r1", LS);
  await until(() => fake.waits.length === 1, "the request");
  fake.end("c1", "Aborted");
  await assert.rejects(
    wait,
    (error) =>
      error instanceof CapsuleCommandAbortedError &&
      error instanceof MaitentoError &&
      error.code === "runEnded" &&
      error.reason === "the run was stopped by ada" &&
      error.command?.id === "c1" &&
      error.run?.endReason === "terminated" &&
      error.message.includes("stopped by ada"),
  );
  fake.refuse = (asked, answer) => asked.method === "POST" && (problem(answer, 409, "runEnded"), true);
  await assert.rejects(
    mt.capsuleRuns.execAndWait("r1", LS),
    (error) =>
      error instanceof CapsuleCommandAbortedError &&
      error.command === null &&
      error.run?.status === "Finished" &&
      error.reason === "detail of runEnded" &&
      error.problem?.code === "runEnded",
  );
  await assert.rejects(mt.capsuleRuns.waitCommand("r1", "c1"), CapsuleCommandAbortedError);
});

test("giving up leaves the command alone; a timeout gives the record as it is", async () => {
  const fake = new Fake();
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await using events = await mt.events.open();
  const controller = new AbortController();
  const wait = mt.capsuleRuns.execAndWait("r1", { ...LS, signal: controller.signal });
  await until(() => fake.status.has("c1"), "the command");
  controller.abort();
  await assert.rejects(wait, { name: "AbortError" });
  assert.ok(server.asked.every((one) => !one.path.endsWith("/cancel")));
  assert.equal((await mt.capsuleRuns.waitCommand("r1", "c1", { timeoutMs: 30 })).status, "Running");
  await events.close();
  fake.refuse = (asked, answer) => asked.query.has("wait") && (json(answer, 200, fake.record("c1")), true);
  assert.equal((await mt.capsuleRuns.waitCommand("r1", "c1", { timeoutMs: 30 })).status, "Running");
});

/** A command's outputs, as bytes that come when a test says. */
function outputs(
  fake: Fake,
  bytes: Record<string, Buffer>,
  cutAt: number,
): (asked: Asked, answer: ServerResponse) => boolean {
  const cut = new Set<string>();
  return (asked, answer) => {
    if (!asked.path.endsWith("/output")) return false;
    const stream = asked.query.get("stream") ?? "";
    const from = Number(asked.query.get("from"));
    const all = bytes[stream] ?? Buffer.alloc(0);
    answer.writeHead(200, { "x-maitento-offset": String(from) });
    if (all.length > cutAt && !cut.has(stream)) {
      cut.add(stream);
      answer.write(all.subarray(from, cutAt), () => answer.destroy());
    } else {
      answer.end(all.subarray(from));
      if (asked.query.get("follow") === "true") fake.end("c1", "Error");
    }
    return true;
  };
}

test("live output: both streams, whole characters, each byte once though the connection is cut within one", async () => {
  const fake = new Fake();
  const standard = Buffer.from("x" + "€".repeat(20_000));
  fake.refuse = outputs(fake, { standard, error: Buffer.from([0x6e, 0x6f, 0xff]) }, 30_000);
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const chunks: OutputChunk[] = [];
  const done = await mt.capsuleRuns.execAndWait("r1", { ...LS, onOutput: (chunk) => chunks.push(chunk) });
  assert.equal(done.exitCode, 3);
  const text = (stream: string): string =>
    chunks
      .filter((one) => one.stream === stream)
      .map((one) => one.text)
      .join("");
  assert.equal(text("standard"), "x" + "€".repeat(20_000));
  assert.equal(text("error"), "no\ufffd");
  let at = 0;
  for (const chunk of chunks.filter((one) => one.stream === "standard")) {
    assert.equal(chunk.offset, at);
    at += chunk.bytes.byteLength;
  }
  assert.equal(at, standard.length);
});

test("what a callback throws ends the wait and not the command", async () => {
  const fake = new Fake();
  fake.refuse = outputs(fake, { standard: Buffer.from("a") }, 10);
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  await assert.rejects(
    mt.capsuleRuns.execAndWait("r1", {
      ...LS,
      onOutput: () => {
        throw new Error("mine");
      },
    }),
    /mine/,
  );
  assert.ok(server.asked.every((one) => !one.path.endsWith("/cancel")));
});

test("output of a command whose connection is dead without a word comes all the same when it has ended", async () => {
  const fake = new Fake();
  const silent = later();
  fake.refuse = (asked, answer) => {
    if (!asked.path.endsWith("/output")) return false;
    const from = Number(asked.query.get("from"));
    answer.writeHead(200, { "x-maitento-offset": String(from) });
    if (asked.query.get("follow") === "true") {
      answer.write("ab");
      silent.resolve();
    } else answer.end("abc".slice(from));
    return true;
  };
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  let text = "";
  const wait = mt.capsuleRuns.execAndWait("r1", {
    ...LS,
    onOutput: (chunk) => {
      if (chunk.stream === "standard") text += chunk.text;
    },
  });
  await silent.promise;
  fake.end("c1");
  assert.equal((await wait).exitCode, 3);
  assert.equal(text, "abc");
});

test("output: one stream or both, from an offset, and older bytes that are gone", async () => {
  const fake = new Fake();
  fake.refuse = (asked, answer) => {
    if (!asked.path.endsWith("/output")) return false;
    answer.writeHead(200, { "x-maitento-offset": String(Math.max(100, Number(asked.query.get("from")))) });
    answer.end(asked.query.get("stream") === "error" ? "no" : "yes");
    return true;
  };
  await using server = await Scripted.start(fake.handle);
  await using mt = server.client();
  const all = async (options: object): Promise<string[]> => {
    const found: string[] = [];
    for await (const chunk of mt.capsuleRuns.output("r1", "c1", options))
      found.push(`${chunk.stream} ${String(chunk.offset)} ${chunk.text}`);
    return found.sort();
  };
  assert.deepEqual(await all({}), ["standard 100 yes"]);
  assert.deepEqual(await all({ stream: "error", from: 200 }), ["error 200 no"]);
  assert.deepEqual(await all({ stream: "both" }), ["error 100 no", "standard 100 yes"]);
});

test("files: reads go on where they were, and not in another file", async () => {
  const content = Buffer.from("0123456789");
  let tag = '"a"';
  let cuts = 2;
  await using server = await Scripted.start((asked, answer) => {
    const from = Number(/bytes=(\d+)-/.exec(asked.headers.range ?? "")?.[1] ?? 0);
    answer.writeHead(from > 0 ? 206 : 200, { etag: tag, "content-length": String(content.length - from) });
    if (cuts-- > 0) answer.write(content.subarray(from, from + 3), () => answer.destroy());
    else answer.end(content.subarray(from));
    return true;
  });
  await using mt = server.client();
  const files = mt.vfs.open("v");
  const progress: number[] = [];
  assert.equal(await files.readText("/f", { onProgress: (now) => progress.push(now.bytes) }), "0123456789");
  assert.equal(progress.at(-1), 10);
  assert.deepEqual(
    server.asked.map((one) => one.headers.range),
    [undefined, "bytes=3-", "bytes=6-"],
  );
  cuts = 1;
  const read = files.read("/f", {
    onProgress: () => {
      tag = '"b"';
    },
  });
  await assert.rejects(
    read,
    (error) => error instanceof MaitentoError && error.code === "conflict" && error.message.includes("changed while"),
  );
});
