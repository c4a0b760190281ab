/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples over time: a column is some time, its cells are parts of it, so that what repeats within a second is seen as
 * well as what changes over minutes. A range of cells, from one to another, filters the graph. A part of the time that is
 * zoomed in to has finer cells, down to the buckets that the page has: as many as its room allows.
 */
'use strict';

const AXIS = 16;
const CELLS = 4000;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

class Heat {
	/*
	 * @on: changed(from, to, isFinal): buckets that are selected, all of them if none is; hover(text, samples, x, y): the time of a
	 * cell, "" of none
	 */
	constructor(part, profile, on) {
		this.part = part;
		this.canvas = part.querySelector('canvas');
		this.context = this.canvas.getContext('2d');
		this.profile = profile;
		this.on = on;
		this.theme = 'light';
		this.from = 0;
		this.to = profile.buckets;
		this.above = [];		/* what was shown before it was zoomed in */
		this.look(0, profile.buckets);

		part.setAttribute('aria-valuemax', profile.buckets);
		part.setAttribute('aria-valuenow', 0);
		part.setAttribute('aria-valuetext', 'all times');
		part.addEventListener('pointerdown', (e) => this.begin(e));
		part.addEventListener('pointermove', (e) => this.move(e));
		part.addEventListener('pointerup', (e) => this.end(e));
		part.addEventListener('pointerleave', () => this.on.hover('', 0));
		part.addEventListener('keydown', (e) => this.key(e));
		part.addEventListener('focus', () => this.draw());
		part.addEventListener('blur', () => this.draw());
		new ResizeObserver(() => this.draw()).observe(part);
	}

	/* @count(from, to, step): samples of each cell of so many buckets. */
	show(count) {
		this.count = count;
		this.counts = count(this.first, this.last, this.step);
		this.most = this.counts.reduce((most, samples) => Math.max(most, samples), 0);
		this.draw();
	}

	/* What is shown: buckets from @first on, in cells of @step. */
	look(first, last) {
		this.first = first;
		this.last = last;
		this.step = Math.min(STEPS.find((step) => (last - first) / step < CELLS) || Infinity, this.profile.cell);
		this.cells = Math.max(Math.ceil((last - first) / this.step), 1);
		this.rows = rowsOf(this.cells);
		this.columns = Math.ceil(this.cells / this.rows);
		this.cursor = 0;
		this.anchor = 0;
	}

	bucketOf(cell) {
		return Math.min(this.first + cell * this.step, this.last);
	}

	get isZoomed() {
		return this.above.length > 0;
	}

	/* Is less selected than is shown, and more than what is in a cell in any case? */
	get canZoomIn() {
		return this.isNarrowed && this.to - this.from > 1;
	}

	get isNarrowed() {
		return this.from > this.first || this.to < this.last;
	}

	zoomIn() {
		if (!this.canZoomIn)
			return;
		this.above.push([this.first, this.last]);
		this.zoom(this.from, this.to);
	}

	zoomOut() {
		if (this.isZoomed)
			this.zoom(...this.above.pop());
	}

	zoom(first, last) {
		this.look(first, last);
		this.show(this.count);
		this.on.changed(this.from, this.to, true);
	}

	get isSelected() {
		return this.from > 0 || this.to < this.profile.buckets;
	}

	/* Is something of a cell selected? */
	isIn(i) {
		return this.bucketOf(i + 1) > this.from && this.bucketOf(i) < this.to;
	}

	draw() {
		const ratio = window.devicePixelRatio || 1;
		const width = this.part.clientWidth;
		const height = this.part.clientHeight;
		const palette = PALETTES[this.theme];
		const context = this.context;

		if (!this.counts || !width)
			return;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.cellWidth = width / this.columns;
		this.cellHeight = (height - AXIS) / this.rows;
		const gap = this.cellWidth > 5 && this.cellHeight > 3 ? 0.6 : 0;

		for (let i = 0; i < this.cells; i++) {
			const column = Math.floor(i / this.rows);
			const row = i % this.rows;
			const shades = palette.heat.length - 1;
			const count = this.counts[i];
			const shade = count ? 1 + Math.min(Math.floor(count / this.most * shades), shades - 1) : 0;

			context.globalAlpha = this.isIn(i) ? 1 : 0.28;
			context.fillStyle = palette.heat[shade];
			context.fillRect(column * this.cellWidth, height - AXIS - (row + 1) * this.cellHeight,
				this.cellWidth - gap, this.cellHeight - gap);
		}
		context.globalAlpha = 1;
		this.axis(width, height, palette);
		if (this.isNarrowed && this.from < this.last && this.to > this.first)
			this.bracket(height, palette);
		if (document.activeElement === this.part)
			this.mark(this.cursor, height, palette);
	}

	axis(width, height, palette) {
		const begin = this.first * this.profile.width / 1000;
		const seconds = this.columns * this.rows * this.step * this.profile.width / 1000;
		const step = niceStep(seconds / Math.max(Math.floor(width / 90), 1));

		textStyle(this.context, palette.muted);
		for (let i = Math.ceil(begin / step); i * step < begin + seconds; i++) {
			const x = (i * step - begin) / seconds * width;
			const label = timeText(i * step);

			if (x + this.context.measureText(label).width > width)
				break;
			this.context.fillRect(x, height - AXIS + 1, 1, 4);
			this.context.fillText(label, x + 3, height - 5);
		}
	}

