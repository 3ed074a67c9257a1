// SPDX-License-Identifier: Apache-2.0
// O-18: whatever becomes of connections and of the server in mid-wait, the exit code is the command's or the error is clear, and no
// command is run twice.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { Maitento, MaitentoError, type Command } from "../../src/index.js";
import { Relay } from "../support/relay.js";
import { world, type World } from "../support/live.js";

let here: World;
before(async () => {
  here = await world();
  await here.mt.capsuleRuns.waitUntilReady(here.run);
});
after(async () => {
  await here[Symbol.asyncDispose]();
});

async function relayed(doing: (mt: Maitento, relay: Relay) => Promise<void>): Promise<void> {
  await using relay = await Relay.start(here.mt.url);
  await using mt = new Maitento({ url: relay.url, namespace: here.namespace });
  await doing(mt, relay);
}

let mark = 0;

/** Ends with 3 after some seconds, and leaves a line each time it runs. */
function three(seconds: number): { command: string; arguments: string[]; async: true; file: string } {
  const file = `/tmp/ran-${String(++mark)}`;
  return {
    command: "sh",
    arguments: ["-c", `echo ran >> ${file}; echo a; sleep ${String(seconds)}; exit 3`],
    async: true,
    file,
  };
}

async function wasThree(done: Command, file: string): Promise<void> {
  assert.deepEqual([done.status, done.exitCode, done.outputStandard], ["Error", 3, "a\n"]);
  assert.equal((await here.mt.capsuleRuns.getCommand(here.run, done)).exitCode, 3);
  const ran = await here.mt.capsuleRuns.execAndWait(here.run, { command: "cat", arguments: [file] });
  assert.equal(ran.outputStandard, "ran\n", "it ran once");
}

async function started(file: string): Promise<void> {
  await here.mt.capsuleRuns.execAndWait(here.run, {
    command: `until [ -e ${file} ]; do sleep 0.05; done`,
    async: true,
  });
}

interface OwnServer extends AsyncDisposable {
  url: string;
  apiKey: string;
  tell: (line: "kill" | "start") => Promise<void>;
}

async function ownServer(): Promise<OwnServer> {
  const script = new URL("../../../test/support/own-server", import.meta.url).pathname;
  const child = spawn("/usr/bin/python3", [script], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<{ url?: string; key?: string }> => {
    const line = await lines.next();
    if (line.done === true) throw new Error("the server is gone");
    return JSON.parse(line.value) as { url?: string; key?: string };
  };
  const { url = "", key = "" } = await next();
  return {
    url,
    apiKey: key,
    tell: async (line) => {
      child.stdin.write(`${line}\n`);
      await next();
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await new Promise((resolve) => child.once("close", resolve));
    },
  };
}

// Most of their time is waiting: each has its own connections.
describe("connections and servers", { concurrency: true }, () => {
  for (const stream of [false, true]) {
    const by = stream ? "with an event stream" : "without an event stream";

    test(`cut in mid-wait and held off, ${by}`, async () => {
      await relayed(async (mt, relay) => {
        if (stream) await mt.events.open();
        const { file, ...command } = three(2);
        const wait = mt.capsuleRuns.execAndWait(here.run, command);
        await started(file);
        relay.cutFor(4_000);
        await wasThree(await wait, file);
      });
    });

    test(`silent in mid-wait, ${by}`, { timeout: 120_000 }, async () => {
      await relayed(async (mt, relay) => {
        if (stream) await mt.events.open();
        const { file, ...command } = three(1);
        const wait = mt.capsuleRuns.execAndWait(here.run, command);
        await started(file);
        relay.silence();
        await wasThree(await wait, file);
      });
    });
  }

  test("the answer to a command that was sent is lost: it is sent again with its key, and runs once", async () => {
    await relayed(async (mt, relay) => {
      await mt.whoami();
      const { file, ...command } = three(0);
      relay.swallow();
      await wasThree(await mt.capsuleRuns.execAndWait(here.run, command), file);
      relay.swallow();
      const other = three(0);
      const sent = await mt.capsuleRuns.exec(here.run, { command: other.command, arguments: other.arguments });
      await wasThree(await mt.capsuleRuns.waitCommand(here.run, sent), other.file);
    });
  });

  test("a start whose connections are cut comes to its end", async () => {
    await relayed(async (mt, relay) => {
      await mt.whoami();
      const wait = mt.capsules.run("bench", { maxDuration: "00:00:03", labels: { cut: "yes" } });
      relay.swallow();
      setTimeout(() => {
        relay.cut();
      }, 500);
      const run = await wait;
      assert.deepEqual([run.status, run.endReason], ["Finished", "timeout"]);
      const all = await here.mt.capsuleRuns.list({ namespace: here.namespace, capsule: "bench" });
      assert.equal(all.filter((one) => one.labels["cut"] === "yes").length, 1, "it was started once");
    });
  });

  test("output while it comes goes on after a cut, each byte once", async () => {
    await relayed(async (mt, relay) => {
      let text = "";
      const done = await mt.capsuleRuns.execAndWait(here.run, {
        command: "for i in $(seq 1 40); do echo line $i €; sleep 0.05; done; exit 3",
        onOutput: (chunk) => {
          if (text.length < 200 && text.length + chunk.text.length >= 200) relay.cut();
          text += chunk.text;
        },
      });
      assert.equal(done.exitCode, 3);
      assert.equal(text, Array.from({ length: 40 }, (_, i) => `line ${String(i + 1)} €\n`).join(""));
    });
  });

  test("the server is killed and started again in mid-wait", { timeout: 180_000 }, async () => {
    await using server = await ownServer();
    await using own = await world({ url: server.url, apiKey: server.apiKey });
    await using hearing = new Maitento({ url: server.url, apiKey: server.apiKey, namespace: own.namespace });
    await hearing.events.open();
    const command = { command: "sh", arguments: ["-c", "echo ran >> /tmp/ran; sleep 3; exit 3"], async: true };
    const waits = [own.mt.capsuleRuns.execAndWait(own.run, command), hearing.capsuleRuns.execAndWait(own.run, command)];
    await own.mt.capsuleRuns.execAndWait(own.run, {
      command: "until [ $(wc -l < /tmp/ran) = 2 ]; do sleep 0.05; done",
      async: true,
    });
    await server.tell("kill");
    const late = own.mt.capsuleRuns.execAndWait(own.run, { command: "echo", arguments: ["late"] });
    await server.tell("start");
    assert.deepEqual(
      (await Promise.all(waits)).map((one) => one.exitCode),
      [3, 3],
    );
    assert.equal((await late).outputStandard, "late\n");
    const ran = await own.mt.capsuleRuns.execAndWait(own.run, { command: "wc -l < /tmp/ran" });
    assert.equal(ran.outputStandard, "2\n", "each ran once");
  });

  test(
    "no server comes back: the error says that the outcome is not known, after a minute",
    { timeout: 120_000 },
    async () => {
      const relay = await Relay.start(here.mt.url);
      await using mt = new Maitento({ url: relay.url });
      const { file, ...command } = three(1);
      const wait = mt.capsuleRuns.execAndWait(here.run, command);
      await started(file);
      await relay[Symbol.asyncDispose]();
      const began = performance.now();
      await assert.rejects(
        wait,
        (error) =>
          error instanceof MaitentoError &&
          error.code === "outcomeUnknown" &&
          /outcome unknown.*no server for 60 s.*connection refused/.test(error.message),
      );
      assert.ok(performance.now() - began < 75_000);
      await here.mt.capsuleRuns.execAndWait(here.run, { command: "cat", arguments: [file] });
    },
  );
});
