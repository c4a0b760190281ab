/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph draws: nodes level by level, each level from left to right, the heaviest child first. Built from
 * the call tree, from a part of it, or the other way around; never by recursion, as stacks may be very deep.
 */
'use strict';

const DEPTH_MAX = 200000;	/* rows that a browser can still scroll */

const LEAST_SHARE = 1e-5;	/* of paths that are followed, where there are very many */

/* Nodes as they are found, parents first. */
class Draft {
	/* @size: how many nodes there will be, where that is known; @hasNodes: each is one of the profile */
	constructor(profile, size, hasNodes) {
		this.isDiff = profile.diff !== null;
		this.count = 0;
		this.node = hasNodes ? new Int32Array(0) : null;
		this.grow(size || 1024);
	}

	grow(size) {
		const grown = (old, Type) => {
			const fresh = new Type(size);

			if (old)
				fresh.set(old);
			return fresh;
		};

		this.parent = grown(this.parent, Int32Array);
		this.func = grown(this.func, Int32Array);
		this.kind = grown(this.kind, Uint8Array);
		this.samples = grown(this.samples, Float64Array);
		this.weight = grown(this.weight, Float64Array);
		this.selfSamples = grown(this.selfSamples, Float64Array);
		this.selfWeight = grown(this.selfWeight, Float64Array);
		if (this.node)
			this.node = grown(this.node, Int32Array);
		if (!this.isDiff)
			return;
		this.change = grown(this.change, Float64Array);
		this.verdict = grown(this.verdict, Uint8Array);
		this.error = grown(this.error, Float64Array);
	}

	add(parent, func, kind) {
		if (this.count === this.parent.length)
			this.grow(2 * this.count);
		this.parent[this.count] = parent;
		this.func[this.count] = func;
		this.kind[this.count] = kind;
		return this.count++;
	}
}

class Layout {
	/* @labels: names of the nodes whose function is below zero, -1 the first */
	constructor(draft, labels) {
		this.labels = labels;
		this.count = draft.count;
		this.arrange(draft);
	}

	/* Children sorted, then breadth first: a level is one range, and so are the children of a node. */
	arrange(draft) {
		const count = draft.count;
		const first = new Int32Array(count + 1);
		const children = new Int32Array(Math.max(count - 1, 0));
		const order = new Int32Array(count);
		const weight = draft.weight;
		const at = new Int32Array(count);

		for (let i = 1; i < count; i++)
			first[draft.parent[i] + 1]++;
		for (let i = 0; i < count; i++)
			first[i + 1] += first[i];
		for (let i = 1; i < count; i++)
			children[first[draft.parent[i]] + at[draft.parent[i]]++] = i;
		for (let i = 0; i < count; i++)
			sortRange(children, first[i], first[i + 1], weight);

		this.firstChild = new Int32Array(count);
		this.childEnd = new Int32Array(count);
		this.parent = new Int32Array(count);
		this.x = new Float64Array(count);
		this.levels = [0];
		let used = 1;
		for (let begin = 0; begin < used;) {
			const end = used;

			this.levels.push(end);
			for (let i = begin; i < end; i++) {
				this.firstChild[i] = used;
				if (this.levels.length <= DEPTH_MAX)
					for (let k = first[order[i]]; k < first[order[i] + 1]; k++) {
						this.parent[used] = i;
						order[used++] = children[k];
					}
				this.childEnd[i] = used;
			}
			begin = end;
			if (used === end)
				break;
		}
		this.count = used;
		this.take(draft, order, used);
		this.total = count ? this.weight[0] : 0;
		for (let i = 0; i < used; i++) {
			let x = this.x[i];

			for (let k = this.firstChild[i]; k < this.childEnd[i]; k++) {
				this.x[k] = x;
				x += this.share(k);
			}
		}
	}

	/* Column by column, in a loop for each kind of array, as engines compile one for the kinds that it has seen. */
	take(draft, order, count) {
		const doubles = (from) => {
			const to = new Float64Array(count);

			for (let i = 0; i < count; i++)
				to[i] = from[order[i]];
			return to;
		};
		const bytes = (from) => {
			const to = new Uint8Array(count);

			for (let i = 0; i < count; i++)
				to[i] = from[order[i]];
			return to;
		};

		this.func = new Int32Array(count);
		for (let i = 0; i < count; i++)
			this.func[i] = draft.func[order[i]];
		this.kind = bytes(draft.kind);
		this.samples = doubles(draft.samples);
		this.weight = doubles(draft.weight);
		this.selfSamples = doubles(draft.selfSamples);
		this.selfWeight = doubles(draft.selfWeight);
		if (draft.node) {
			this.node = new Int32Array(count);
			for (let i = 0; i < count; i++)
				this.node[i] = draft.node[order[i]];
		}
		if (!draft.isDiff)
			return;
		this.change = doubles(draft.change);
		this.verdict = bytes(draft.verdict);
		this.error = doubles(draft.error);
	}

