/* SPDX-License-Identifier: Apache-2.0 */
/* The page: what is looked at, and in which way. All text goes in as text, never as HTML. */
'use strict';

const PAPER = 900;	/* px of a graph that a page has room for */

class App {
	constructor(data) {
		const started = performance.now();

		this.profile = new Profile(data);
		this.filter = { event: this.profile.mainEvent, from: 0, to: this.profile.buckets, split: 'none',
			only: null };
		this.isReversed = false;
		this.inSandwich = -1;
		this.found = null;
		this.tab = 'graph';
		const on = {
			hover: (graph, i, x, y) => this.hover(graph, i, x, y),
			focus: (graph, i) => this.say(this.describe(graph, i)),
			sandwich: (func) => this.sandwich(func),
			describe: (graph, i) => this.describe(graph, i),
		};
		this.graph = new Graph(element('graph-part'), this.profile, 'Flame graph', this.profile.depth() + 2, on);
		this.callers = new Graph(element('callers-part'), this.profile, 'Callers', Infinity, on);
		this.heat = new Heat(element('heat'), this.profile, {
			changed: (from, to, isFinal) => this.selectTime(from, to, isFinal),
			hover: (text, samples, x, y) => this.hoverTime(text, samples, x, y),
		});
		this.makeTables();
		this.fillChoices();
		this.listen();
		this.setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
		this.update();
		this.loadTime = performance.now() - started;
	}

	makeTables() {
		const columns = (first, second) => [
			{ key: first, title: first === 'self' ? 'Self' : 'Total', kind: 'number' },
			{ key: `${first}Samples`, title: 'Samples', kind: 'number' },
			{ key: second, title: second === 'self' ? 'Self' : 'Total', kind: 'number' },
			{ key: `${second}Samples`, title: 'Samples', kind: 'number' },
			{ key: 'name', title: 'Function', kind: 'name' },
			{ key: 'file', title: 'File', kind: 'file' },
		];

		const changes = () => [
			{ key: 'before', title: 'Before', kind: 'number' },
			{ key: 'after', title: 'After', kind: 'number' },
			{ key: 'change', title: 'Change', kind: 'number' },
			{ key: 'selfChange', title: 'Self', kind: 'number' },
			...columns('self', 'total').slice(4),
		];
		const make = this.profile.diff ? changes : columns;

		this.functionList = new FunctionList(this);
		this.functionGrid = new Grid(element('panel-functions'), 'Functions', make('self', 'total'),
			this.functionList);
		this.treeList = new TreeList(this);
		const tree = this.treeList;
		/* its order is that of the tree */
		this.treeGrid = new Grid(element('panel-tree'), 'Call tree', make('total', 'self').filter((column) => column.key !== 'selfChange'), {
			app: this, count: () => tree.count(), cells: (i) => tree.cells(i), colour: (i, theme) => tree.colour(i, theme),
			isSame: (i) => tree.isSame(i),
			level: (i) => tree.level(i), isOpen: (i) => tree.isOpen(i), isFound: (i) => tree.isFound(i),
			open: (i, how) => tree.open(i, how), enter: (i) => tree.enter(i),
		});
	}

	fillChoices() {
		const event = element('event');
		const split = element('split');
		const counts = { process: new Set(), thread: new Set(), service: new Set(), container: new Set(), cgroup: new Set() };

		this.profile.events.forEach((each, i) => {
			event.append(new Option(each.source === each.event ? each.source :
				`${each.source} (${each.event})`, i));
		});
		event.value = this.filter.event;
		element('event-label').hidden = this.profile.diff !== null || this.profile.events.length < 2;
		for (const group of this.profile.groups)
			for (const key of Object.keys(counts))
				counts[key].add(groupKey(group, key));
		for (const option of Array.from(split.options))
			if (option.value in counts)
				option.textContent = `${option.value} (${counts[option.value].size})`;
		element('title').textContent = this.profile.title;
	}

