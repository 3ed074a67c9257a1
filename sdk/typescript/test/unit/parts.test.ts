// SPDX-License-Identifier: Apache-2.0
// The parts that do no I/O over the network.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseAddress } from "../../src/address.js";
import { duration } from "../../src/duration.js";
import { MaitentoError } from "../../src/errors.js";
import { idOf, pathOf } from "../../src/paths.js";
import { projectFiles } from "../../src/project.js";
import { readSettings } from "../../src/settings.js";
import { FrameParser, type Frame } from "../../src/sse.js";
import { backoff } from "../../src/time.js";

function code(wanted: string, words = /./): (error: unknown) => boolean {
  return (error) => error instanceof MaitentoError && error.code === wanted && words.test(error.message);
}

function frames(text: string, size: number): Frame[] {
  const parser = new FrameParser();
  const bytes = Buffer.from(text);
  const found: Frame[] = [];
  for (let at = 0; at < bytes.length; at += size) found.push(...parser.push(bytes.subarray(at, at + size)));
  return found;
}

test("frames come whole, however the bytes are cut", () => {
  const text =
    ': hi\n\nid: 41\nevent: hello\ndata: {"after":41}\n\nevent: output\ndata: {"text":"€😀"}\n\n' +
    "id: 42\r\nevent: change\r\ndata: a\r\ndata:b\r\ndata\r\n\r\ndata: x\r\rdata:  two\n\nevent: none\n\ndata: cut";
  const wanted = [
    { id: "41", event: "hello", data: '{"after":41}' },
    { id: undefined, event: "output", data: '{"text":"€😀"}' },
    { id: "42", event: "change", data: "a\nb\n" },
    { id: undefined, event: "message", data: "x" },
    { id: undefined, event: "message", data: " two" },
  ];
  for (const size of [1, 2, 3, 5, 7, 64, 10_000])
    assert.deepEqual(frames(text, size), wanted, `pieces of ${String(size)}`);
});

test("a byte order mark and odd fields are passed over, an event without end is refused", () => {
  assert.deepEqual(frames("\ufeffdata: a\nretry: 5\nid: a\0b\nodd\n\n", 3), [
    { id: undefined, event: "message", data: "a" },
  ]);
  const parser = new FrameParser();
  const piece = Buffer.alloc(1 << 20, "x");
  assert.throws(() => {
    for (let i = 0; i < 32; i++) parser.push(piece);
  }, /larger/);
});

test("durations", () => {
  assert.equal(duration("90s"), "90s"); // the server says what is wrong with it
  assert.equal(duration({ seconds: 90 }), "00:01:30");
  assert.equal(duration({ hours: 48, minutes: 90 }), "2.01:30:00");
  assert.equal(duration({ days: 1, seconds: 1 }), "1.00:00:01");
  assert.equal(duration({ seconds: 0 }), "00:00:00");
  for (const wrong of [{ seconds: -1 }, { seconds: 0.5 }, { hours: Infinity }])
    assert.throws(() => duration(wrong), code("badRequest", /hh:mm:ss/));
});

test("paths are encoded, part by part", () => {
  assert.equal(
    pathOf(["namespaces", "a b", "vfs", "x/y"], { path: "/é+&=?#%41", recursive: true, limit: undefined, user: null }),
    "/v1/namespaces/a%20b/vfs/x%2Fy?path=%2F%C3%A9%2B%26%3D%3F%23%2541&recursive=true",
  );
  for (const part of ["", ".", ".."]) assert.throws(() => pathOf(["vfs", part]), code("badRequest"));
  assert.throws(() => pathOf(["a\ud800"]), code("badRequest", /half a character/));
  assert.equal(idOf({ id: "x" }), "x");
  assert.throws(() => idOf(undefined as unknown as string), code("badRequest", /an id/));
  assert.throws(() => idOf(""), code("badRequest", /an id/));
});

test("addresses", () => {
  assert.deepEqual(parseAddress("http://h:7420/").where, { host: "h", port: 7420 });
  assert.deepEqual(parseAddress("https://[::1]").where, { host: "::1", port: 443 });
  assert.deepEqual(parseAddress("unix:/run/x.sock").where, { socketPath: "/run/x.sock" });
  for (const wrong of [
    "ftp://x",
    "unix:x",
    "http://a/b",
    "http://",
    "h:1",
    "http://x:99999",
    `unix:/${"x".repeat(200)}`,
  ])
    assert.throws(() => parseAddress(wrong), code("badRequest", /./), wrong);
  assert.throws(
    () => parseAddress("http://user:secret@h"),
    (error: Error) => !error.message.includes("secret"),
  );
});

test("waits double, spread, and have an end", () => {
  for (let i = 0; i < 200; i++) {
    assert.ok(backoff(0, 200, 5000) >= 150 && backoff(0, 200, 5000) <= 250);
    const late = backoff(50, 200, 5000);
    assert.ok(late >= 3750 && late <= 6250);
  }
});

