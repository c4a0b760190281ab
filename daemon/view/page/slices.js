/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure a share is: what is looked at cut into slices of its time, as view/significance.h has it, and what a part of it has
 * in each. Entries stand by the call tree, so that those of a node and all below it are one stretch.
 */
'use strict';

const SLICES = 40;
const SLICES_MIN = 8;		/* with samples; fewer say nothing of how these depend on each other */
const EXPECTED_MIN = 10;	/* samples of a part that are taken as dependent */
const BLOCK = 512;		/* entries of which the sums are known */

/* What 95 % of Student's distribution lie within: first terms of its expansion around the normal one's. */
function t95(freedom) {
	const z = 1.959964;
	const z3 = z * z * z;
	const z5 = z3 * z * z;

	return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

class Slices {
	constructor(profile, sums) {
		const filter = sums.filter;
		const mask = profile.groupMask(filter);
		const chosen = [];
		let first = Infinity;
		let last = -Infinity;

		this.profile = profile;
		this.filter = filter;
		for (let i = 0; i < profile.entryCount; i++)
			if (mask[profile.entryGroup[i]] && profile.entryBucket[i] >= filter.from &&
			    profile.entryBucket[i] < filter.to && profile.entrySamples[i] > 0) {
				chosen.push(i);
				first = Math.min(first, profile.entryBucket[i]);
				last = Math.max(last, profile.entryBucket[i]);
			}
		const event = profile.events[filter.event];
		const isCounted = sums.weight === sums.samples;

		/* an event that weighs nothing still has its samples */
		this.weights = isCounted ? profile.entrySamples : profile.entryWeight;
		this.all = new Float64Array(SLICES);
		this.weight = 0;
		this.squares = 0;
		this.order(chosen);
		this.cut(first, last - first + 1);
		/* weights of one entry differ as well: of a part as far as those of the whole event */
		this.squares *= isCounted ? 1 : event.spread;
		this.hasTimes = !event.timeless && profile.buckets > 1;
		this.used = this.all.reduce((count, weight) => count + (weight > 0 ? 1 : 0), 0);
		this.isTelling = !this.hasTimes || this.used >= SLICES_MIN;
	}

	/* By the places of nodes, where all below one follow it. */
	order(chosen) {
		const profile = this.profile;
		const { place } = profile.places();
		const ends = new Int32Array(profile.count + 1);

		for (const i of chosen)
			ends[place[profile.entryNode[i]] + 1]++;
		for (let i = 0; i < profile.count; i++)
			ends[i + 1] += ends[i];
		/* of each place where its entries begin */
		this.begins = ends.slice();
		this.entry = new Int32Array(chosen.length);
		for (const i of chosen)
			this.entry[ends[place[profile.entryNode[i]]]++] = i;
	}

	cut(first, span) {
		const profile = this.profile;
		const count = this.entry.length;

		this.slice = new Uint8Array(count);
		this.blocks = new Float64Array((Math.floor(count / BLOCK) + 1) * SLICES);
		for (let k = 0; k < count; k++) {
			const i = this.entry[k];
			const weight = this.weights[i];

			if (k % BLOCK === 0)
				this.blocks.set(this.all, k / BLOCK * SLICES);
			this.slice[k] = Math.floor((profile.entryBucket[i] - first) * SLICES / span);
			this.all[this.slice[k]] += weight;
			this.weight += weight;
			this.squares += weight * weight / profile.entrySamples[i];
		}
		if (count % BLOCK === 0)
			this.blocks.set(this.all, count / BLOCK * SLICES);
	}

	/* Entries from one place to another one, of some groups (null: of all). */
	add(part, from, to, groups) {
		const begin = this.begins[from];
		const end = this.begins[to];
		const first = Math.ceil(begin / BLOCK);
		const last = Math.floor(end / BLOCK);

		if (groups !== null || first >= last) {
			this.addEach(part, begin, end, groups);
			return;
		}
		this.addEach(part, begin, first * BLOCK, null);
		for (let k = 0; k < SLICES; k++)
			part[k] += this.blocks[last * SLICES + k] - this.blocks[first * SLICES + k];
		this.addEach(part, last * BLOCK, end, null);
	}

	addEach(part, begin, end, groups) {
		for (let k = begin; k < end; k++)
			if (groups === null || groups[this.profile.entryGroup[this.entry[k]]])
				part[this.slice[k]] += this.weights[this.entry[k]];
	}

	/* A node, with all below it or alone. */
	addNode(part, node, isSelf, groups) {
		const { place, size } = this.profile.places();

		this.add(part, place[node], place[node] + (isSelf ? 1 : size[node]), groups);
	}

	/* Has it samples that ran in itself? */
	hasOwn(node) {
		const { place } = this.profile.places();

		return this.begins[place[node]] < this.begins[place[node] + 1];
	}

	/* A function; recursion counts once. */
	addFunction(part, func, isSelf) {
		const outer = this.profile.outermost();

		for (const node of this.profile.nodesOf(func))
			if (isSelf || outer[node])
				this.addNode(part, node, isSelf, null);
	}

	/* Of slices joined to groups of @join. */
	factorOf(part, share, join) {
		let squares = 0;
		let used = 0;

		for (let i = 0; i < SLICES; i += join) {
			let all = 0;
			let rest = 0;

			for (let k = i; k < i + join; k++) {
				all += this.all[k];
				rest += part[k] - share * this.all[k];
			}
			used += all > 0 ? 1 : 0;
			squares += rest * rest;
		}
		if (used < SLICES_MIN)
			return 1;
		return squares / (this.weight * this.weight) * used / (used - 1) / (share * (1 - share) / this.size);
	}

	/* Independent samples of equal weight that say as much as these. */
	get size() {
		return this.squares > 0 ? this.weight * this.weight / this.squares : 0;
	}

	/*
	 * Half of the interval that holds the true share in 19 of 20 recordings like this one, of the part that @addTo adds; -1: it
	 * is not known, as of all and of nothing.
	 */
	error(addTo) {
		const part = new Float64Array(SLICES);

		if (!this.isTelling || !(this.weight > 0))
			return -1;
		addTo(this, part);
		const share = part.reduce((sum, weight) => sum + weight, 0) / this.weight;

		/* sums of blocks may be less exact than that */
		if (!(share > 1e-12) || share > 1 - 1e-12)
			return -1;
		const isDependent = this.hasTimes && this.size * share >= EXPECTED_MIN;
		const phi = isDependent ? Math.max(1, ...[1, 2, 4].map((join) => this.factorOf(part, share, join))) : 1;

		return t95(this.hasTimes ? this.used - 1 : Infinity) * Math.sqrt(share * (1 - share) * phi / this.size);
	}
}
