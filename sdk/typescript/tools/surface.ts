// SPDX-License-Identifier: Apache-2.0
// What the package has, read from its own type declarations (dist/*.d.ts) by the compiler: JSON on standard output, which tests/sdk
// compares with api/openapi.yaml and with the other languages.
//
//   {"operations": {OPERATION_ID: "capsuleRuns.exec"}, "methods": ["capsuleRuns.exec", …],
//    "types": {SCHEMA: {MEMBER: {"type", "nullable", "optional"}}}}
import { fileURLToPath } from "node:url";
import ts from "typescript";

const index = fileURLToPath(new URL("../../dist/index.d.ts", import.meta.url));

// Where a type has another name than its schema.
const NAMES: Readonly<Record<string, string>> = {
  Run: "CapsuleRun",
  Server: "ServerInfo",
  StartRequest: "CapsuleStart",
  AppStartRequest: "AppStart",
  InteractionStartRequest: "InteractionStart",
  Event: "EventChange",
};
const SCHEMAS = [
  ...["Problem", "Page", "Image", "Check", "Server", "Whoami", "Namespace", "Member", "Key", "User", "Vfs", "Secret"],
  ...["Provider", "Entry", "Diagnostic", "DeployResult", "Deployed", "ResourceItem", "Resource", "CapsuleDefinition"],
  ...["Limits", "StartupCommand", "StartRequest", "Run", "AppStartRequest", "AppInput", "AppRunItem", "AppRun"],
  ...[
    "InteractionStartRequest",
    "InteractionRunItem",
    "InteractionRun",
    "InteractionAttempt",
    "ConsoleLine",
    "LogLine",
  ],
  ...["CommandRequest", "CommandItem", "Command", "Shell", "RunPlan"],
  ...["EventHello", "Event", "EventOutput", "EventConsole", "EventText", "EventEnd"],
];

const program = ts.createProgram([index], {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  strict: true,
  exactOptionalPropertyTypes: true,
  types: ["node"],
});
const checker = program.getTypeChecker();
const source = program.getSourceFile(index);
const root = source && checker.getSymbolAtLocation(source);
if (!root) throw new Error(`${index} is not there: npm run build`);
const exported = new Map(checker.getExportsOfModule(root).map((symbol) => [symbol.name, symbol]));

function typeOf(name: string): ts.Type {
  const symbol = exported.get(name);
  if (!symbol) throw new Error(`the package has no ${name}`);
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return checker.getDeclaredTypeOfSymbol(target);
}

function tag(symbol: ts.Symbol, name: string): string[] {
  const found = symbol.getJsDocTags(checker).find((one) => one.name === name);
  return found ? ts.displayPartsToString(found.text).trim().split(/\s+/) : [];
}

function isPublic(symbol: ts.Symbol): boolean {
  const flags = symbol.declarations?.map((one) => ts.getCombinedModifierFlags(one)) ?? [];
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (
    !symbol.name.startsWith("__") && flags.every((one) => (one & hidden) === 0) && tag(symbol, "internal").length === 0
  );
}

// ---- operations ----

const operations: Record<string, string> = {};
const methods = new Set<string>();

function note(name: string, ids: readonly string[]): void {
  methods.add(name);
  for (const id of ids) operations[id] = name;
}

function methodsOf(type: ts.Type): ts.Symbol[] {
  return type
    .getProperties()
    .filter((one) => isPublic(one) && checker.getTypeOfSymbol(one).getCallSignatures().length > 0);
}

for (const property of typeOf("Maitento").getProperties()) {
  if (!isPublic(property)) continue;
  const type = checker.getTypeOfSymbol(property);
  if (type.getCallSignatures().length > 0) {
    note(property.name, tag(property, "operationId"));
    continue;
  }
  const own = new Map(tag(property, "operationIds").map((one) => one.split("=") as [string, string]));
  if (!type.isClassOrInterface() && !(type.flags & ts.TypeFlags.Object)) continue;
  for (const method of methodsOf(type)) {
    const id = own.get(method.name);
    note(`${property.name}.${method.name}`, id === undefined ? tag(method, "operationId") : [id]);
  }
}
for (const name of ["VfsFiles", "RunFiles"]) {
  for (const method of methodsOf(typeOf(name))) note(`files.${method.name}`, tag(method, "operationId"));
}

// ---- types ----

interface Member {
  type: string;
  nullable: boolean;
  optional: boolean;
}

function kindOf(type: ts.Type): string {
  if (type.aliasSymbol?.name === "Duration") return "string";
  if (type.aliasSymbol?.name === "JsonValue" || type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return "any";
  if (type.isUnion()) {
    const kinds = new Set(type.types.map(kindOf));
    const [only] = kinds;
    return kinds.size === 1 && only !== undefined ? only : "any";
  }
  if (type.flags & ts.TypeFlags.StringLike) return "string";
  if (type.flags & ts.TypeFlags.NumberLike) return "number";
  if (type.flags & ts.TypeFlags.BooleanLike) return "boolean";
  if (type.flags & ts.TypeFlags.TypeParameter) return "any";
  return checker.isArrayType(type) || checker.isTupleType(type) ? "array" : "object";
}

function memberOf(symbol: ts.Symbol): Member {
  const type = checker.getTypeOfSymbol(symbol);
  const parts = type.isUnion() ? type.types : [type];
  const nullable = parts.some((one) => one.flags & ts.TypeFlags.Null);
  const rest = parts.filter((one) => !(one.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)));
  const kinds = new Set(type.aliasSymbol ? [kindOf(type)] : rest.map(kindOf));
  const declared = symbol.declarations?.[0];
  // An alias is lost where undefined or null joins it.
  if (declared && ts.isPropertySignature(declared) && declared.type && /\bDuration\b/.test(declared.type.getText())) {
    kinds.clear();
    kinds.add("string");
  }
  if (declared && ts.isPropertySignature(declared) && declared.type && /^JsonValue\b/.test(declared.type.getText())) {
    return { type: "any", nullable: true, optional: (symbol.flags & ts.SymbolFlags.Optional) !== 0 };
  }
  const [only = "any"] = kinds;
  return { type: kinds.size === 1 ? only : "any", nullable, optional: (symbol.flags & ts.SymbolFlags.Optional) !== 0 };
}

const types = Object.fromEntries(
  SCHEMAS.map((schema) => {
    const type = typeOf(NAMES[schema] ?? schema);
    return [schema, Object.fromEntries(type.getProperties().map((one) => [one.name, memberOf(one)]))];
  }),
);

process.stdout.write(`${JSON.stringify({ operations, methods: [...methods].sort(), types }, null, 1)}\n`);
