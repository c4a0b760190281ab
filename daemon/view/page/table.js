/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of any length, of which only the rows that are seen are elements. */
'use strict';

const LINE = 26;

function classOf(column) {
	return column.key.endsWith('Samples') ? 'number samples' : column.kind;
}

class Grid {
	/*
	 * @columns: { key, title, kind }, @rows.length and fill(row element's cells, i) by @source:
	 * { count(), cells(i), colour(i, theme), isSame(i), level(i), isOpen(i), isFound(i), sort(key, isUp), open(i, how), enter(i) }
	 */
	constructor(part, label, columns, source) {
		this.part = part;
		this.source = source;
		this.columns = columns;
		this.selected = 0;
		this.theme = 'light';
		this.scroll = document.createElement('div');
		this.scroll.className = `grid${source.open ? ' tree' : ''}${columns[0].key === 'before' ? ' changes' : ''}`;
		this.scroll.tabIndex = 0;
		this.scroll.setAttribute('role', source.open ? 'treegrid' : 'grid');
		this.scroll.setAttribute('aria-label', label);
		this.head = document.createElement('div');
		this.head.className = 'row head';
		this.head.setAttribute('role', 'row');
		this.body = document.createElement('div');
		this.body.className = 'body';
		this.body.setAttribute('role', 'rowgroup');
		this.scroll.append(this.head, this.body);
		part.append(this.scroll);
		for (const column of columns)
			this.head.append(this.heading(column));
		this.scroll.addEventListener('scroll', () => this.fill());
		this.scroll.addEventListener('keydown', (e) => this.key(e));
		this.scroll.addEventListener('click', (e) => this.click(e));
		this.scroll.addEventListener('dblclick', () => this.source.enter(this.selected));
		new ResizeObserver(() => this.fill()).observe(this.scroll);
	}

	heading(column) {
		const cell = document.createElement('div');
		const button = document.createElement('button');

		cell.className = classOf(column);
		cell.setAttribute('role', 'columnheader');
		button.textContent = column.title;
		if (this.source.sort && this.source.key === column.key) {
			button.textContent += ' ▼';
			cell.setAttribute('aria-sort', 'descending');
		}
		button.tabIndex = -1;
		if (!this.source.sort) {
			button.disabled = true;
		} else {
			button.tabIndex = 0;
			button.addEventListener('click', () => this.sort(column));
		}
		column.cell = cell;
		column.button = button;
		cell.append(button);
		return cell;
	}

	sort(column) {
		const isUp = column.cell.getAttribute('aria-sort') === 'descending' ||
			(column.kind !== 'number' && column.cell.getAttribute('aria-sort') !== 'ascending');

		for (const other of this.columns) {
			other.cell.removeAttribute('aria-sort');
			other.button.textContent = other.title;
		}
		column.cell.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
		column.button.textContent = column.title + (isUp ? ' ▲' : ' ▼');
		this.source.sort(column.key, isUp);
		this.selected = 0;
		this.scroll.scrollTop = 0;
		this.fill();
	}

	fill() {
		const count = this.source.count();
		/* a browser's limit; what is beyond has no place to scroll to */
		const height = Math.min(count * LINE, 15000000);
		const first = Math.max(Math.floor(this.scroll.scrollTop / LINE) - 4, 0);
		const last = Math.min(first + Math.ceil(this.scroll.clientHeight / LINE) + 8, count);

		if (!this.scroll.clientHeight)
			return;
		this.body.style.height = `${height}px`;
		this.scroll.setAttribute('aria-rowcount', count + 1);
		this.body.textContent = '';
		for (let i = first; i < last; i++)
			this.body.append(this.row(i));
	}

	row(i) {
		const row = document.createElement('div');
		const cells = this.source.cells(i);

		row.className = 'row' + (this.source.isFound(i) ? ' match' : '') + (this.source.isSame(i) ? ' same' : '');
		row.id = `${this.part.id}-${i}`;
		row.style.top = `${i * LINE}px`;
		row.setAttribute('role', 'row');
		row.setAttribute('aria-rowindex', i + 2);
		row.setAttribute('aria-selected', i === this.selected);
		row.dataset.row = i;
		if (this.source.open) {
			row.setAttribute('aria-level', this.source.level(i));
			if (this.source.isOpen(i) !== null)
				row.setAttribute('aria-expanded', this.source.isOpen(i));
		}
		if (i === this.selected)
			this.scroll.setAttribute('aria-activedescendant', row.id);
		this.columns.forEach((column, k) => {
			const cell = document.createElement('div');

			cell.className = classOf(column);
			cell.setAttribute('role', 'gridcell');
			if (column.kind === 'name')
				this.decorate(cell, i);
			cell.append(cells[k]);
			if (column.kind !== 'number')
				cell.title = cells[k];
			row.append(cell);
		});
		return row;
	}

