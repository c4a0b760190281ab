/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layout on a canvas as large as what is seen of it. No frame has an element of its own: what is drawn are the
 * rectangles that are half a pixel wide at least, and the one in focus is told to screen readers.
 */
'use strict';

const ROW = 19;
const NARROWEST = 0.5;
const FONT = '11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/* Shades of each class, so that neighbours can be told apart; text on them has a contrast of 4.5 at least. */
const PALETTES = {
	light: {
		text: '#1b1b20', back: '#ffffff', focus: '#1c5fd4', hover: '#1b1b20',
		dim: '#ededf2', dimText: '#5c5c68', match: '#e7a6ee', line: '#d9d9e0', muted: '#5a5a66',
		heat: ['#f1f1f5', '#fde3c8', '#fbc48f', '#f59a58', '#de6a2c', '#b23f12', '#7c2208'],
		selected: '#1c5fd4',
		classes: [
			['#e3e3ea'],
			['#f9dd83', '#f6d36b', '#fae398', '#f3cb5c'],
			['#f4ac88', '#f19c74', '#f7bb9c', '#ee9066'],
			['#a6dcc0', '#95d4b3', '#b7e4cd', '#89cda9'],
			['#b3cdf5', '#a3c2f1', '#c2d7f8', '#98baee'],
			['#d9d9dd', '#d0d0d5', '#e0e0e4', '#cacacf'],
		],
	},
	dark: {
		text: '#131316', back: '#202026', focus: '#7fb0ff', hover: '#ffffff',
		dim: '#2d2d35', dimText: '#b4b4c2', match: '#e08bea', line: '#3a3a44', muted: '#a9a9b8',
		heat: ['#2a2a31', '#4f3222', '#7a4526', '#a95c2b', '#d67c3c', '#f0a766', '#fbd9a8'],
		selected: '#7fb0ff',
		classes: [
			['#8e8e9c'],
			['#d9b44e', '#cfa941', '#e0bf62', '#c79f38'],
			['#d98560', '#cf7850', '#e09372', '#c76e46'],
			['#6fb692', '#62ab86', '#7fc19f', '#58a17c'],
			['#7fa3d8', '#7197cf', '#8fb0e0', '#678dc6'],
			['#9c9ca6', '#92929d', '#a7a7b0', '#8a8a95'],
		],
	},
};

/* What grew and what shrank, by how much of both shares the change is. */
const CHANGES = {
	light: {
		same: '#ececf0',
		grew: ['#fbdcd5', '#f6b5a8', '#f08c7a', '#ea6a55'],
		shrank: ['#dbe6fa', '#b3cdf5', '#8cb0ef', '#6a96e6'],
	},
	dark: {
		same: '#8e8e9c',
		grew: ['#b98a80', '#c97c6c', '#d9705c', '#e8674f'],
		shrank: ['#8496b8', '#7a97cc', '#719be0', '#6aa2f5'],
	},
};
const CHANGE_STEPS = [0.1, 0.3, 0.7];
const VERDICT_SAME = 1;
const VERDICT_GREW = 2;
const VERDICT_SHRANK = 3;

/* The more of both shares the change is the stronger. */
function changeColour(theme, change, weight, isChange) {
	const colours = CHANGES[theme];
	const relative = Math.abs(change) / Math.max(2 * weight, 1e-12);

	return isChange ? (change > 0 ? colours.grew : colours.shrank)[CHANGE_STEPS.filter((step) => relative > step).length] :
		colours.same;
}

