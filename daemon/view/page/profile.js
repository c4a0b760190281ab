/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: one call tree in typed arrays, parents before children, and what was seen when and where as
 * entries that add up to whatever part is looked at.
 */
'use strict';

const CLASS_GROUP = 0;
const CLASS_NATIVE = 1;
const CLASS_KERNEL = 2;
const CLASS_INLINED = 3;
const CLASS_MANAGED = 4;
const CLASS_UNNAMED = 5;
const TOPMOST = 2;
const CLASS_NAMES = ['group', 'native', 'kernel', 'inlined', 'JIT, runtime', 'no name'];

function classOfFlags(flags) {
	const kind = flags & 3;

	if (flags & 8)
		return CLASS_INLINED;
	if (kind === 1)
		return CLASS_KERNEL;
	if (kind === 2)
		return CLASS_MANAGED;
	return flags & 4 ? CLASS_NATIVE : CLASS_UNNAMED;
}

class Profile {
	constructor(data) {
		const parents = data.nodes.parent;

		this.title = data.title;
		this.version = data.version;
		this.events = data.events;
		this.groups = data.groups;
		this.mainEvent = data.main;
		this.isCut = data.cut;
		this.start = data.start;		/* Unix ms */
		this.end = data.end;
		this.origin = data.origin;		/* where bucket 0 begins */
		this.width = data.width;		/* of a bucket, ms */
		this.buckets = data.buckets;
		this.cell = data.cell;			/* buckets of a cell of all of the time */
		this.count = parents.length + 1;	/* of nodes; 0 is the root */
		this.parent = new Int32Array(this.count);
		for (let i = 1; i < this.count; i++)
			this.parent[i] = i - parents[i - 1];
		this.frame = new Int32Array(this.count);
		this.frame.set(data.nodes.frame, 1);
		this.frame[0] = -1;
		this.makeFunctions(data);
		this.makeEntries(data.entries);
		this.makeDiff(data.diff);
	}

	/* Frames that differ in being inlined alone are one function. */
	makeFunctions(data) {
		const frames = data.frames;
		const known = new Map();

		this.names = [];
		this.files = [];
		this.sources = [];
		const classes = [];
		this.frameFunction = new Int32Array(frames.name.length);
		this.frameClass = new Uint8Array(frames.name.length);
		for (let i = 0; i < frames.name.length; i++) {
			const key = frames.name[i] + ' ' + frames.file[i] + ' ' + (frames.flags[i] & 7);
			let found = known.get(key);

			this.frameClass[i] = classOfFlags(frames.flags[i]);
			if (found === undefined) {
				found = this.names.length;
				known.set(key, found);
				this.names.push(data.strings[frames.name[i]]);
				this.files.push(data.strings[frames.file[i]]);
				this.sources.push(data.strings[frames.source[i]]);
				classes.push(this.frameClass[i]);
			} else if (this.frameClass[i] !== CLASS_INLINED) {
				classes[found] = this.frameClass[i];
			}
			this.frameFunction[i] = found;
		}
		this.classes = Uint8Array.from(classes);
		this.func = new Int32Array(this.count);
		this.nodeClass = new Uint8Array(this.count);
		this.func[0] = -1;
		for (let i = 1; i < this.count; i++) {
			this.func[i] = this.frameFunction[this.frame[i]];
			this.nodeClass[i] = this.frameClass[this.frame[i]];
		}
	}

	makeEntries(entries) {
		const count = entries.node.length;
		let at = 0;

		this.entryCount = count;
		this.entryGroup = new Int32Array(count);
		this.entryBucket = new Int32Array(count);
		this.entryNode = new Int32Array(count);
		this.entrySamples = Float64Array.from(entries.samples);
		this.entryWeight = new Float64Array(count);
		for (let g = 0; g < entries.groups.length; g += 2) {
			const group = entries.groups[g];
			const period = this.events[this.groups[group].event].period;

			for (let i = 0; i < entries.groups[g + 1]; i++, at++) {
				const isNext = i > 0 && entries.bucket[at] === 0;

				this.entryGroup[at] = group;
				this.entryBucket[at] = entries.bucket[at] + (i ? this.entryBucket[at - 1] : 0);
				this.entryNode[at] = entries.node[at] + (isNext ? this.entryNode[at - 1] : 0);
				this.entryWeight[at] = entries.weight ? entries.weight[at] :
					this.entrySamples[at] * period;
			}
		}
	}

	/*
	 * Two recordings: a weight is the mean of its shares of both, a change how much more the later one has. Of nodes and
	 * functions that were tested as a whole there is what was found.
	 */
	makeDiff(diff) {
		this.diff = diff || null;
		if (!diff)
			return;
		this.verdict = new Uint8Array(this.count);
		this.error = new Float64Array(this.count);
		diff.node.forEach((node, i) => {
			this.verdict[node] = diff.verdict[i];
			this.error[node] = diff.error[i];
		});
		/* frames of one function have the same */
		const tested = () => ({ verdict: new Uint8Array(this.names.length), error: new Float64Array(this.names.length) });

		this.tested = { self: tested(), total: tested() };
		for (const which of ['self', 'total'])
			this.frameFunction.forEach((func, frame) => {
				this.tested[which].verdict[func] = diff.functions[which].verdict[frame];
				this.tested[which].error[func] = diff.functions[which].error[frame];
			});
	}

