// SPDX-License-Identifier: Apache-2.0
/*
 * What Perfetto's trace_processor makes of a file, as JSON: its samples (aggregated ones of a type, or a thread's), its
 * call sites, frames, and the functions inlined into those. It is run here as the worker of a page would run it: what
 * such a worker has, and Node does not, is made up first.
 *
 * usage: node perfetto.mjs DIRECTORY-OF-TRACE-PROCESSOR FILE
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [place, file] = process.argv.slice(2);
const TABLES = {
	aggregated: ["callsite_id, value, sample_type_type AS type FROM __intrinsic_aggregate_sample AS sample",
		"JOIN __intrinsic_aggregate_profile AS profile ON profile.id = aggregate_profile_id"],
	timed: ["callsite_id, ts, tid, thread.name AS thread FROM cpu_profile_stack_sample JOIN thread USING (utid)"],
	callsites: ["id, parent_id, frame_id FROM stack_profile_callsite"],
	frames: ["id, name, symbol_set_id FROM stack_profile_frame"],
	symbols: ["symbol_set_id, name FROM stack_profile_symbol ORDER BY id"],
	errors: ["name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"],
};

console.log = console.error;
globalThis.self = globalThis;
globalThis.location = { href: "file:///" };
globalThis.WorkerGlobalScope = class {};
globalThis.XMLHttpRequest = class {
	open(_, name) {
		this.name = name;
	}
	send() {
		this.response = new Uint8Array(readFileSync(join(place, this.name))).buffer;
	}
};
// The package has the program for 32-bit memory alone. Whether there are 64 bits is asked by a module that begins with
// its memory, as no other does.
const MEMORY_SECTION = 5;
const { Module } = WebAssembly;
WebAssembly.Module = function (bytes) {
	if (bytes[8] === MEMORY_SECTION)
		throw new WebAssembly.CompileError("no 64-bit memory");
	return new Module(bytes);
};

vm.runInThisContext(readFileSync(join(place, "engine_bundle.node.js"), "utf8"));
const { EngineBase } = await import(pathToFileURL(join(place, "engine.mjs")));
const { port1, port2 } = new MessageChannel();
globalThis.onmessage({ data: port1 });

class Engine extends EngineBase {
	rpcSendRequestBytes(bytes) {
		port2.postMessage(bytes);
	}
}

const engine = new Engine();
port2.onmessage = (message) => engine.onRpcResponseBytes(message.data);

const bytes = readFileSync(file), found = {};
for (let at = 0; at < bytes.length; at += 1 << 24)
	await engine.parse(new Uint8Array(bytes.subarray(at, at + (1 << 24))));
await engine.notifyEof();
for (const [name, parts] of Object.entries(TABLES)) {
	const result = await engine.query(`SELECT ${parts.join(" ")}`), columns = result.columns();
	found[name] = [];
	for (const row = result.iter({}); row.valid(); row.next())
		found[name].push(columns.map((column) => row.get(column)));
}
process.stdout.write(JSON.stringify(found, (_, value) => typeof value === "bigint" ? Number(value) : value), () => process.exit(0));
