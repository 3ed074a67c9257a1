// Runs what an argument names and prints how its run ended: capsule NAME, or app NAME QUESTION.
import { Maitento } from "@maitento/sdk";

const mt = new Maitento();
const [kind, name, question] = process.argv.slice(2);
const run =
  kind === "capsule"
    ? await mt.capsules.run(name)
    : await mt.apps.run(name, { inputs: { question, namespaceName: process.env.MAITENTO_NAMESPACE ?? "tutorials" } });
console.log(`${run.status}\n${run.failureDetails}`);
