/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a recording, a range of it, and one to compare that with. All it does is ask for the flame graph of
 * what is selected; times stand in the fields as they do in the query.
 */
'use strict';

const byId = (id) => document.getElementById(id);
const SELECTS = ['event', 'process', 'service', 'container', 'cgroup'];
const LISTS = { process: 'processes', service: 'services', container: 'containers', cgroup: 'cgroups' };
const AXIS = 18;
const HOUR = 3600;
const DAY = 24 * HOUR;
const LONG = 2 * HOUR;
const utc = (seconds) => new Date(seconds * 1000).toISOString().replace('T', ' ');
const darkQuery = matchMedia('(prefers-color-scheme: dark)');

class Site {
	constructor() {
		this.line = byId('line');
		this.canvas = this.line.querySelector('canvas');
		this.readyTime = 0;
		this.counts = [];
		this.line.addEventListener('pointerdown', (e) => this.begin(e));
		this.line.addEventListener('pointermove', (e) => this.move(e));
		this.line.addEventListener('pointerup', (e) => this.end(e));
		for (const id of [...SELECTS, 'thread'])
			byId(id).addEventListener('change', () => this.load());
		for (const id of ['from', 'to', 'before-from', 'before-to'])
			byId(id).addEventListener('change', () => this.show());
		byId('reload').addEventListener('click', () => this.load());
		byId('all').addEventListener('click', () => this.set('', '', ''));
		byId('none').addEventListener('click', () => this.set('before-', '', ''));
		new ResizeObserver(() => this.draw()).observe(this.line);
		darkQuery.addEventListener('change', () => this.draw());
		this.load();
	}

	/* What the fields select, as a query. */
	parts(withTimes) {
		const query = new URLSearchParams();
		const put = (name, value) => value && query.set(name, value);

		for (const id of [...SELECTS, 'thread'])
			put(id, byId(id).value);
		if (withTimes) {
			put('from', this.moment('from'));
			put('to', this.moment('to'));
		}
		return query;
	}

	moment(id) {
		return byId(id).value.trim();
	}

	async load() {
		try {
			const answer = await fetch('timeline.json?' + this.parts(false));

			if (!answer.ok)
				throw new Error((await answer.text()).trim());
			this.take(await answer.json());
		} catch (error) {
			byId('facts').textContent = error.message;
			this.counts = [];
			this.draw();
			byId('graph').removeAttribute('src');
			this.readyTime = performance.now();
			return;
		}
		this.show();
		this.readyTime = performance.now();
	}

	/* Of a long one the last hour is shown first: all of it may be more than a graph is made of. */
	begins(data) {
		if (this.isKnown || data.end_unix_nano - data.start_unix_nano <= LONG * 1e9)
			return;
		byId('from').value = this.momentText(data.end_unix_nano / 1e9 - HOUR);
	}

	take(data) {
		const samples = data.events.reduce((sum, event) => sum + event.samples, 0);
		const shown = data.events.reduce((best, event) => event.samples > best.samples ? event : best);

		this.origin = data.origin_unix_nano / 1e9;
		this.width = data.bucket_nano / 1e9;
		this.counts = shown.counts;
		this.begins(data);
		this.isKnown = true;
		this.fill('event', data.events.map((event) => event.source));
		for (const id of Object.keys(LISTS))
			this.fill(id, data[LISTS[id]].map((part) => part.name));
		byId('facts').textContent = `${utc(data.start_unix_nano / 1e9).slice(0, 19)} UTC, ` +
			`${((data.end_unix_nano - data.start_unix_nano) / 1e9).toFixed(1)} s, ` +
			`${samples.toLocaleString('en')} samples of ${data.events.map((event) => event.source).join(', ')}` +
			(data.cut ? '; it is cut off or damaged, this is what is whole' : '');
		this.draw();
	}

	/* What was known before stays: a choice narrows the answer, and must not take away the others. */
	fill(id, names) {
		const select = byId(id);
		const known = new Set([...select.options].map((option) => option.value));

		if (!select.options.length)
			select.add(new Option('all', ''));
		for (const name of names)
			if (!known.has(name))
				select.add(new Option(name, name));
		/* where there is nothing to choose */
		select.parentElement.hidden = select.options.length < 2;
	}

	set(prefix, from, to) {
		byId(prefix + 'from').value = from;
		byId(prefix + 'to').value = to;
		this.show();
	}

