// Puts the takings of the fruit stalls into a file system, has a capsule sum them up, and prints the report.
import { readFile } from "node:fs/promises";
import { Maitento } from "@maitento/sdk";

const namespace = process.env.MAITENTO_NAMESPACE ?? "demo";
const mt = new Maitento({ namespace });

// A capsule that mounts a file system is deployed after it was made. What is there already is left as it is.
if (!(await mt.namespaces.find(namespace))) await mt.namespaces.create({ name: namespace });
if (!(await mt.vfs.findByName("sales-data"))) await mt.vfs.create({ name: "sales-data" });

const files = mt.vfs.open("sales-data");
for (const name of ["market.csv", "report.py"]) {
  await files.writeText(`/${name}`, await readFile(`../data/${name}`, "utf8"));
}
await mt.deploy("../maitento");

// The capsule runs its script and ends. A run that went wrong says why.
const run = await mt.capsules.run("sales-report");
if (run.status === "Finished") {
  console.log(await files.readText("/report.md"));
} else {
  console.error(`the capsule ended ${run.status}: ${run.failureDetails}`);
  process.exitCode = 1;
}