	/* The parts of the split, the largest first, to show one of them alone. */
	fillOnly() {
		const only = element('only');
		const sizes = new Map();
		const bySize = new Float64Array(this.profile.groups.length);

		only.textContent = '';
		element('only-label').hidden = this.filter.split === 'none';
		if (this.filter.split === 'none')
			return;
		const mask = this.profile.groupMask({ event: this.filter.event, split: 'none', only: null });

		for (let i = 0; i < this.profile.entryCount; i++) {
			if (!mask[this.profile.entryGroup[i]])
				continue;
			bySize[this.profile.entryGroup[i]] += this.profile.entrySamples[i];
		}
		this.profile.groups.forEach((group, i) => {
			const key = groupKey(group, this.filter.split);

			if (bySize[i])
				sizes.set(key, (sizes.get(key) || 0) + bySize[i]);
		});
		only.append(new Option('all', ''));
		this.parts = Array.from(sizes).sort((a, b) => b[1] - a[1]).slice(0, 500);
		this.parts.forEach(([key, size], i) => only.append(new Option(`${key}: ${countText(size)}`, i)));
	}

	listen() {
		const tabs = ['graph', 'tree', 'functions'];

		element('event').addEventListener('change', (e) => {
			this.filter.event = +e.target.value;
			this.filter.only = null;
			this.fillOnly();
			this.update();
		});
		element('split').addEventListener('change', (e) => {
			this.filter.split = e.target.value;
			this.filter.only = null;
			this.fillOnly();
			this.update();
		});
		element('only').addEventListener('change', (e) => {
			this.filter.only = e.target.value === '' ? null : this.parts[e.target.value][0];
			this.update();
		});
		element('flip').addEventListener('click', () => this.flip());
		element('reverse').addEventListener('click', () => this.reverse());
		element('theme').addEventListener('click', () => this.setTheme(this.theme === 'dark' ? 'light' : 'dark'));
		element('copy').addEventListener('click', () => this.copy());
		element('help').addEventListener('click', () => element('keys').showModal());
		element('heat-clear').addEventListener('click', () => this.heat.clear());
		element('heat-in').addEventListener('click', () => this.heat.zoomIn());
		element('heat-out').addEventListener('click', () => this.heat.zoomOut());
		element('sandwich-close').addEventListener('click', () => this.sandwich(-1));
		element('search').addEventListener('input', () => this.search());
		element('search').addEventListener('keydown', (e) => {
			if (e.key === 'Enter') {
				this.focusMain();
				this.graph.nextMatch(1);
			} else if (e.key === 'Escape') {
				e.target.value = '';
				this.search();
				this.focusMain();
			} else {
				return;
			}
			e.preventDefault();
			e.stopPropagation();
		});
		tabs.forEach((tab, i) => {
			element(`tab-${tab}`).addEventListener('click', () => this.show(tab));
			element(`tab-${tab}`).addEventListener('keydown', (e) => {
				const step = { ArrowLeft: 2, ArrowRight: 1 }[e.key];

				if (!step)
					return;
				this.show(tabs[(i + step) % 3]);
				element(`tab-${this.tab}`).focus();
				e.preventDefault();
			});
		});
		document.addEventListener('keydown', (e) => this.key(e));
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (e) =>
			this.setTheme(e.matches ? 'dark' : 'light'));
		window.addEventListener('beforeprint', () => this.beforePrint());
		window.addEventListener('afterprint', () => this.afterPrint());
	}

	key(e) {
		const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);

		if (e.ctrlKey || e.altKey || e.metaKey || typing || document.querySelector('dialog[open]'))
			return;
		switch (e.key) {
		case '/':
			element('search').focus();
			element('search').select();
			break;
		case '?':
			element('keys').showModal();
			break;
		case 'Escape':
			this.graph.zoomOut() || this.callers.zoomOut() || this.heat.clear() || this.sandwich(-1);
			break;
		case 'n':
			this.graph.nextMatch(1);
			break;
		case 'N':
			this.graph.nextMatch(-1);
			break;
		case 'i':
			this.flip();
			break;
		case 'r':
			this.reverse();
			break;
		case 'd':
			this.setTheme(this.theme === 'dark' ? 'light' : 'dark');
			break;
		case 'c':
			this.copy();
			break;
		case '1':
		case '2':
		case '3':
			this.show(['graph', 'tree', 'functions'][e.key - 1]);
			this.focusMain();
			break;
		default:
			return;
		}
		e.preventDefault();
	}

	focusMain() {
		if (this.tab === 'graph')
			this.graph.part.focus();
		else
			(this.tab === 'tree' ? this.treeGrid : this.functionGrid).scroll.focus();
	}

	/* Is all that was recorded looked at, as tests of a pair are of? */
	get isWhole() {
		return this.filter.only === null;
	}

	/* Everything anew, for another part of the recording. */
	update() {
		this.heat.show((from, to, step) => this.profile.timeline(this.filter, from, to, step));
		this.recount();
	}

	recount() {
		this.sums = this.profile.sum(this.filter);
		this.functionTable = null;
		this.arrange();
		this.search();
		this.facts();
		this.legend();
	}

	arrange() {
		const isSandwich = this.inSandwich >= 0;

		this.say('');
		/* what it told of may be gone */
		element('tooltip').hidden = true;
		element('sandwich-head').hidden = !isSandwich;
		this.callers.part.hidden = !isSandwich;
		element('flip').disabled = isSandwich;
		element('reverse').disabled = isSandwich;
		if (isSandwich) {
			this.callers.isFlame = true;
			this.graph.isFlame = false;
			this.callers.show(layoutCallersOf(this.profile, this.sums, this.inSandwich));
			this.graph.show(layoutCalleesOf(this.profile, this.sums, this.inSandwich));
			this.sandwichText();
		} else {
			this.graph.isFlame = !this.isIcicle;
			if (this.isReversed)
				this.graph.show(layoutCallers(this.profile, this.sums));
			else if (this.filter.split !== 'none')
				this.graph.show(layoutSplit(this.profile, this.filter, this.sums));
			else
				this.graph.show(layoutTree(this.profile, this.sums, this.isWhole));
		}
		this.graph.part.setAttribute('aria-label', isSandwich ? 'Callees' :
			this.isReversed ? 'Graph of callers' : this.isIcicle ? 'Icicle graph' : 'Flame graph');
		this.fillTables();
	}

	/* Made when they are first needed. */
	functionsNow() {
		this.functionTable = this.functionTable || this.profile.functions(this.sums);
		return this.functionTable;
	}

	fillTables() {
		if (this.tab === 'functions' && this.functionList.table !== this.functionsNow())
			this.functionList.show(this.functionTable);
		if (this.tab === 'tree' && this.treeList.layout !== this.graph.layout)
			this.treeList.show(this.graph.layout);
		this.functionGrid.fill();
		this.treeGrid.fill();
	}

	show(tab) {
		this.tab = tab;
		for (const each of ['graph', 'tree', 'functions']) {
			element(`panel-${each}`).hidden = each !== tab;
			element(`tab-${each}`).setAttribute('aria-selected', each === tab);
			element(`tab-${each}`).tabIndex = each === tab ? 0 : -1;
		}
		this.fillTables();
	}

	flip() {
		if (this.inSandwich >= 0)
			return;
		this.isIcicle = !this.isIcicle;
		element('flip').setAttribute('aria-pressed', this.isIcicle);
		this.arrange();
	}

	reverse() {
		if (this.inSandwich >= 0)
			return;
		this.isReversed = !this.isReversed;
		element('reverse').setAttribute('aria-pressed', this.isReversed);
		this.arrange();
		this.facts();
	}

	/* All callers and callees of a function; below 0: of none. True if there was one. */
	sandwich(func) {
		const wasOpen = this.inSandwich >= 0;

		if (func < 0 && !wasOpen)
			return false;
		this.inSandwich = func;
		if (func >= 0)
			this.show('graph');
		this.arrange();
		this.graph.part.focus();
		return wasOpen;
	}

	sandwichText() {
		const layout = this.graph.layout;

		element('sandwich-text').textContent = `${this.profile.names[this.inSandwich]}: ` +
			`${this.frameText(layout, 0, false)} in total, ` +
			/* its own where it calls itself as well */
			`${this.functionText(this.functionsNow(), this.inSandwich, true)} self; ` +
			'callers above, callees below';
	}

	selectTime(from, to, isFinal) {
		this.filter.from = from;
		this.filter.to = to;
		this.isDragged = !isFinal;
		this.heatText();
		/* while dragging as often as it can be drawn */
		if (isFinal) {
			this.recount();
		} else if (!this.isRecounting) {
			this.isRecounting = true;
			requestAnimationFrame(() => {
				this.isRecounting = false;
				this.recount();
			});
		}
	}

	heatText() {
		const cell = this.heat.step * this.profile.width / 1000;
		const cells = `a column is ${timeText(this.heat.rows * cell)}, a cell ${timeText(cell)} ` +
			`with at most ${samplesText(this.heat.most)}`;

		element('heat-text').textContent = this.heat.isSelected ? `Time: ${this.heat.rangeText()}; ${cells}` :
			`Samples over time: ${cells}; drag to select`;
		element('heat-clear').hidden = !this.heat.isSelected;
		element('heat-in').hidden = !this.heat.canZoomIn;
		element('heat-out').hidden = !this.heat.isZoomed;
	}

	search() {
		const text = element('search').value;
		let note = '';
		let expression;

		this.found = null;
		if (text) {
			/* capitals are looked for where there are any */
			const flags = text === text.toLowerCase() ? 'iu' : 'u';

			try {
				expression = new RegExp(text, flags);
			} catch {
				expression = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), flags);
				note = ' (as plain text)';
			}
			this.found = this.profile.search(expression, this.sums);
			element('found').textContent = `${this.shareText(this.found.weight, (slices, part) => this.addFound(slices, part))} in ` +
				`${countText(this.found.count)} function${this.found.count === 1 ? '' : 's'}${note}`;
		} else {
			element('found').textContent = '';
		}
		this.graph.found = this.callers.found = this.found ? this.found.found : null;
		this.graph.draw();
		this.callers.draw();
		this.functionGrid.fill();
		this.treeGrid.fill();
	}

	addFound(slices, part) {
		for (let i = 1; i < this.profile.count; i++)
			if (this.found.covered[i] === TOPMOST && this.sums.samples[i] > 0)
				slices.addNode(part, i, false, null);
	}

	facts() {
		const event = this.profile.events[this.filter.event];
		const seconds = this.heat.isSelected ?
			(this.filter.to - this.filter.from) * this.profile.width / 1000 :
			(this.profile.end - this.profile.start) / 1000;
		const parts = [`${samplesText(this.sums.samples[0])} of ${event.source}` +
			(event.source === event.event ? '' : ` counted as ${event.event}`)];

		if (this.profile.diff) {
			const before = this.profile.events[this.profile.diff.before];

			element('facts').textContent = `${samplesText(before.samples)} before, ` +
				`${samplesText(event.samples)} after, of ${event.source}` +
				`${event.source === event.event ? '' : ` counted as ${event.event}`} · ` +
				'a width is the mean of both shares' +
				(this.profile.diff.untested ? ` · ${this.profile.diff.untested}` : '') +
				(this.profile.isCut ? ' · a file was cut off' : '');
			element('heat-part').hidden = true;
			return;
		}
		if (event.unit === 'nanoseconds' && this.sums.weight !== this.sums.samples)
			parts.push(`${secondsText(this.sums.weight[0] / 1e9)} of CPU time`);
		parts.push(`${secondsText(seconds)} from ${dateText(this.heat.isSelected ?
			this.profile.origin + this.filter.from * this.profile.width : this.profile.start)}`);
		/* known of all alone */
		if (event.complete !== undefined && event.samples === this.sums.samples[0])
			parts.push(`${(100 * event.complete / event.samples).toFixed(1)} % of stacks complete, ` +
				`${(100 * event.named / event.samples).toFixed(1)} % named, ` +
				`${countText(event.lost)} lost`);
		if (this.profile.isCut)
			parts.push('the file was cut off');
		if (this.isReversed && this.graph.layout.isCut)
			parts.push(`paths of less than ${100 * LEAST_SHARE} % are not followed to their end`);
		element('facts').textContent = parts.join(' · ');
		this.heatText();
		element('heat-part').hidden = this.profile.buckets < 2;
	}

	/* Of a pair both shares, and what was found where that was tested. */
	changeText(layout, i) {
		const all = this.sums.weight[0] || 1;
		const [before, after] = beforeAfter(layout.weight[i] / all, layout.change[i] / all);
		const change = (100 * (after - before)).toFixed(2);
		const text = `${(100 * before).toFixed(2)} % before, ${(100 * after).toFixed(2)} % after: ` +
			`${change >= 0 ? '+' : ''}${change}`;

		if (!layout.isTested || layout.func[i] < 0)
			return text;
		switch (layout.verdict[i]) {
		case VERDICT_GREW:
			return `${text} ± ${(100 * layout.error[i]).toFixed(2)}, grew`;
		case VERDICT_SHRANK:
			return `${text} ± ${(100 * layout.error[i]).toFixed(2)}, ${after > 0 ? 'shrank' : 'vanished'}`;
		case VERDICT_SAME:
			return `${text} ± ${(100 * layout.error[i]).toFixed(2)}, no significant change`;
		default:
			return `${text}, not tested${this.profile.diff.untested ? '' : ': too few samples'}`;
		}
	}

	/* Of what is looked at now; made when it is first needed. */
	slicesNow() {
		this.sums.slices = this.sums.slices || new Slices(this.profile, this.sums);
		return this.sums.slices;
	}

	/* A share and the error of what @addTo adds, see Slices; while the time is dragged without, as slices take longer than a frame. */
	shareText(weight, addTo) {
		const all = this.sums.weight[0];

		if (this.profile.diff)
			return `${percentText(weight, all)} (mean of both)`;
		const error = weight > 0 && weight < all && !this.isDragged ? this.slicesNow().error(addTo) : -1;

		return percentText(weight, all) + (error > 0 ? ` ± ${(100 * error).toFixed(2)}` : '');
	}

	/* Of a frame of a layout, with all that it stands below or alone; once it is known it stays. */
	frameText(layout, i, isSelf) {
		const known = layout.texts = layout.texts || [new Map(), new Map()];
		const texts = known[isSelf ? 1 : 0];

		if (!texts.has(i))
			texts.set(i, this.shareText((isSelf ? layout.selfWeight : layout.weight)[i],
				(slices, part) => layout.addTo(slices, part, i, isSelf)));
		return texts.get(i);
	}

	/* The same of a function. */
	functionText(table, func, isSelf) {
		const known = table.texts = table.texts || [new Map(), new Map()];
		const texts = known[isSelf ? 1 : 0];

		if (!texts.has(func))
			texts.set(func, this.shareText((isSelf ? table.selfWeight : table.weight)[func],
				(slices, part) => slices.addFunction(part, func, isSelf)));
		return texts.get(func);
	}

	describe(graph, i) {
		const layout = graph.layout;
		const func = layout.func[i];
		const file = func < 0 ? '' : this.profile.files[func];

		if (this.profile.diff)
			return `${layout.name(i, this.profile)}${file ? `, ${file}` : ''}: ` +
				`${this.changeText(layout, i)}, level ${layout.level(i) + 1}`;
		return `${layout.name(i, this.profile)}${file ? `, ${file}` : ''}: ` +
			`${this.frameText(layout, i, false)}, ` +
			`${samplesText(layout.samples[i])}, ` +
			`${CLASS_NAMES[layout.kind[i]]}, level ${layout.level(i) + 1}`;
	}

	say(text) {
		element('status').textContent = text;
	}

	hover(graph, i, x, y) {
		const tooltip = element('tooltip');

		tooltip.hidden = i < 0;
		if (i < 0)
			return;
		if (this.hovered !== i || this.hoveredIn !== graph.layout)
			this.fillTooltip(graph, i);
		this.hovered = i;
		this.hoveredIn = graph.layout;
		this.placeTooltip(tooltip, x, y);
	}

	/* A cell of the heat map; no @text: none. */
	hoverTime(text, samples, x, y) {
		const tooltip = element('tooltip');

		tooltip.hidden = !text;
		this.hovered = -1;
		if (!text)
			return;
		this.putTooltip(tooltip, text, [['numbers', samplesText(samples)]]);
		this.placeTooltip(tooltip, x, y);
	}

	placeTooltip(tooltip, x, y) {
		const box = tooltip.getBoundingClientRect();
		const left = Math.min(x + 14, window.innerWidth - box.width - 8);
		const top = y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18;

		tooltip.style.left = `${Math.max(left, 4)}px`;
		tooltip.style.top = `${Math.max(top, 4)}px`;
	}

	fillTooltip(graph, i) {
		const tooltip = element('tooltip');
		const layout = graph.layout;
		const func = layout.func[i];
		const lines = [];

		if (func >= 0) {
			const where = [CLASS_NAMES[layout.kind[i]], this.profile.files[func],
				this.profile.sources[func]];

			lines.push(['where', where.filter((text) => text).join(' · ')]);
		}
		if (this.profile.diff) {
			lines.push(['numbers', this.changeText(layout, i)]);
			this.putTooltip(tooltip, layout.name(i, this.profile), lines);
			return;
		}
		lines.push(['numbers', `${this.frameText(layout, i, false)} of all, ` +
			samplesText(layout.samples[i])]);
		lines.push(['numbers', `${this.frameText(layout, i, true)} self, ` +
			samplesText(layout.selfSamples[i])]);
		if (i) {
			const parent = layout.parent[i];

			lines.push(['numbers', `${percentText(layout.weight[i], layout.weight[parent])} of ` +
				`${layout.name(parent, this.profile).slice(0, 60)}`]);
		}
		this.putTooltip(tooltip, layout.name(i, this.profile), lines);
	}

	putTooltip(tooltip, title, lines) {
		const name = document.createElement('b');

		tooltip.textContent = '';
		name.textContent = title;
		tooltip.append(name);
		for (const [kind, text] of lines) {
			const line = document.createElement('div');

			line.className = kind;
			line.textContent = text;
			tooltip.append(line);
		}
	}

	setTheme(theme) {
		this.theme = theme;
		document.documentElement.dataset.theme = theme;
		element('theme').setAttribute('aria-pressed', theme === 'dark');
		for (const part of [this.graph, this.callers, this.heat, this.functionGrid, this.treeGrid])
			part.theme = theme;
		this.legend();
		this.graph.draw();
		this.callers.draw();
		this.heat.draw();
		this.functionGrid.fill();
		if (this.treeList.layout)
			this.treeGrid.fill();
	}

	/* What the colours mean, and how much of what ran is of each. */
	legend() {
		const list = element('legend');
		const seen = new Set(this.profile.classes);

		if (!this.sums)
			return;
		if (this.profile.nodeClass.includes(CLASS_INLINED))
			seen.add(CLASS_INLINED);
		const shares = this.profile.shares(this.sums);

		list.textContent = '';
		if (this.profile.diff) {
			this.legendOfChanges(list);
			return;
		}
		for (const kind of [CLASS_NATIVE, CLASS_KERNEL, CLASS_INLINED, CLASS_MANAGED, CLASS_UNNAMED]) {
			if (!seen.has(kind))
				continue;
			const item = document.createElement('li');
			const mark = document.createElement('canvas');
			const context = mark.getContext('2d');

			mark.width = mark.height = 12;
			context.fillStyle = PALETTES[this.theme].classes[kind][0];
			context.fillRect(0, 0, 12, 12);
			item.append(mark, `${CLASS_NAMES[kind]} ${(100 * shares[kind] /
				Math.max(this.sums.weight[0], 1)).toFixed(1)} %`);
			item.title = `Share of what ran: ${CLASS_NAMES[kind]}`;
			list.append(item);
		}
	}

	legendOfChanges(list) {
		const colours = CHANGES[this.theme];
		const isTested = this.graph.layout && this.graph.layout.isTested;

		for (const [colour, text] of [[colours.grew[2], 'grew, or new'], [colours.shrank[2], 'shrank, or vanished'],
			[colours.same, isTested ? 'no significant change' : 'no change; parts and callers are not tested ' +
				'for significance']]) {
			const item = document.createElement('li');
			const mark = document.createElement('canvas');
			const context = mark.getContext('2d');

			mark.width = mark.height = 12;
			context.fillStyle = colour;
			context.fillRect(0, 0, 12, 12);
			item.append(mark, text);
			list.append(item);
		}
	}

	/* What is shown below the frame that is zoomed to, one line per stack. */
	folded() {
		const layout = this.graph.layout;
		const lines = [];
		const root = this.graph.zoomed;
		const inside = new Uint8Array(layout.count);

		inside[root] = 1;
		for (let i = root; i < layout.count; i++) {
			inside[i] = i === root || inside[layout.parent[i]] ? 1 : 0;
			if (!inside[i] || !(layout.selfSamples[i] > 0))
				continue;
			const names = [];

			for (let n = i; n > 0 && names.length < 2000; n = layout.parent[n])
				names.push(layout.name(n, this.profile).replaceAll(';', ':'));
			lines.push(`${names.reverse().join(';') || 'all'} ${layout.selfSamples[i]}`);
			if (lines.length >= 200000)
				break;
		}
		return lines.join('\n') + '\n';
	}

	async copy() {
		const text = this.folded();
		const dialog = element('text');

		try {
			await navigator.clipboard.writeText(text);
			this.say(`Copied ${countText(text.split('\n').length - 1)} folded stacks`);
		} catch {
			/* a browser that does not let a page do that: by hand */
			dialog.querySelector('textarea').value = text;
			dialog.showModal();
			dialog.querySelector('textarea').select();
		}
	}

	/* Ink on paper: light, and as much of the graph as a page has room for. */
	beforePrint() {
		this.printed = this.theme;
		this.setTheme('light');
		this.graph.print(PAPER);
		this.callers.print(PAPER);
	}

	afterPrint() {
		this.graph.print(0);
		this.callers.print(0);
		this.setTheme(this.printed);
	}
}

function element(id) {
	return document.getElementById(id);
}

function secondsText(seconds) {
	if (seconds >= 7200)
		return `${(seconds / 3600).toFixed(1)} h`;
	if (seconds >= 180)
		return `${(seconds / 60).toFixed(1)} min`;
	return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${(seconds * 1000).toFixed(0)} ms`;
}

function dateText(ms) {
	const date = new Date(ms);

	return Number.isNaN(date.getTime()) ? 'an unknown time' :
		date.toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC');
}

{
	const part = element('data');
	const data = JSON.parse(part.textContent);

	part.remove();
	window.stacktap = new App(data);
	/* behind the frame that draws it */
	requestAnimationFrame(() => {
		window.stacktap.readyTime = performance.now();
	});
}