function inHome(file: object | string | undefined, doing: (home: string) => void): void {
  const home = mkdtempSync(join(tmpdir(), "sdk-"));
  try {
    mkdirSync(join(home, ".maitento"));
    if (file !== undefined)
      writeFileSync(join(home, ".maitento", "settings.json"), typeof file === "string" ? file : JSON.stringify(file));
    doing(home);
  } finally {
    rmSync(home, { recursive: true });
  }
}

test("settings: argument, then environment, then file, then the socket", () => {
  inHome({ api: { url: "http://file", key: "mt_file" }, defaultNamespace: "nf" }, (HOME) => {
    const all = readSettings({}, { HOME });
    assert.deepEqual(
      [all.url, all.apiKey, all.namespace, all.namespaceSource],
      ["http://file", "mt_file", "nf", "~/.maitento/settings.json"],
    );
    const own = readSettings({ url: "http://own", namespace: "n" }, { HOME, MAITENTO_NAMESPACE: "ne" });
    assert.deepEqual(
      [own.url, own.apiKey, own.namespace],
      ["http://own", undefined, "n"],
      "the file's key goes to the file's server alone",
    );
    const environment = readSettings(
      {},
      { HOME, MAITENTO_URL: "http://e", MAITENTO_API_KEY: "mt_e", MAITENTO_NAMESPACE: "ne" },
    );
    assert.deepEqual(
      [environment.url, environment.apiKey, environment.namespace, environment.urlSource],
      ["http://e", "mt_e", "ne", "MAITENTO_URL"],
    );
    assert.equal(readSettings({ url: "http://file" }, { HOME }).apiKey, "mt_file");
  });
  inHome(undefined, (HOME) => {
    const none = readSettings({}, { HOME, MAITENTO_URL: "" });
    assert.deepEqual(
      [none.url, none.apiKey, none.namespace, none.namespaceSource],
      ["unix:/run/maitento/api.sock", undefined, undefined, "your default on the server"],
    );
    assert.match(none.urlSource, /the socket of this host/);
  });
  assert.equal(readSettings({}, { HOME: "relative" }).url, "unix:/run/maitento/api.sock");
});

test("settings: a file that is wrong is told, without what is in it", () => {
  inHome('{"api": {"key": "mt_secret"', (HOME) => {
    assert.throws(
      () => readSettings({}, { HOME }),
      (error: Error) => /settings.json/.test(error.message) && !error.message.includes("mt_secret"),
    );
  });
  inHome({ api: { url: 5 } }, (HOME) => {
    assert.throws(() => readSettings({}, { HOME }), code("badRequest", /api\/url must be a text/));
  });
});

async function inProject(doing: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sdk-"));
  try {
    await doing(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a project's files are those that mt takes", async () => {
  await inProject(async (folder) => {
    for (const name of ["capsules", "apps/a/deep", "prompts", "other"])
      mkdirSync(join(folder, name), { recursive: true });
    for (const name of [
      "capsules/b.mtr",
      "capsules/a.mtr",
      "apps/a/a.mtc",
      "apps/a/deep/x.mtr",
      "other/x.mtr",
      "top.mtr",
    ])
      writeFileSync(join(folder, name), `é ${name}`);
    for (const name of ["capsules/.hidden.mtr", "capsules/b.mtr~", "capsules/readme.txt", "prompts/p.md"])
      writeFileSync(join(folder, name), "x");
    writeFileSync(join(folder, "prompts/raw.md"), Buffer.from([0xff, 0xfe]));
    symlinkSync("/etc/passwd", join(folder, "capsules/link.mtr"));
    symlinkSync("capsules", join(folder, "json"));
    execFileSync("mkfifo", [join(folder, "capsules/pipe.mtr")]);
    const skipped: string[] = [];
    const files = await projectFiles(folder, (path, why) => skipped.push(`${path}: ${why}`));
    assert.deepEqual(
      files.map((file) => file.path),
      ["apps/a/a.mtc", "apps/a/deep/x.mtr", "capsules/a.mtr", "capsules/b.mtr", "prompts/p.md", "prompts/raw.md"],
    );
    assert.equal(files[2]?.content, "é capsules/a.mtr");
    assert.deepEqual(files[5], { path: "prompts/raw.md", contentBase64: "//4=" });
    assert.deepEqual(skipped, [
      "json: a link",
      "capsules/link.mtr: a link",
      "capsules/pipe.mtr: no regular file",
      "capsules/readme.txt: no file of a project (.mtr .mtc .json .md)",
    ]);
  });
});

test("a folder that is no project says so, with a way out", async () => {
  await inProject(async (folder) => {
    await assert.rejects(projectFiles(folder), code("badRequest", /none of agents, apps/));
    mkdirSync(join(folder, "maitento/capsules"), { recursive: true });
    await assert.rejects(projectFiles(folder), code("badRequest", /did you mean '.*maitento'/));
    await assert.rejects(projectFiles(join(folder, "no")), code("notFound", /no folder/));
    writeFileSync(join(folder, "maitento/capsules/big.mtr"), Buffer.alloc((8 << 20) + 1));
    await assert.rejects(projectFiles(join(folder, "maitento")), code("tooLarge", /8 MiB/));
  });
});