class Graph {
	/*
	 * @levels that have room in any case: a graph of fewer begins below what is above it, not at the bottom of the window, and
	 * stays there whatever part of the recording is shown. @on: what to do with frames: hover(graph, i, x, y),
	 * focus(graph, i), sandwich(func), describe(graph, i)
	 */
	constructor(part, profile, label, levels, on) {
		this.part = part;
		this.profile = profile;
		this.levels = levels;
		this.on = on;
		this.layout = null;
		this.isFlame = true;
		this.found = null;
		this.left = 0;
		this.right = 1;
		this.zoomed = 0;
		this.focus = -1;
		this.hovered = -1;
		this.theme = 'light';
		this.isDue = false;
		this.widths = new Map();

		part.tabIndex = 0;
		part.setAttribute('role', 'tree');
		part.setAttribute('aria-label', label);
		this.item = document.createElement('div');
		this.item.className = 'unseen';
		this.item.id = part.id + '-frame';
		this.item.setAttribute('role', 'treeitem');
		this.canvas = document.createElement('canvas');
		this.canvas.setAttribute('aria-hidden', 'true');
		this.room = document.createElement('div');
		this.room.className = 'room';
		part.append(this.item, this.canvas, this.room);
		this.context = this.canvas.getContext('2d');

		part.addEventListener('scroll', () => this.draw());
		part.addEventListener('mousemove', (e) => this.point(e));
		part.addEventListener('mouseleave', () => this.hover(-1));
		part.addEventListener('click', (e) => this.click(e));
		part.addEventListener('dblclick', (e) => this.doubleClick(e));
		part.addEventListener('keydown', (e) => this.key(e));
		part.addEventListener('focus', () => this.enter());
		part.addEventListener('blur', () => this.draw());
		/* in the frame that has the new size */
		new ResizeObserver(() => this.measureRoom() && this.paint()).observe(part);
	}

	show(layout) {
		this.layout = layout;
		this.left = 0;
		this.right = 1;
		this.zoomed = 0;
		this.focus = -1;
		this.hovered = -1;
		this.item.textContent = '';
		this.part.removeAttribute('aria-activedescendant');
		this.measureRoom();
		this.part.scrollTop = this.isFlame ? this.part.scrollHeight : 0;
		this.draw();
	}

	get height() {
		return this.layout ? Math.max(this.layout.depth * ROW + 8,
			Math.min(this.levels * ROW + 8, this.part.clientHeight)) : 0;
	}

	/* True if the canvas is of another size, and so empty. */
	measureRoom() {
		const ratio = window.devicePixelRatio || 1;
		const width = this.part.clientWidth;
		const height = this.printed || this.part.clientHeight;

		if (!width || !height)
			return false;
		const isResized = this.width !== width || this.shown !== height || this.ratio !== ratio;
		/* the root stays where it is; where there was more room than below it the browser has scrolled to the end */
		const isAtEnd = this.part.scrollTop + height >= this.part.scrollHeight - 1;
		const below = !this.isFlame || !this.shown ? -1 : isAtEnd ? 0 :
			this.part.scrollHeight - this.part.scrollTop - this.shown;

		this.room.style.height = `${this.height}px`;
		this.canvas.style.height = `${height}px`;
		if (isResized) {
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(height * ratio);
		}
		this.width = width;
		this.shown = height;
		this.ratio = ratio;
		if (below >= 0)
			this.part.scrollTop = this.part.scrollHeight - below - height;
		return isResized;
	}

	draw() {
		if (this.isDue)
			return;
		this.isDue = true;
		requestAnimationFrame(() => {
			this.isDue = false;
			this.step();
			this.paint();
		});
	}

	/* One step of a zoom that moves: from where it was to where it is to be. */
	step() {
		if (!this.target)
			return;
		const passed = Math.min((performance.now() - this.target.from) / 140, 1);
		const ease = passed * (2 - passed);

		this.left = this.target.left[0] + (this.target.left[1] - this.target.left[0]) * ease;
		this.right = this.target.right[0] + (this.target.right[1] - this.target.right[0]) * ease;
		if (passed < 1)
			this.draw();
		else
			this.target = null;
	}

	/* On paper as many pixels as there are, from the root on; 0 is back to the screen. */
	print(most) {
		this.printed = this.layout ? Math.min(this.height, most) : 0;
		this.measureRoom();
		this.paint();
	}

