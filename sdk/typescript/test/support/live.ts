// SPDX-License-Identifier: Apache-2.0
// What live tests share: a namespace of their own on the server in MAITENTO_URL, and a capsule that stays up.
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Maitento, type CapsuleRun, type MaitentoOptions } from "../../src/index.js";

export interface World extends AsyncDisposable {
  mt: Maitento;
  namespace: string;
  run: CapsuleRun;
}

export async function deploy(mt: Maitento, files: Readonly<Record<string, string>>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sdk-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    await mt.deploy(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A namespace with the file system `work` and a run of `bench`, which mounts it and has a user `sandbox`. */
export async function world(options: MaitentoOptions = {}): Promise<World> {
  const namespace = `ts-${randomBytes(4).toString("hex")}`;
  const mt = new Maitento({ ...options, namespace });
  await mt.namespaces.create({ name: namespace });
  await mt.vfs.create({ name: "work" });
  await deploy(mt, {
    "capsules/bench.mtr":
      'users = [{ name = "sandbox" }]\nmaxDuration = "00:20:00"\nvfs = [{ vfs = @ref("work") mountName = "work" }]\n',
  });
  const run = await mt.capsules.start("bench");
  return {
    mt,
    namespace,
    run,
    [Symbol.asyncDispose]: async () => {
      await mt.capsuleRuns.terminate(run);
      await mt.close();
    },
  };
}
