// SPDX-License-Identifier: Apache-2.0
// The client against a server that does what a test says: first contact, errors, repeating, giving up.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import * as http from "node:http";
import * as net from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Maitento, MaitentoError } from "../../src/index.js";
import { json, later, problem, Scripted, until } from "../support/scripted.js";

async function failure(promise: Promise<unknown>): Promise<MaitentoError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof MaitentoError, String(error));
    return error;
  }
  throw new Error("it did not fail");
}

async function strangers(answer: http.RequestListener, doing: (url: string) => Promise<void>): Promise<void> {
  const server = http.createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await doing(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("the server is asked once who it is, without the key, before all else", async () => {
  const seen: [string, string | undefined][] = [];
  await strangers(
    (request, answer) => {
      seen.push([request.url ?? "", request.headers.authorization]);
      json(
        answer,
        200,
        request.url === "/v1/server"
          ? { product: "maitento", version: "9", apiVersion: 1, more: 1 }
          : { items: [], next: null },
      );
    },
    async (url) => {
      await using mt = new Maitento({ url, apiKey: "mt_k" });
      assert.equal(seen.length, 0, "nothing is asked by making a client");
      await Promise.all([mt.images.list(), mt.images.list(), mt.images.list()]);
      assert.deepEqual(
        seen.map(([path]) => path),
        ["/v1/server", ...Array<string>(3).fill("/v1/images?limit=1000")],
      );
      assert.deepEqual(
        seen.map(([, key]) => key),
        [undefined, ...Array<string>(3).fill("Bearer mt_k")],
      );
    },
  );
});

test("what is no Maitento server is refused", async () => {
  const others: [http.RequestListener, RegExp][] = [
    [(_, answer) => answer.end("<html>"), /status 200 and no content type/],
    [
      (_, answer) => {
        json(answer, 200, { product: "other" });
      },
      /status 200 and other JSON/,
    ],
    [
      (_, answer) => {
        problem(answer, 404, "notFound");
      },
      /status 404/,
    ],
    [
      (_, answer) => answer.writeHead(301, { location: "http://x", "content-type": "text/html" }).end(),
      /status 301 and text\/html/,
    ],
    [
      (_, answer) => {
        json(answer, 200, { product: "maitento", version: "1", apiVersion: 2 });
      },
      /version 2 of the API/,
    ],
    [(request) => request.socket.end("220 smtp ready\r\n"), /does not speak HTTP/],
    [
      (_, answer) => {
        answer.writeHead(200);
        answer.write(Buffer.alloc(1 << 20));
      },
      /more than 65536 bytes/,
    ],
  ];
  for (const [other, words] of others) {
    await strangers(other, async (url) => {
      await using mt = new Maitento({ url, apiKey: "mt_k" });
      const error = await failure(mt.whoami());
      assert.equal(error.code, "notMaitento");
      assert.match(
        error.message,
        new RegExp(`what answers at ${url} \\(from the client's own .url.\\) is not a Maitento server: `),
      );
      assert.match(error.message, words);
    });
  }
});

test("no server: the sentence has the address, where it is from, and what to do", async () => {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const began = performance.now();
  for (const [url, words] of [
    [`http://127.0.0.1:${String(port)}`, /connection refused/],
    ["unix:/nowhere/x.sock", /no such socket/],
  ] as const) {
    await using mt = new Maitento({ url });
    const error = await failure(mt.whoami());
    assert.deepEqual([error.code, error.status], ["unreachable", undefined]);
    assert.match(error.message, words);
    assert.ok(
      error.message.includes(url) && error.message.includes("client's own") && error.message.includes("mt doctor"),
      error.message,
    );
  }
  assert.ok(performance.now() - began < 5_000, "an address without a server is told at once");
});

test("a server that comes later is found by the same client", async () => {
  await using first = await Scripted.start((_, answer) => {
    json(answer, 200, { name: "ada" });
    return true;
  });
  const { port } = first;
  await first.down();
  await using mt = new Maitento({ url: `http://127.0.0.1:${String(port)}` });
  assert.equal((await failure(mt.whoami())).code, "unreachable");
  await using again = await Scripted.start((_, answer) => {
    json(answer, 200, { name: "ada" });
    return true;
  }, port);
  assert.equal((await mt.whoami()).name, "ada");
  assert.ok(again.asked.length > 0);
});

test("errors have what the server told", async () => {
  await using server = await Scripted.start((asked, answer) => {
    if (asked.path.endsWith("/deploy")) {
      const diagnostics = [
        { file: "capsules/a.mtr", line: 3, column: 1, message: "no file system 'x'", hint: "did you mean 'y'?" },
      ];
      json(answer, 422, {
        code: "deployFailed",
        detail: "1 fault",
        help: "h",
        status: 422,
        title: "",
        type: "",
        diagnostics,
      });
    } else if (asked.path === "/v1/keys") answer.writeHead(500).end("<html>oops");
    else problem(answer, 429, "capacityExceeded", { "retry-after": "7" });
    return true;
  });
  await using mt = server.client();
  const full = await failure(mt.capsules.start("x"));
  assert.deepEqual(
    [full.code, full.status, full.retryAfter, full.help, full.field, full.message],
    ["capacityExceeded", 429, 7, "help", "name", "detail of capacityExceeded"],
  );
  assert.equal(full.problem?.code, "capacityExceeded");
  const broken = await failure(mt.keys.list());
  assert.deepEqual([broken.code, broken.status], ["internal", 500]);
  const fixtures = new URL("../../../test/fixtures/project", import.meta.url).pathname;
  const deploy = await failure(mt.deploy(fixtures));
  assert.match(deploy.message, /1 fault\n {2}capsules\/a.mtr:3:1: no file system 'x' \(did you mean 'y'\?\)/);
  assert.equal(deploy.diagnostics[0]?.line, 3);
});

test("not found says where the namespace came from, unless the call named it", async () => {
  await using server = await Scripted.start((asked, answer) => {
    if (asked.path === "/v1/whoami") {
      json(answer, 200, { defaultNamespace: "mine" });
      return true;
    }
    return undefined;
  });
  await using mt = server.client();
  assert.match((await failure(mt.vfs.get("x"))).message, /\(namespace 'ns' is from the client's own `namespace`\)/);
  assert.doesNotMatch((await failure(mt.vfs.get("x", { namespace: "other" }))).message, /is from/);
  await using other = new Maitento({ url: server.url });
  assert.equal(other.defaultNamespace, null);
  assert.match((await failure(other.vfs.open("v").readText("/f"))).message, /detail of notFound/);
  assert.match((await failure(other.vfs.get("x"))).message, /'mine' is from your default on the server/);
  assert.equal(server.asked.filter((one) => one.path === "/v1/whoami").length, 1, "asked once");
});

test("GET, PUT, DELETE and what has a key are repeated while the server is away, with the same key", async () => {
  for (const cut of ["reset", 502, 503, 504] as const) {
    const keys: unknown[] = [];
    let left = 2;
    await using server = await Scripted.start((asked, answer, request) => {
      keys.push(asked.headers["idempotency-key"]);
      if (left-- > 0) {
        if (cut === "reset") request.socket.destroy();
        else answer.writeHead(cut, cut === 503 ? { "retry-after": "0" } : {}).end("away");
      } else json(answer, 200, { id: "r1", status: "Starting" });
      return true;
    });
    await using mt = server.client();
    for (const call of [
      () => mt.whoami(),
      () => mt.secrets.set("a", "b"),
      () => mt.keys.delete("k"),
      () => mt.capsules.start("c"),
      () => mt.capsuleRuns.terminate("r1"),
      () => mt.vfs.open("v").writeText("/f", "x"),
    ]) {
      keys.length = 0;
      left = 2;
      await call();
      assert.equal(keys.length, 3, String(call));
      assert.equal(new Set(keys).size, 1);
    }
  }
});

test("other POSTs are sent once: what became of them is not known", async () => {
  await using server = await Scripted.start((_, __, request) => request.socket.destroy());
  await using mt = server.client();
  const error = await failure(mt.namespaces.create({ name: "x" }));
  assert.equal(error.code, "outcomeUnknown");
  assert.match(error.message, /outcome unknown/);
  assert.equal(server.asked.length, 1);
});

test("a connection that died while it was idle is replaced at once", async () => {
  await using server = await Scripted.start((_, answer) => {
    json(answer, 200, { name: "ada" });
    return true;
  });
  await using mt = server.client();
  await mt.whoami();
  server.cut();
  const began = performance.now();
  await mt.whoami();
  await mt.namespaces.create({ name: "x" });
  assert.ok(performance.now() - began < 1_000);
});

test("a call is given up with the signal's own reason, at every stage", async () => {
  const reason = new Error("mine");
  const asked = later();
  await using server = await Scripted.start((one, answer) => {
    if (one.path.endsWith("/files")) {
      answer.writeHead(200, { "content-length": "10", etag: "a" });
      answer.write("12345");
    }
    asked.resolve();
    return true; // and never more
  });
  await using mt = server.client();
  await assert.rejects(mt.whoami({ signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const call = mt.whoami({ signal: controller.signal });
  await asked.promise;
  controller.abort(reason);
  await assert.rejects(call, reason);
  const body = new AbortController();
  const read = mt.vfs.open("v").read("/f", {
    signal: body.signal,
    onProgress: () => {
      body.abort(reason);
    },
  });
  await assert.rejects(read, reason);
  const waiting = new AbortController();
  const wait = mt.capsuleRuns.wait("r1", { signal: waiting.signal });
  await until(() => server.asked.some((one) => one.query.has("wait")), "the long-poll");
  waiting.abort(reason);
  await assert.rejects(wait, reason);
});

test("close() ends what is under way, and later calls", async () => {
  const asked = later();
  await using server = await Scripted.start(() => {
    asked.resolve();
    return true;
  });
  const mt = server.client();
  const call = failure(mt.whoami());
  await asked.promise;
  await mt.close();
  assert.equal((await call).code, "closed");
  assert.equal((await failure(mt.whoami())).code, "closed");
});

test("lists come page by page", async () => {
  await using server = await Scripted.start((asked, answer) => {
    const after = Number(asked.query.get("after") ?? 0);
    const size = Math.min(Number(asked.query.get("limit")), 2);
    const items = Array.from({ length: size }, (_, i) => ({ name: String(after + i) }));
    json(answer, 200, { items, next: after + size < 7 ? String(after + size) : null });
    return true;
  });
  await using mt = server.client();
  assert.equal((await mt.vfs.list()).length, 8);
  assert.deepEqual(
    (await mt.vfs.list({ limit: 3 })).map((one) => one.name),
    ["0", "1", "2"],
  );
});

test("an idle client and an idle stream do not keep the process alive", async () => {
  await using server = await Scripted.start((asked, answer) => {
    if (asked.path === "/v1/events") {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write('id: 1\nevent: hello\ndata: {"after":1}\n\n');
    } else json(answer, 200, { name: "ada" });
    return true;
  });
  const index = new URL("../../src/index.js", import.meta.url).href;
  const script = `import { Maitento } from ${JSON.stringify(index)};
    const mt = new Maitento({ url: ${JSON.stringify(server.url)} });
    await mt.whoami(); await mt.events.open(); console.log("done");`;
  const output = await new Promise<string>((resolve, reject) =>
    execFile(process.execPath, ["--input-type=module", "-e", script], { timeout: 10_000 }, (error, stdout) => {
      if (error) reject(new Error("it failed", { cause: error }));
      else resolve(stdout);
    }),
  );
  assert.equal(output, "done\n");
});

test("secrets never reach an error's text", async () => {
  await using server = await Scripted.start((_, answer) => {
    problem(answer, 401, "unauthenticated");
    return true;
  });
  await using mt = server.client({ apiKey: "mt_canary" });
  const error = await failure(mt.secrets.create({ name: "x", value: "CANARY" }));
  assert.doesNotMatch(JSON.stringify([error, error.message, error.stack]), /canary/i);
  assert.throws(
    () => new Maitento({ url: server.url, apiKey: "mt canary" }),
    (wrong: Error) => !wrong.message.includes("canary"),
  );
});