	/* What is scrolled out at the top. */
	get hidden() {
		if (this.printed)
			return this.isFlame ? this.height - this.printed : 0;
		return this.part.scrollTop;
	}

	y(level) {
		return (this.isFlame ? this.height - (level + 1) * ROW - 4 : level * ROW + 4) - this.hidden;
	}

	levelAt(y) {
		const from = y + this.hidden;

		return Math.floor((this.isFlame ? this.height - 4 - from : from - 4) / ROW);
	}

	/* Of what was tested only what is significant has a colour; parts and callers are not tested. */
	shadeOfChange(i) {
		const layout = this.layout;

		if (layout.func[i] < 0)
			return PALETTES[this.theme].classes[CLASS_GROUP][0];
		return changeColour(this.theme, layout.change[i], layout.weight[i],
			layout.isTested ? layout.verdict[i] >= VERDICT_GREW : Math.abs(layout.change[i]) >= 1e-9);
	}

	shade(i) {
		if (this.profile.diff)
			return this.shadeOfChange(i);
		const shades = PALETTES[this.theme].classes[this.layout.kind[i]];
		const func = this.layout.func[i];

		return shades[func < 0 ? 0 : Math.imul(func + 1, 0x9e3779b1) >>> 16 & shades.length - 1];
	}

	isFound(i) {
		return this.found !== null && this.layout.func[i] >= 0 && this.found[this.layout.func[i]] === 1;
	}

	paint() {
		const layout = this.layout;
		const context = this.context;
		const palette = PALETTES[this.theme];

		if (!layout || !this.width)
			return;
		const started = performance.now();

		context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		context.fillStyle = palette.back;
		context.fillRect(0, 0, this.width, this.shown);
		context.font = FONT;
		context.textBaseline = 'middle';
		this.character = this.character || context.measureText('MMMMMMMMMM').width / 10;
		const a = this.levelAt(0);
		const b = this.levelAt(this.shown);
		const first = Math.max(Math.min(a, b), 0);
		const last = Math.min(Math.max(a, b), layout.depth - 1);

		this.drawn = 0;
		this.colours = new Map();
		this.texts = [];
		for (let level = first; level <= last; level++)
			this.paintLevel(level, palette);
		/* one colour after the other, as changing it costs more than a rectangle */
		for (const [colour, boxes] of this.colours) {
			context.fillStyle = colour;
			for (let i = 0; i < boxes.length; i += 3)
				context.fillRect(boxes[i], boxes[i + 1], boxes[i + 2], ROW - 1);
		}
		context.fillStyle = palette.text;
		this.paintTexts(false);
		context.fillStyle = palette.dimText;
		this.paintTexts(true);
		this.outline(this.hovered, palette.hover, 1);
		if (document.activeElement === this.part)
			this.outline(this.focus, palette.focus, 2.5);
		this.paintTime = performance.now() - started;
	}

	paintLevel(level, palette) {
		const layout = this.layout;
		const scale = this.width / (this.right - this.left);
		const end = layout.levels[level + 1];
		const y = this.y(level);
		let i = Math.max(layout.find(level, this.left), layout.levels[level]);

		while (i < end) {
			const wide = layout.share(i) * scale;
			let from = (layout.x[i] - this.left) * scale;

			if (from > this.width)
				break;
			if (wide < NARROWEST) {
				/* so are the siblings that follow, which are lighter: all of them as one shadow */
				const next = Math.max(layout.childEnd[layout.parent[i]], i + 1);
				const begin = Math.max(from, 0);
				const stop = Math.min((layout.x[next - 1] - this.left) * scale, this.width);

				if (stop - begin >= 1)
					this.box(palette.dim, begin, y, stop - begin);
				i = next;
				continue;
			}
			const to = Math.min(from + wide, this.width);

			from = Math.max(from, 0);
			if (to > from)
				this.paintFrame(i, from, y, to - from, palette);
			i++;
		}
	}

