// Asks the analyst about the logs: node ask.ts [QUESTION]
import { readFile } from "node:fs/promises";
import { Maitento } from "@maitento/sdk";

const namespace = process.env.MAITENTO_NAMESPACE ?? "investigations";
const mt = new Maitento({ namespace });
if (!(await mt.namespaces.find(namespace))) await mt.namespaces.create({ name: namespace });
if (!(await mt.vfs.findByName("access-logs"))) await mt.vfs.create({ name: "access-logs" });
await mt.vfs.open("access-logs").writeText("/access.log", await readFile("../logs/access.log", "utf8"));
await mt.deploy("../maitento");

const run = await mt.apps.run("analyst", {
  inputs: { question: process.argv[2] ?? "Which page failed most often?", rounds: "8" },
});
for (const line of run.consoleOutputs) console.log(line.text.trimEnd());
if (run.status === "Finished") {
  console.log(`\nAnswer: ${run.returnValue}`);
} else {
  console.error(`no answer: ${run.failureDetails}`);
  process.exitCode = 1;
}