	get depth() {
		return this.levels.length - 1;
	}

	share(i) {
		return this.total > 0 ? this.weight[i] / this.total : 0;
	}

	level(i) {
		let low = 0;
		let high = this.levels.length - 1;

		while (low + 1 < high) {
			const middle = (low + high) >> 1;

			if (this.levels[middle] <= i)
				low = middle;
			else
				high = middle;
		}
		return low;
	}

	/* The last node of a level that begins at or before @x; -1 if none does. */
	find(level, x) {
		let low = this.levels[level];
		let high = this.levels[level + 1];

		if (low >= high || this.x[low] > x)
			return -1;
		while (low + 1 < high) {
			const middle = (low + high) >> 1;

			if (this.x[middle] <= x)
				low = middle;
			else
				high = middle;
		}
		return low;
	}

	/* What stands on a frame: instead of no name the file that it is in. */
	label(i, profile) {
		const file = this.kind[i] === CLASS_UNNAMED && this.func[i] >= 0 ? profile.files[this.func[i]] : '';

		return file ? `[${file.slice(file.lastIndexOf('/') + 1).replace(/[[\]]/g, '')}]` :
			this.name(i, profile);
	}

	name(i, profile) {
		return this.func[i] < 0 ? this.labels[-1 - this.func[i]] : profile.names[this.func[i]];
	}
}

/* By weight, the heaviest first. Most lists are short. */
function sortRange(list, begin, end, weight) {
	if (end - begin > 24) {
		list.subarray(begin, end).sort((a, b) => weight[b] - weight[a] || a - b);
		return;
	}
	for (let i = begin + 1; i < end; i++) {
		const value = list[i];
		let k = i;

		while (k > begin && weight[list[k - 1]] < weight[value]) {
			list[k] = list[k - 1];
			k--;
		}
		list[k] = value;
	}
}

/*
 * Each layout has addTo(slices, part, i, isSelf), which adds what a frame of it stands for, see Slices.
 *
 * The call tree as it is, without what the part that is looked at does not have. @isWhole: it has all.
 */
function layoutTree(profile, sums, isWhole) {
	const draft = new Draft(profile, profile.count, true);
	const place = new Int32Array(profile.count).fill(-1);

	for (let i = 0; i < profile.count; i++) {
		if (i && sums.samples[i] <= 0)
			continue;
		const at = draft.add(i ? place[profile.parent[i]] : -1, profile.func[i], profile.nodeClass[i]);

		place[i] = at;
		draft.node[at] = i;
		draft.samples[at] = sums.samples[i];
		draft.weight[at] = sums.weight[i];
		draft.selfSamples[at] = sums.selfSamples[i];
		draft.selfWeight[at] = sums.selfWeight[i];
		if (profile.diff) {
			draft.change[at] = sums.change[i];
			draft.verdict[at] = profile.verdict[i];
			draft.error[at] = profile.error[i];
		}
	}
	const layout = new Layout(draft, ['all']);

	layout.isTested = profile.diff !== null && isWhole;
	layout.addTo = (slices, part, i, isSelf) => slices.addNode(part, layout.node[i], isSelf, null);
	return layout;
}

