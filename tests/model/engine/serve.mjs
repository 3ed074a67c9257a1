// SPDX-License-Identifier: Apache-2.0
// A small server of OpenAI's chat completions over llama.cpp: serve.mjs PACKAGES MODEL.gguf
//
// PACKAGES is the folder with node_modules. Once it listens (127.0.0.1, a port of its own) it prints {"port": N};
// it leaves when its standard input ends. Requests are answered one after another.
//
// Taken: messages, stream, stream_options.include_usage, max_tokens, temperature, seed (1 where it is left out), and
// response_format of type json_schema, which becomes a grammar that the engine keeps to token by token. Answered:
// chunks or one document, usage, finish reasons stop and length, errors as {"error": {"message", "type", "code"}}.
import http from "node:http";
import path from "node:path";
import {pathToFileURL} from "node:url";

const [packages, modelFile] = process.argv.slice(2);
const {getLlama, LlamaCompletion, LlamaLogLevel} = await import(
    pathToFileURL(path.join(packages, "node_modules/node-llama-cpp/dist/index.js")).href);
const MODEL = path.basename(modelFile, ".gguf");
const TOKENS = 2048; // that an answer has at most, unless the request says fewer
const BODY = 4 << 20;

// One thread: the model is so small that several only wait for each other.
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, progressLogs: false,
                              logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: modelFile});
const context = await model.createContext({contextSize: 8192, batchSize: 512, threads: 1});
const sequence = context.getSequence();
const completion = new LlamaCompletion({contextSequence: sequence});

class Refused extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.problem = {error: {message, type: "invalid_request_error", code}};
    }
}

function read(body) {
    let asked;
    try {
        asked = JSON.parse(body);
    } catch {
        throw new Refused(400, "bad_request", "the body is no JSON");
    }
    if (!Array.isArray(asked?.messages))
        throw new Refused(400, "bad_request", "'messages' is missing");
    if (asked.model !== MODEL)
        throw new Refused(404, "model_not_found", `the model '${asked.model}' does not exist: there is '${MODEL}'`);
    return asked;
}

async function grammarOf(format) {
    if (!format || format.type === "text")
        return undefined;
    if (format.type !== "json_schema" || typeof format.json_schema?.schema !== "object")
        throw new Refused(400, "bad_request", "'response_format' has to be text or json_schema");
    return await llama.createGrammarForJsonSchema(format.json_schema.schema);
}

async function answer(asked, onText) {
    const prompt = asked.messages.map(({role, content}) => `${role}: ${content}\n`).join("") + "assistant: ";
    const before = sequence.tokenMeter.getState();
    const {response, metadata} = await completion.generateCompletionWithMeta(prompt, {
        grammar: await grammarOf(asked.response_format),
        maxTokens: asked.max_tokens ?? TOKENS,
        temperature: asked.temperature ?? 1,
        seed: asked.seed ?? 1,
        onTextChunk: onText,
    });
    const {usedInputTokens, usedOutputTokens} = sequence.tokenMeter.diff(before);
    return {
        text: response,
        finish: metadata.stopReason === "maxTokens" ? "length" : "stop",
        usage: {prompt_tokens: usedInputTokens, completion_tokens: usedOutputTokens,
                total_tokens: usedInputTokens + usedOutputTokens},
    };
}

async function stream(asked, response) {
    const send = (chunk) => response.write(`data: ${JSON.stringify(
        {id: "1", object: "chat.completion.chunk", model: MODEL, ...chunk})}\n\n`);

    await grammarOf(asked.response_format); // what cannot be done is said before the stream begins
    response.writeHead(200, {"content-type": "text/event-stream"});
    const {finish, usage} = await answer(asked, (content) =>
        send({choices: [{index: 0, delta: {content}, finish_reason: null}]}));
    send({choices: [{index: 0, delta: {}, finish_reason: finish}]});
    if (asked.stream_options?.include_usage)
        send({choices: [], usage});
    response.end("data: [DONE]\n\n");
}

async function whole(asked, response) {
    const {text, finish, usage} = await answer(asked);

    response.writeHead(200, {"content-type": "application/json"});
    response.end(JSON.stringify({id: "1", object: "chat.completion", model: MODEL, usage, choices: [
        {index: 0, message: {role: "assistant", content: text}, finish_reason: finish}]}));
}

async function serve(request, response, body) {
    try {
        if (request.method !== "POST" || request.url !== "/v1/chat/completions")
            throw new Refused(404, "not_found", `there is no ${request.method} ${request.url}`);
        const asked = read(body);
        await (asked.stream ? stream : whole)(asked, response);
    } catch (error) {
        if (!(error instanceof Refused))
            console.error(error);
        if (response.headersSent)
            return response.destroy();
        response.writeHead(error.status ?? 500, {"content-type": "application/json"});
        response.end(JSON.stringify(error.problem ?? {error: {message: error.message, type: "server_error"}}));
    }
}

let turn = Promise.resolve();
const server = http.createServer((request, response) => {
    const parts = [];
    let size = 0;

    request.on("data", (part) => (size += part.length) > BODY ? request.destroy() : parts.push(part));
    request.on("end", () => {
        turn = turn.then(() => serve(request, response, Buffer.concat(parts).toString()));
    });
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({port: server.address().port})));
process.stdin.on("end", () => process.exit(0)).resume();
