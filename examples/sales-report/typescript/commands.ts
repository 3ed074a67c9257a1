// Sends commands to a capsule that stays up. Run report.ts first: it makes the file system that the capsule mounts.
import { CapsuleCommandAbortedError, Maitento } from "@maitento/sdk";

const mt = new Maitento({ namespace: process.env.MAITENTO_NAMESPACE ?? "demo" });
await mt.deploy("../maitento");

// It need not have started: a command waits for its turn.
const capsule = await mt.capsules.start("workbench");

// Each argument arrives as the one word that it is here, whatever is in it.
const cherries = await mt.capsuleRuns.execAndWait(capsule.id, {
  command: "grep",
  arguments: ["--count", "-e", ",Cherries,", "-e", "no $HOME, no 'quotes'", "/mnt/data/market.csv"],
});
console.log(`exit code ${cherries.exitCode}: ${cherries.outputStandard.trimEnd()}`);

// A command that fails is a result, too. The file system is for the capsule's default user alone.
const denied = await mt.capsuleRuns.execAndWait(capsule.id, {
  command: "cat",
  arguments: ["/mnt/data/market.csv"],
  runAsUser: "sandbox",
});
console.log(`exit code ${denied.exitCode}: ${denied.outputError.trimEnd()}`);

await mt.capsuleRuns.terminate(capsule.id);

// A command that can't come to its end any more is an error, which says why.
try {
  await mt.capsuleRuns.execAndWait(capsule.id, { command: "true" });
} catch (error) {
  if (!(error instanceof CapsuleCommandAbortedError)) throw error;
  console.log(`too late: ${error.reason}`);
}
