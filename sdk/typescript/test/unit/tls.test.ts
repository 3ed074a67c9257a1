// SPDX-License-Identifier: Apache-2.0
// A server behind TLS: trusted by its certificate, or refused with a sentence.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import * as https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { json, SERVER } from "../support/scripted.js";

test("TLS: a certificate that is trusted works, another is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sdk-"));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-nodes"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-keyout", key, "-out", certificate, ...subject], {
    stdio: "ignore",
  });
  const server = https.createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (request, answer) => {
    json(answer, 200, request.url === "/v1/server" ? SERVER : { name: request.headers.authorization });
  });
  try {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const index = new URL("../../src/index.js", import.meta.url).href;
    const url = `https://localhost:${String((server.address() as AddressInfo).port)}`;
    const script = `import { Maitento } from ${JSON.stringify(index)};
      const mt = new Maitento({ url: ${JSON.stringify(url)}, apiKey: "mt_k" });
      try { console.log((await mt.whoami()).name); } catch (error) { console.log(error.code, error.message); }`;
    // The variable is read when a process starts.
    const say = (environment: Record<string, string>): Promise<string> =>
      new Promise((resolve, reject) =>
        execFile(
          process.execPath,
          ["--input-type=module", "-e", script],
          { env: { ...process.env, ...environment }, timeout: 20_000 },
          (error, stdout) => {
            if (error) reject(new Error("it failed", { cause: error }));
            else resolve(stdout);
          },
        ),
      );
    assert.equal(await say({ NODE_EXTRA_CA_CERTS: certificate }), "Bearer mt_k\n");
    assert.match(
      await say({}),
      /^unreachable cannot reach the server at https:\/\/localhost.*self-signed certificate.*NODE_EXTRA_CA_CERTS/,
    );
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});