	/* Frames of the deepest stack. */
	depth() {
		const depths = new Int32Array(this.count);

		for (let i = 1; i < this.count; i++)
			depths[i] = depths[this.parent[i]] + 1;
		return depths.reduce((most, depth) => Math.max(most, depth), 0);
	}

	isBefore(entry) {
		return this.diff !== null && this.groups[this.entryGroup[entry]].event === this.diff.before;
	}

	/* Factors of what is selected of each recording, by which both weigh the same. */
	scales(filter, mask) {
		let before = 0;
		let after = 0;

		if (!this.diff)
			return { before: 1, after: 1 };
		for (let i = 0; i < this.entryCount; i++)
			if (!mask[this.entryGroup[i]])
				continue;
			else if (this.isBefore(i))
				before += this.entryWeight[i];
			else
				after += this.entryWeight[i];
		return { before: before > 0 ? 0.5 / before : 0, after: after > 0 ? 0.5 / after : 0 };
	}

	/* Children of each node as a list in two arrays, made when they are first needed. */
	children() {
		if (this.firstChild)
			return;
		this.firstChild = new Int32Array(this.count).fill(-1);
		this.nextSibling = new Int32Array(this.count).fill(-1);
		for (let i = this.count - 1; i > 0; i--) {
			this.nextSibling[i] = this.firstChild[this.parent[i]];
			this.firstChild[this.parent[i]] = i;
		}
	}

	/* Nodes above which the same function does not stand: what counts for its total. */
	outermost() {
		if (this.isOuter)
			return this.isOuter;
		const depth = new Int32Array(this.names.length);
		let node = 0;

		this.children();
		this.isOuter = new Uint8Array(this.count);
		for (;;) {
			let next = this.firstChild[node];

			while (next < 0 && node > 0) {
				depth[this.func[node]]--;
				next = this.nextSibling[node];
				if (next < 0)
					node = this.parent[node];
			}
			if (next < 0)
				return this.isOuter;
			node = next;
			this.isOuter[node] = depth[this.func[node]] === 0 ? 1 : 0;
			depth[this.func[node]]++;
		}
	}

	/* Depth first: where each node stands, and how many do from there on that are below it, itself included. */
	places() {
		if (this.placed)
			return this.placed;
		const size = new Int32Array(this.count).fill(1);
		const place = new Int32Array(this.count);
		const next = new Int32Array(this.count);

		for (let i = this.count - 1; i > 0; i--)
			size[this.parent[i]] += size[i];
		next[0] = 1;
		for (let i = 1; i < this.count; i++) {
			place[i] = next[this.parent[i]];
			next[this.parent[i]] += size[i];
			next[i] = place[i] + 1;
		}
		this.placed = { place, size };
		return this.placed;
	}

	/* All nodes of a function. */
	nodesOf(func) {
		if (!this.byFunction) {
			const ends = new Int32Array(this.names.length + 1);

			for (let i = 1; i < this.count; i++)
				ends[this.func[i] + 1]++;
			for (let f = 0; f < this.names.length; f++)
				ends[f + 1] += ends[f];
			this.functionBegins = ends.slice();
			this.byFunction = new Int32Array(this.count - 1);
			for (let i = 1; i < this.count; i++)
				this.byFunction[ends[this.func[i]]++] = i;
		}
		return this.byFunction.subarray(this.functionBegins[func], this.functionBegins[func + 1]);
	}

	/* Which groups are in: entries are many. */
	groupMask(filter) {
		const mask = new Uint8Array(this.groups.length);

		this.groups.forEach((group, i) => {
			mask[i] = (group.event === filter.event || (this.diff && group.event === this.diff.before)) &&
				(filter.only === null || groupKey(group, filter.split) === filter.only) ? 1 : 0;
		});
		return mask;
	}