	decorate(cell, i) {
		const mark = document.createElement('span');

		if (this.source.open) {
			const twist = document.createElement('span');
			const isOpen = this.source.isOpen(i);

			twist.className = 'twist';
			twist.textContent = isOpen === null ? '' : isOpen ? '▾' : '▸';
			cell.style.paddingLeft = `${Math.min((this.source.level(i) - 1) * 14, 560)}px`;
			cell.append(twist);
		}
		mark.className = 'mark';
		mark.style.background = this.source.colour(i, this.theme);
		cell.append(mark);
	}

	choose(i) {
		const count = this.source.count();

		this.selected = Math.min(Math.max(i, 0), count - 1);
		const top = this.selected * LINE;

		if (top < this.scroll.scrollTop)
			this.scroll.scrollTop = top;
		else if (top + 2 * LINE > this.scroll.scrollTop + this.scroll.clientHeight)
			this.scroll.scrollTop = top + 2 * LINE - this.scroll.clientHeight;
		this.fill();
	}

	click(e) {
		const row = e.target.closest('[data-row]');

		if (!row)
			return;
		this.choose(+row.dataset.row);
		if (this.source.open && e.target.className === 'twist')
			this.open(this.source.isOpen(this.selected) ? 'close' : 'open');
	}

	open(how) {
		this.choose(this.source.open(this.selected, how));
	}

	key(e) {
		const page = Math.max(Math.floor(this.scroll.clientHeight / LINE) - 2, 1);
		const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page,
			Home: -Infinity, End: Infinity };

		if (e.ctrlKey || e.altKey || e.metaKey || e.target !== this.scroll)
			return;
		if (e.key in steps)
			this.choose(this.selected + steps[e.key]);
		else if (e.key === 'ArrowRight' && this.source.open)
			this.open('open');
		else if (e.key === 'ArrowLeft' && this.source.open)
			this.open('close');
		else if ((e.key === 'Enter' || e.key === 's') && this.source.count())
			this.source.enter(this.selected);
		else
			return;
		e.preventDefault();
		e.stopPropagation();
	}
}

/* The functions of a part of the recording. */
class FunctionList {
	constructor(app) {
		this.app = app;
		this.key = app.profile.diff ? 'change' : 'self';
		this.isUp = false;
		this.order = [];
	}

	show(table) {
		this.table = table;
		this.order = [];
		for (let f = 0; f < table.samples.length; f++)
			if (table.samples[f] > 0)
				this.order.push(f);
		this.sort(this.key, this.isUp);
	}

	sort(key, isUp) {
		const names = this.app.profile.names;
		const files = this.app.profile.files;
		const by = { self: this.table.selfWeight, selfSamples: this.table.selfSamples,
			total: this.table.weight, totalSamples: this.table.samples,
			change: this.table.change, selfChange: this.table.selfChange,
			before: this.table.weight.map((weight, f) => weight - this.table.change[f] / 2),
			after: this.table.weight.map((weight, f) => weight + this.table.change[f] / 2) };
		const way = isUp ? 1 : -1;

		this.key = key;
		this.isUp = isUp;
		if (key === 'name' || key === 'file') {
			const texts = key === 'name' ? names : files;

			this.order.sort((a, b) => way * (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0) || a - b);
		} else {
			this.order.sort((a, b) => way * (by[key][a] - by[key][b]) ||
				this.table.weight[b] - this.table.weight[a] || a - b);
		}
	}

	count() {
		return this.order.length;
	}

	cells(i) {
		const f = this.order[i];
		const all = this.app.sums.weight[0];

		if (this.app.profile.diff)
			return [...changeCells(this.table.weight[f], this.table.change[f], all, this.errorOf('total', f)),
				changeText(this.table.selfChange[f], all, this.errorOf('self', f)),
				this.app.profile.names[f], this.app.profile.files[f]];
		return [this.app.functionText(this.table, f, true), countText(this.table.selfSamples[f]),
			this.app.functionText(this.table, f, false), countText(this.table.samples[f]),
			this.app.profile.names[f], this.app.profile.files[f]];
	}

	/* Of two recordings as a whole; below 0: it is not known. */
	errorOf(which, f) {
		const tested = this.app.profile.tested[which];

		return this.app.isWhole && tested.verdict[f] >= VERDICT_SAME ? tested.error[f] : -1;
	}

	/* Tested as a whole, and no significant change of either. */
	isSame(i) {
		const { diff, tested } = this.app.profile;

		return diff !== null && this.app.isWhole && tested.total.verdict[this.order[i]] < VERDICT_GREW &&
			tested.self.verdict[this.order[i]] < VERDICT_GREW;
	}