/* One tree per process, thread, ... below a common root. */
function layoutSplit(profile, filter, sums) {
	const draft = new Draft(profile, 0, true);
	const labels = ['all'];
	const parts = new Map();
	const mask = profile.groupMask(filter);
	const place = new Int32Array(profile.count);
	const stamp = new Int32Array(profile.count);
	const isWeightless = sums.weight === sums.samples;

	draft.add(-1, -1, CLASS_GROUP);
	draft.samples[0] = sums.samples[0];
	draft.weight[0] = sums.weight[0];
	for (let i = 0; i < profile.entryCount; i++) {
		if (!mask[profile.entryGroup[i]] || profile.entryBucket[i] < filter.from ||
		    profile.entryBucket[i] >= filter.to)
			continue;
		const key = groupKey(profile.groups[profile.entryGroup[i]], filter.split);

		if (!parts.has(key))
			parts.set(key, []);
		parts.get(key).push(i);
	}
	let number = 0;
	for (const [key, entries] of parts) {
		const touched = [];

		number++;
		labels.push(key);
		stamp[0] = number;
		place[0] = draft.add(0, -labels.length, CLASS_GROUP);
		for (const entry of entries)
			for (let n = profile.entryNode[entry]; stamp[n] !== number; n = profile.parent[n]) {
				stamp[n] = number;
				touched.push(n);
			}
		Int32Array.from(touched).sort().forEach((n) => {
			place[n] = draft.add(place[profile.parent[n]], profile.func[n], profile.nodeClass[n]);
			draft.node[place[n]] = n;
		});
		for (const entry of entries) {
			const at = place[profile.entryNode[entry]];

			const isBefore = profile.isBefore(entry);
			const weight = profile.entryWeight[entry] * (isBefore ? sums.scales.before : sums.scales.after);

			draft.selfSamples[at] += profile.entrySamples[entry];
			draft.selfWeight[at] += isWeightless ? profile.entrySamples[entry] : weight;
			if (profile.diff)
				draft.change[at] += isBefore ? -2 * weight : 2 * weight;
		}
		for (let i = draft.count - 1; i >= place[0]; i--) {
			draft.samples[i] += draft.selfSamples[i];
			draft.weight[i] += draft.selfWeight[i];
			if (i > place[0]) {
				draft.samples[draft.parent[i]] += draft.samples[i];
				draft.weight[draft.parent[i]] += draft.weight[i];
				if (profile.diff)
					draft.change[draft.parent[i]] += draft.change[i];
			}
		}
		if (profile.diff)
			draft.change[0] += draft.change[place[0]];
	}
	const layout = new Layout(draft, labels);

	layout.addTo = (slices, part, i, isSelf) => {
		let top = i;

		while (layout.parent[top] > 0)
			top = layout.parent[top];
		slices.addNode(part, layout.node[i], isSelf, i ?
			profile.groupMask({ ...slices.filter, split: filter.split, only: layout.name(top, profile) }) : null);
	};
	return layout;
}

/*
 * Paths that lead away from @starts, merged by function. Each node of the draft has a range of the list of
 * paths that go through it; its children are parts of this range, sorted by the next function.
 */
function layoutPaths(profile, starts, samples, weight, change, root, next) {
	const draft = new Draft(profile);
	const list = Int32Array.from(starts);	/* numbers of paths */
	const cursor = Int32Array.from(starts);	/* by number in @starts: where each path is */
	const begins = [0];
	const ends = [list.length];
	const slot = new Int32Array(profile.names.length).fill(-1);
	const scratch = new Int32Array(list.length);

	for (let i = 0; i < list.length; i++)
		list[i] = i;
	draft.add(-1, root, root < 0 ? CLASS_GROUP : profile.classes[root]);
	for (let i = 0; i < list.length; i++) {
		draft.samples[0] += samples[starts[i]];
		draft.weight[0] += weight[starts[i]];
		if (profile.diff)
			draft.change[0] += change[starts[i]];
	}
	const least = list.length > 50000 ? draft.weight[0] * LEAST_SHARE : 0;
	let isCut = false;

	for (let at = 0; at < draft.count; at++) {
		const begin = begins[at];
		const end = ends[at];
		const firstChild = draft.count;
		let left = end;

		/* paths that end here go behind the others */
		for (let i = begin; i < left;) {
			const path = list[i];
			const node = next(cursor[path], at);

			if (node > 0) {
				cursor[path] = node;
				i++;
				continue;
			}
			draft.selfSamples[at] += samples[starts[path]];
			draft.selfWeight[at] += weight[starts[path]];
			list[i] = list[--left];
			list[left] = path;
		}
		for (let i = begin; i < left; i++) {
			const node = cursor[list[i]];
			const func = profile.func[node];

			if (slot[func] < 0) {
				slot[func] = draft.add(at, func, profile.nodeClass[node]);
				ends[slot[func]] = 0;
			}
			ends[slot[func]]++;
			draft.samples[slot[func]] += samples[starts[list[i]]];
			draft.weight[slot[func]] += weight[starts[list[i]]];
			if (profile.diff)
				draft.change[slot[func]] += change[starts[list[i]]];
		}
		for (let child = firstChild, from = begin; child < draft.count; child++) {
			begins[child] = from;
			from += ends[child];
			ends[child] = begins[child];
		}
		for (let i = begin; i < left; i++)
			scratch[ends[slot[profile.func[cursor[list[i]]]]]++] = list[i];
		for (let i = begin; i < left; i++)
			list[i] = scratch[i];
		for (let child = firstChild; child < draft.count; child++) {
			slot[draft.func[child]] = -1;
			/* what is too narrow to be seen is not followed where that would take long */
			if (draft.weight[child] < least) {
				isCut = true;
				begins[child] = ends[child] = 0;
			}
		}
	}
	const layout = new Layout(draft, ['all']);

	layout.isCut = isCut;
	return layout;
}