	/* Self and total of all nodes for a part of the recording. */
	sum(filter) {
		const mask = this.groupMask(filter);
		const sums = {
			selfSamples: new Float64Array(this.count),
			selfWeight: new Float64Array(this.count),
			selfChange: new Float64Array(this.diff ? this.count : 0),
			scales: this.scales(filter, mask),
			filter: { ...filter },
		};

		for (let i = 0; i < this.entryCount; i++) {
			if (!mask[this.entryGroup[i]] || this.entryBucket[i] < filter.from ||
			    this.entryBucket[i] >= filter.to)
				continue;
			sums.selfSamples[this.entryNode[i]] += this.entrySamples[i];
			if (this.isBefore(i)) {
				const weight = this.entryWeight[i] * sums.scales.before;

				sums.selfWeight[this.entryNode[i]] += weight;
				sums.selfChange[this.entryNode[i]] -= 2 * weight;
			} else {
				const weight = this.entryWeight[i] * sums.scales.after;

				sums.selfWeight[this.entryNode[i]] += weight;
				if (this.diff)
					sums.selfChange[this.entryNode[i]] += 2 * weight;
			}
		}
		sums.samples = Float64Array.from(sums.selfSamples);
		sums.weight = Float64Array.from(sums.selfWeight);
		sums.change = Float64Array.from(sums.selfChange);
		for (let i = this.count - 1; i > 0; i--) {
			sums.samples[this.parent[i]] += sums.samples[i];
			sums.weight[this.parent[i]] += sums.weight[i];
			if (this.diff)
				sums.change[this.parent[i]] += sums.change[i];
		}
		/* an event that weighs nothing still has its samples */
		if (sums.weight[0] === 0) {
			sums.weight = sums.samples;
			sums.selfWeight = sums.selfSamples;
		}
		return sums;
	}

	/* Self and total of each function; recursion counts once. */
	functions(sums) {
		const count = this.names.length;
		const outer = this.outermost();
		const table = {
			selfSamples: new Float64Array(count), selfWeight: new Float64Array(count),
			samples: new Float64Array(count), weight: new Float64Array(count),
			selfChange: new Float64Array(count), change: new Float64Array(count),
		};

		for (let i = 1; i < this.count; i++) {
			const f = this.func[i];

			table.selfSamples[f] += sums.selfSamples[i];
			table.selfWeight[f] += sums.selfWeight[i];
			if (this.diff) {
				table.selfChange[f] += sums.selfChange[i];
				table.change[f] += outer[i] ? sums.change[i] : 0;
			}
			if (outer[i]) {
				table.samples[f] += sums.samples[i];
				table.weight[f] += sums.weight[i];
			}
		}
		return table;
	}

	/* Weight of what ran, by its class. */
	shares(sums) {
		const shares = new Float64Array(CLASS_NAMES.length);

		for (let i = 1; i < this.count; i++)
			shares[this.nodeClass[i]] += sums.selfWeight[i];
		return shares;
	}

	/*
	 * Functions that a regular expression finds, and what share of all they are in: each stack once, by the outermost one of
	 * them, which is TOPMOST in what is covered.
	 */
	search(expression, sums) {
		const found = new Uint8Array(this.names.length);
		const covered = new Uint8Array(this.count);
		let weight = 0;
		let samples = 0;
		let count = 0;

		for (let i = 0; i < found.length; i++)
			if (expression.test(this.names[i])) {
				found[i] = 1;
				count++;
			}
		for (let i = 1; i < this.count; i++) {
			covered[i] = covered[this.parent[i]] ? 1 : 0;
			if (!covered[i] && found[this.func[i]]) {
				covered[i] = TOPMOST;
				weight += sums.weight[i];
				samples += sums.samples[i];
			}
		}
		return { found, count, weight, samples, covered };
	}

	/* Samples of each cell of @step buckets in a part of the time, whichever are selected. */
	timeline(filter, from, to, step) {
		const mask = this.groupMask(filter);
		const counts = new Float64Array(Math.max(Math.ceil((to - from) / step), 1));

		for (let i = 0; i < this.entryCount; i++)
			if (mask[this.entryGroup[i]] && this.entryBucket[i] >= from && this.entryBucket[i] < to)
				counts[Math.floor((this.entryBucket[i] - from) / step)] += this.entrySamples[i];
		return counts;
	}
}

/* What a group is called when the graph is split; equal names are one part. */
function groupKey(group, split) {
	switch (split) {
	case 'process':
		return group.pid ? `${group.process || 'process'} (${group.pid})` : group.process || '[kernel]';
	case 'thread':
		return `${group.thread || group.process || 'thread'}${group.tid === null ? '' : ` (${group.tid})`}`;
	case 'service':
		return group.service || '[no service]';
	case 'container':
		return group.container ? group.container.slice(0, 12) : '[no container]';
	case 'cgroup':
		return group.cgroup || '[no cgroup]';
	default:
		return '';
	}
}

/* Shares of a part in two recordings. */
function beforeAfter(weight, change) {
	return [weight - change / 2, weight + change / 2].map((share) => Math.max(share, 0));
}

/*
 * A name in at most @fits characters: without arguments, then without what it is qualified with, then cut.
 */
function shortName(name, fits) {
	if (name.length <= fits)
		return name;
	const bare = name.replace(/(?<=.)\(.*$/s, '');

	if (bare.length <= fits)
		return bare;
	/* what stands between < and > has qualifiers of its own */
	const plain = bare.replace(/<[^]*>/, '<>');
	let last = 0;

	for (const found of plain.matchAll(/::|[./](?=[^\d])/g)) {
		last = found.index + found[0].length;
		if (plain.length - last + 1 <= fits)
			return '…' + plain.slice(last);
	}
	const rest = last > 0 && fits > 4 ? '…' + plain.slice(last) : bare;

	return rest.length <= fits ? rest : rest.slice(0, fits - 1) + '…';
}