	show() {
		const query = this.parts(true);

		byId('pprof').href = 'debug/pprof/profile?' + query;
		byId('report').href = 'report.json?' + query;
		if (this.moment('before-from'))
			query.set('before_from', this.moment('before-from'));
		if (this.moment('before-to'))
			query.set('before_to', this.moment('before-to'));
		byId('open').href = 'flamegraph?' + query;
		byId('graph').src = 'flamegraph?' + query;
		this.draw();
	}

	get prefix() {
		return byId('drag-before').checked ? 'before-' : '';
	}

	timeAt(event) {
		const box = this.line.getBoundingClientRect();
		const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);

		return this.origin + Math.round(part * this.counts.length) * this.width;
	}

	begin(event) {
		if (!this.counts.length)
			return;
		this.line.setPointerCapture(event.pointerId);
		this.anchor = this.timeAt(event);
	}

	move(event) {
		if (this.anchor === undefined)
			return;
		const other = this.timeAt(event);

		byId(this.prefix + 'from').value = this.momentText(Math.min(this.anchor, other));
		byId(this.prefix + 'to').value = this.momentText(Math.max(this.anchor, other));
		this.draw();
	}

	end(event) {
		if (this.anchor === undefined)
			return;
		const other = this.timeAt(event);

		if (other === this.anchor)
			this.set(this.prefix, '', '');
		else
			this.show();
		this.anchor = undefined;
	}

	/* As a date where that is exact: to the millisecond, as all but the shortest buckets begin. */
	momentText(seconds) {
		return this.width < 0.001 ? `@${seconds.toFixed(6)}` : new Date(Math.round(seconds * 1000)).toISOString();
	}

	/* Where a field's moment is on the canvas; NaN if it is neither a number of seconds since 1970 nor a date of UTC. */
	place(id, otherwise, width) {
		const text = this.moment(id);
		const seconds = /^@[\d.]+$/.test(text) ? parseFloat(text.slice(1)) :
			/^\d+-.*Z$/.test(text) ? Date.parse(text) / 1000 : NaN;

		if (!text)
			return otherwise;
		return (seconds - this.origin) / (this.width * this.counts.length) * width;
	}

	draw() {
		const root = document.documentElement;
		const style = getComputedStyle(root);
		const ratio = window.devicePixelRatio || 1;
		const width = this.line.clientWidth;
		const height = this.line.clientHeight;
		const context = this.canvas.getContext('2d');
		const most = this.counts.reduce((a, b) => Math.max(a, b), 1);

		root.dataset.theme = darkQuery.matches ? 'dark' : 'light';
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.fillStyle = style.getPropertyValue('--muted');
		for (let i = 0; i < this.counts.length; i++) {
			const tall = this.counts[i] / most * (height - AXIS - 4);

			context.fillRect(i * width / this.counts.length, height - AXIS - tall,
				Math.max(width / this.counts.length - 0.4, 0.6), tall);
		}
		this.range('', style.getPropertyValue('--accent'), context, width, height);
		this.range('before-', style.getPropertyValue('--focus'), context, width, height);
		this.axis(style.getPropertyValue('--muted'), context, width, height);
	}

	range(prefix, colour, context, width, height) {
		const from = this.place(prefix + 'from', 0, width);
		const to = this.place(prefix + 'to', width, width);

		if (!this.moment(prefix + 'from') && !this.moment(prefix + 'to') || isNaN(from) || isNaN(to))
			return;
		context.fillStyle = colour;
		context.globalAlpha = 0.25;
		context.fillRect(from, 0, to - from, height - AXIS);
		context.globalAlpha = 1;
		context.fillRect(from, height - AXIS - 2, to - from, 2);
	}

	/* What tells marks apart, and no more. */
	mark(seconds) {
		const text = utc(seconds);

		if (this.width * this.counts.length > DAY)
			return text.slice(5, 16);
		return text.slice(11, this.width < 1 ? 21 : 19);
	}

	axis(colour, context, width, height) {
		const marks = Math.max(Math.floor(width / 160), 1);

		context.fillStyle = colour;
		context.font = '11px system-ui, sans-serif';
		for (let i = 0; i < marks && this.counts.length; i++) {
			const at = this.origin + i / marks * this.counts.length * this.width;

			context.fillText(this.mark(at), i / marks * width + 2, height - 5);
		}
	}
}

const site = new Site();