	paintFrame(i, x, y, wide, palette) {
		const isFound = this.isFound(i);
		const isDim = this.found !== null && !isFound && this.layout.func[i] >= 0;
		const colour = isFound ? palette.match : isDim ? palette.dim : this.shade(i);

		this.drawn++;
		this.box(colour, x, y, wide > 2 ? wide - 0.75 : wide);
		if (wide >= 26)
			this.texts.push({ i, x: x + 4, y: y + ROW / 2, room: wide - 9, isDim });
	}

	box(colour, x, y, wide) {
		let boxes = this.colours.get(colour);

		if (!boxes) {
			boxes = [];
			this.colours.set(colour, boxes);
		}
		boxes.push(x, y, wide);
	}

	paintTexts(isDim) {
		for (const text of this.texts)
			if (text.isDim === isDim)
				this.context.fillText(this.fit(this.layout.label(text.i, this.profile), text.room),
					text.x, text.y);
	}

	/* As much of a name as there is room for. */
	fit(name, room) {
		const fits = Math.floor(room / this.character);

		/* a letter or two of a name say nothing */
		if (fits < 4 && name.length > fits)
			return '';
		if (this.isPlain(name))
			return shortName(name, fits);
		if (this.measure(name) <= room)
			return name;
		const characters = Array.from(name).slice(0, fits);

		while (characters.length && this.measure(characters.join('') + '…') > room)
			characters.pop();
		return characters.length ? characters.join('') + '…' : '';
	}

	/* Characters of one width. */
	isPlain(name) {
		for (let i = 0; i < name.length; i++)
			if (name.charCodeAt(i) > 0x17f)
				return false;
		return true;
	}

	measure(text) {
		let width = this.widths.get(text);

		if (width === undefined) {
			if (this.widths.size > 5000)
				this.widths.clear();
			width = this.context.measureText(text).width;
			this.widths.set(text, width);
		}
		return width;
	}

	outline(i, colour, width) {
		if (i < 0)
			return;
		const scale = this.width / (this.right - this.left);
		const from = Math.max((this.layout.x[i] - this.left) * scale, 0);
		const to = Math.min((this.layout.x[i] + this.layout.share(i) - this.left) * scale, this.width);

		if (to <= from)
			return;
		this.context.strokeStyle = colour;
		this.context.lineWidth = width;
		this.context.strokeRect(from + width / 2, this.y(this.layout.level(i)) + width / 2 - 0.5,
			Math.max(to - from - width, 1), ROW - width);
	}

	/* The frame under a point of the page; -1 where there is none. */
	at(clientX, clientY) {
		const box = this.part.getBoundingClientRect();
		const level = this.levelAt(clientY - box.top);

		if (!this.layout || level < 0 || level >= this.layout.depth)
			return -1;
		const x = this.left + (clientX - box.left) / this.width * (this.right - this.left);
		const i = this.layout.find(level, x);

		return i >= 0 && x < this.layout.x[i] + this.layout.share(i) ? i : -1;
	}

	point(e) {
		this.hover(this.at(e.clientX, e.clientY), e.clientX, e.clientY);
	}

	hover(i, x, y) {
		if (i !== this.hovered)
			this.draw();
		this.hovered = i;
		this.on.hover(this, i, x, y);
	}

	click(e) {
		const i = this.at(e.clientX, e.clientY);

		if (i < 0)
			return;
		this.setFocus(i);
		this.zoom(i);
	}

	doubleClick(e) {
		const i = this.at(e.clientX, e.clientY);

		if (i >= 0 && this.layout.func[i] >= 0)
			this.on.sandwich(this.layout.func[i]);
	}

	zoom(i, isAtOnce) {
		const share = this.layout.share(i);

		this.zoomed = i;
		if (share <= 0)
			return;
		const left = this.layout.x[i];
		const right = Math.min(left + share, 1);

		if (isAtOnce || matchMedia('(prefers-reduced-motion: reduce)').matches) {
			this.left = left;
			this.right = right;
			this.target = null;
		} else {
			this.target = { from: performance.now(), left: [this.left, left],
				right: [this.right, right] };
		}
		this.draw();
	}