	colour(i, theme) {
		const f = this.order[i];
		const profile = this.app.profile;

		if (!profile.diff)
			return PALETTES[theme].classes[profile.classes[f]][0];
		return changeColour(theme, this.table.change[f], this.table.weight[f], this.app.isWhole ?
			profile.tested.total.verdict[f] >= VERDICT_GREW : Math.abs(this.table.change[f]) >= 1e-9);
	}

	isFound(i) {
		return this.app.found !== null && this.app.found.found[this.order[i]] === 1;
	}

	enter(i) {
		this.app.sandwich(this.order[i]);
	}
}

/* The tree of the graph as rows, of which some are open. */
class TreeList {
	constructor(app) {
		this.app = app;
		this.rows = [];
		this.opened = new Set();
	}

	/* Open along the heaviest path. */
	show(layout) {
		this.layout = layout;
		this.opened = new Set();
		for (let i = 0; i < layout.count && layout.share(i) >= 0.05; i = layout.firstChild[i]) {
			this.opened.add(i);
			if (layout.firstChild[i] >= layout.childEnd[i])
				break;
		}
		this.list();
	}

	list() {
		const stack = this.layout.count ? [0] : [];

		this.rows = [];
		while (stack.length) {
			const i = stack.pop();

			this.rows.push(i);
			if (this.opened.has(i))
				for (let c = this.layout.childEnd[i] - 1; c >= this.layout.firstChild[i]; c--)
					stack.push(c);
		}
	}

	count() {
		return this.rows.length;
	}

	cells(i) {
		const n = this.rows[i];
		const layout = this.layout;
		const func = layout.func[n];

		if (this.app.profile.diff)
			return [...changeCells(layout.weight[n], layout.change[n], layout.total,
				layout.isTested && layout.verdict[n] >= VERDICT_SAME ? layout.error[n] : -1),
				layout.name(n, this.app.profile), func < 0 ? '' : this.app.profile.files[func]];
		/* those of a sandwich are shares of its function */
		const text = (weight, isSelf) => layout.total === this.app.sums.weight[0] ?
			this.app.frameText(layout, n, isSelf) : percentText(weight, layout.total);

		return [text(layout.weight[n], false), countText(layout.samples[n]),
			text(layout.selfWeight[n], true), countText(layout.selfSamples[n]),
			layout.name(n, this.app.profile), func < 0 ? '' : this.app.profile.files[func]];
	}

	isSame(i) {
		const n = this.rows[i];

		return this.app.profile.diff !== null && this.layout.isTested && n > 0 && this.layout.verdict[n] < VERDICT_GREW;
	}

	/* its layout is the graph's */
	colour(i, theme) {
		return this.app.profile.diff ? this.app.graph.shadeOfChange(this.rows[i]) :
			PALETTES[theme].classes[this.layout.kind[this.rows[i]]][0];
	}

	level(i) {
		return this.layout.level(this.rows[i]) + 1;
	}

	isOpen(i) {
		const n = this.rows[i];

		return this.layout.firstChild[n] < this.layout.childEnd[n] ? this.opened.has(n) : null;
	}

	isFound(i) {
		const func = this.layout.func[this.rows[i]];

		return this.app.found !== null && func >= 0 && this.app.found.found[func] === 1;
	}

	/* The row to go to. */
	open(i, how) {
		const n = this.rows[i];

		if (how === 'open') {
			if (this.isOpen(i) === null)
				return i;
			if (this.opened.has(n))
				return i + 1;
			this.opened.add(n);
		} else if (this.opened.has(n)) {
			this.opened.delete(n);
		} else {
			return n ? this.rows.indexOf(this.layout.parent[n]) : i;
		}
		this.list();
		return i;
	}

	enter(i) {
		if (this.layout.func[this.rows[i]] >= 0)
			this.app.sandwich(this.layout.func[this.rows[i]]);
	}
}

function percentText(part, all) {
	return all > 0 ? `${(100 * part / all).toFixed(2)} %` : '0.00 %';
}

/* Before, after, and by how much more. */
function changeCells(weight, change, all, error) {
	const [before, after] = beforeAfter(weight, change);

	return [percentText(before, all), percentText(after, all), changeText(change, all, error)];
}

/* @error: of shares, as what was tested has them; below 0: it is not known */
function changeText(change, all, error) {
	const points = (all > 0 ? 100 * change / all : 0).toFixed(2);

	return (points > 0 ? `+${points}` : points === '-0.00' ? '0.00' : points) + (error > 0 ? ` ± ${(100 * error).toFixed(2)}` : '');
}

function samplesText(count) {
	return `${countText(count)} sample${count === 1 ? '' : 's'}`;
}

const COUNTS = new Intl.NumberFormat('en');

function countText(count) {
	return COUNTS.format(count);
}