/* Functions of a frame and those towards the root of its layout, which is left out: the last one first. */
function pathTo(layout, i) {
	const path = [];

	for (; i > 0; i = layout.parent[i])
		path.push(layout.func[i]);
	return path;
}

/* From a node up while functions are those of a path: the last node that is; -1: they are not. */
function follow(profile, node, path) {
	let last = -1;

	for (const func of path) {
		if (node <= 0 || profile.func[node] !== func)
			return -1;
		last = node;
		node = profile.parent[node];
	}
	return last;
}

/* From what ran to who called it. */
function layoutCallers(profile, sums) {
	const starts = [];

	for (let i = 1; i < profile.count; i++)
		if (sums.selfSamples[i] > 0)
			starts.push(i);
	const layout = layoutPaths(profile, starts, sums.selfSamples, sums.selfWeight, sums.selfChange, -1,
		(node, at) => at === 0 ? node : profile.parent[node]);

	layout.addTo = (slices, part, i, isSelf) => {
		const path = pathTo(layout, i).reverse();

		if (!i)
			return slices.addNode(part, 0, isSelf, null);
		for (const node of profile.nodesOf(path[0])) {
			const last = slices.hasOwn(node) ? follow(profile, node, path) : -1;

			if (last > 0 && (!isSelf || profile.parent[last] === 0))
				slices.addNode(part, node, true, null);
		}
	};
	return layout;
}

/* Who calls a function, over all places where it is not called by itself. */
function layoutCallersOf(profile, sums, func) {
	const outer = profile.outermost();
	const starts = [];

	for (let i = 1; i < profile.count; i++)
		if (profile.func[i] === func && outer[i] && sums.samples[i] > 0)
			starts.push(i);
	const layout = layoutPaths(profile, starts, sums.samples, sums.weight, sums.change, func,
		(node) => profile.parent[node]);

	layout.addTo = (slices, part, i, isSelf) => {
		const path = [func, ...pathTo(layout, i).reverse()];

		for (const node of profile.nodesOf(func)) {
			const last = outer[node] ? follow(profile, node, path) : -1;

			if (last > 0 && (!isSelf || profile.parent[last] === 0))
				slices.addNode(part, node, false, null);
		}
	};
	return layout;
}

/* What a function calls, of the same places, merged. */
function layoutCalleesOf(profile, sums, func) {
	const outer = profile.outermost();
	const draft = new Draft(profile);
	const starts = [];
	const members = [starts];
	const slot = new Map();

	profile.children();
	for (let i = 1; i < profile.count; i++)
		if (profile.func[i] === func && outer[i] && sums.samples[i] > 0)
			starts.push(i);
	draft.add(-1, func, profile.classes[func]);
	for (let at = 0; at < draft.count; at++) {
		slot.clear();
		for (const node of members[at]) {
			draft.samples[at] += sums.samples[node];
			draft.weight[at] += sums.weight[node];
			draft.selfSamples[at] += sums.selfSamples[node];
			draft.selfWeight[at] += sums.selfWeight[node];
			if (profile.diff)
				draft.change[at] += sums.change[node];
			for (let c = profile.firstChild[node]; c >= 0; c = profile.nextSibling[c]) {
				if (sums.samples[c] <= 0)
					continue;
				let child = slot.get(profile.func[c]);

				if (child === undefined) {
					child = draft.add(at, profile.func[c], profile.nodeClass[c]);
					slot.set(profile.func[c], child);
					members[child] = [];
				}
				members[child].push(c);
			}
		}
		members[at] = null;
	}
	const layout = new Layout(draft, ['all']);

	layout.addTo = (slices, part, i, isSelf) => {
		let nodes = starts;

		for (const each of pathTo(layout, i).reverse()) {
			const below = [];

			for (const node of nodes)
				for (let c = profile.firstChild[node]; c >= 0; c = profile.nextSibling[c])
					if (profile.func[c] === each)
						below.push(c);
			nodes = below;
		}
		for (const node of nodes)
			slices.addNode(part, node, isSelf, null);
	};
	return layout;
}