	zoomOut() {
		const isOut = this.zoomed > 0;

		if (isOut)
			this.zoom(0);
		return isOut;
	}

	setFocus(i) {
		this.focus = i;
		if (i < 0)
			return;
		this.item.setAttribute('aria-level', this.layout.level(i) + 1);
		this.item.textContent = this.on.describe(this, i);
		this.part.setAttribute('aria-activedescendant', this.item.id);
		this.reveal(i);
		this.on.focus(this, i);
		this.draw();
	}

	/* Scroll to it, and zoom out as far as it takes to see it. */
	reveal(i) {
		const y = this.y(this.layout.level(i));
		const scale = this.width / (this.right - this.left);

		if (y < 0)
			this.part.scrollTop += y - ROW;
		else if (y + ROW > this.shown)
			this.part.scrollTop += y + 2 * ROW - this.shown;
		if (this.target)
			return;
		if (this.layout.x[i] + this.layout.share(i) <= this.left || this.layout.x[i] >= this.right) {
			let up = this.zoomed;

			while (up > 0 && (this.layout.x[i] < this.layout.x[up] - 1e-12 ||
			       this.layout.x[i] >= this.layout.x[up] + this.layout.share(up)))
				up = this.layout.parent[up];
			this.zoom(up);
		} else if (this.layout.share(i) * scale < 2) {
			this.zoom(this.layout.parent[i]);
		}
	}

	enter() {
		if (this.focus < 0 && this.layout && this.layout.count)
			this.setFocus(this.zoomed);
		else
			this.draw();
	}

	/* The next frame in its row. */
	neighbour(i, step) {
		const level = this.layout.level(i);
		const next = i + step;

		return next >= this.layout.levels[level] && next < this.layout.levels[level + 1] ? next : i;
	}

	/* What was found, the heaviest first. */
	nextMatch(step) {
		const weight = this.layout.weight;

		if (!this.found || !this.layout.count)
			return;
		if (this.matchesOf !== this.found || this.matchesIn !== this.layout) {
			this.matches = [];
			for (let i = 0; i < this.layout.count; i++)
				if (this.isFound(i))
					this.matches.push(i);
			this.matches.sort((a, b) => weight[b] - weight[a] || a - b);
			this.matchesOf = this.found;
			this.matchesIn = this.layout;
			this.match = step > 0 ? -1 : 0;
		}
		if (!this.matches.length)
			return;
		this.match = (this.match + step + this.matches.length) % this.matches.length;
		this.setFocus(this.matches[this.match]);
	}

	key(e) {
		const layout = this.layout;
		const i = Math.max(this.focus, 0);
		const towards = this.isFlame ? 'ArrowUp' : 'ArrowDown';
		const back = this.isFlame ? 'ArrowDown' : 'ArrowUp';

		if (e.ctrlKey || e.altKey || e.metaKey || !layout || !layout.count)
			return;
		switch (e.key) {
		case towards:
			if (layout.firstChild[i] < layout.childEnd[i])
				this.setFocus(layout.firstChild[i]);
			break;
		case back:
			this.setFocus(layout.parent[i]);
			break;
		case 'ArrowLeft':
			this.setFocus(this.neighbour(i, -1));
			break;
		case 'ArrowRight':
			this.setFocus(this.neighbour(i, 1));
			break;
		case 'Home':
			this.setFocus(0);
			break;
		case 'Enter':
		case ' ':
			this.zoom(i);
			break;
		case 'Backspace':
			this.zoom(layout.parent[this.zoomed]);
			break;
		case 's':
			if (layout.func[i] >= 0)
				this.on.sandwich(layout.func[i]);
			break;
		default:
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	}
}