	/* Where the range begins and ends. */
	bracket(height, palette) {
		const column = this.rows * this.step;
		const from = Math.max(Math.floor((this.from - this.first) / column), 0) * this.cellWidth;
		const to = Math.min(Math.ceil((this.to - this.first) / column), this.columns) * this.cellWidth;

		this.context.strokeStyle = palette.selected;
		this.context.lineWidth = 1.5;
		this.context.strokeRect(from + 0.75, 0.75, Math.max(to - from - 1.5, 1), height - AXIS - 1.5);
	}

	mark(i, height, palette) {
		this.context.strokeStyle = palette.focus;
		this.context.lineWidth = 2;
		this.context.strokeRect(Math.floor(i / this.rows) * this.cellWidth,
			height - AXIS - (i % this.rows + 1) * this.cellHeight,
			Math.max(this.cellWidth, 3), Math.max(this.cellHeight, 3));
	}

	cellAt(e) {
		const box = this.part.getBoundingClientRect();
		const column = Math.floor((e.clientX - box.left) / this.cellWidth);
		const row = Math.floor((box.height - AXIS - (e.clientY - box.top)) / this.cellHeight);
		const cell = Math.min(Math.max(column, 0), this.columns - 1) * this.rows +
			Math.min(Math.max(row, 0), this.rows - 1);

		return Math.min(cell, this.cells - 1);
	}

	begin(e) {
		if (e.button)
			return;
		this.part.setPointerCapture(e.pointerId);
		this.isDragged = true;
		this.anchor = this.cursor = this.cellAt(e);
	}

	move(e) {
		const cell = this.cellAt(e);

		this.on.hover(this.isDragged ? this.rangeText() : timeText(this.bucketOf(cell) * this.profile.width / 1000),
			this.isDragged ? this.counts.reduce((sum, samples, i) => sum + (this.isIn(i) ? samples : 0), 0) : this.counts[cell],
			e.clientX, e.clientY);
		if (!this.isDragged || cell === this.cursor)
			return;
		this.cursor = cell;
		this.take(this.anchor, cell, false);
	}

	/* A click alone takes back what is narrower than what is shown, or takes the column that was hit. */
	end(e) {
		if (!this.isDragged)
			return;
		this.isDragged = false;
		const cell = this.cellAt(e);

		if (cell !== this.anchor)
			this.take(this.anchor, cell, true);
		else if (this.isNarrowed)
			this.select(this.first, this.last, true);
		else
			this.take(cell - cell % this.rows, cell - cell % this.rows + this.rows - 1, true);
	}

	take(a, b, isFinal) {
		this.select(this.bucketOf(Math.min(a, b)), this.bucketOf(Math.max(a, b) + 1), isFinal);
	}

	select(from, to, isFinal) {
		this.from = Math.max(from, 0);
		this.to = Math.min(to, this.profile.buckets);
		this.part.setAttribute('aria-valuenow', this.from);
		this.part.setAttribute('aria-valuetext', this.isSelected ? this.rangeText() : 'all times');
		this.draw();
		this.on.changed(this.from, this.to, isFinal);
	}

	clear() {
		const wasSelected = this.isSelected;

		if (this.isZoomed) {
			this.above = [];
			this.look(0, this.profile.buckets);
			this.show(this.count);
		}
		if (wasSelected)
			this.select(0, this.profile.buckets, true);
		return wasSelected;
	}

	rangeText() {
		return `${timeText(this.from * this.profile.width / 1000)} to ` +
			`${timeText(this.to * this.profile.width / 1000)}`;
	}

	key(e) {
		const steps = { ArrowLeft: -this.rows, ArrowRight: this.rows, ArrowUp: 1, ArrowDown: -1,
			Home: -Infinity, End: Infinity };

		if (e.ctrlKey || e.altKey || e.metaKey)
			return;
		if (e.key === '+' || e.key === '-') {
			e.preventDefault();
			if (e.key === '+')
				this.zoomIn();
			else
				this.zoomOut();
			return;
		}
		if (!(e.key in steps))
			return;
		e.preventDefault();
		this.cursor = Math.min(Math.max(this.cursor + steps[e.key], 0), this.cells - 1);
		if (e.shiftKey) {
			this.take(this.anchor, this.cursor, true);
			return;
		}
		this.anchor = this.cursor;
		this.part.setAttribute('aria-valuenow', this.bucketOf(this.cursor));
		this.part.setAttribute('aria-valuetext',
			`${timeText(this.bucketOf(this.cursor) * this.profile.width / 1000)}, ${this.counts[this.cursor]} samples`);
		this.draw();
	}
}

/* So that cells are seen: few rows for few buckets, and 50 columns at least where there are enough. */
function rowsOf(buckets) {
	for (const rows of [25, 20, 10, 5])
		if (buckets / rows >= 40)
			return rows;
	return buckets >= 40 ? 4 : 1;
}

function textStyle(context, colour) {
	context.fillStyle = colour;
	context.font = '11px system-ui, sans-serif';
	context.textBaseline = 'alphabetic';
}

function niceStep(least) {
	const unit = Math.pow(10, Math.floor(Math.log10(least)));

	for (const step of [1, 2, 5])
		if (step * unit >= least)
			return step * unit;
	return 10 * unit;
}

/* Seconds since the first sample. */
function timeText(seconds) {
	const rounded = Math.round(seconds * 1000) / 1000;

	if (rounded >= 120) {
		const minutes = Math.floor(rounded / 60);
		const [whole, part] = String(+(rounded - minutes * 60).toFixed(3)).split('.');

		return `${minutes}:${whole.padStart(2, '0')}${part ? `.${part}` : ''} min`;
	}
	return `${rounded} s`;
}
