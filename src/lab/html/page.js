/* What the lab's page does when asked: filters, sorts, moves by keyboard, and shows the evidence behind a cell. All it
 * knows is in the page. Texts may come out of a box: they become text nodes, never markup. */
'use strict';
(() => {
  const lab = JSON.parse(document.getElementById('lab').textContent);
  const $ = id => document.getElementById(id);
  const matrix = $('matrix'), sheet = $('sheet'), tip = $('tip');
  const controls = new Map(lab.controls.map(c => [c.name, c])), probes = new Map(lab.probes.map(p => [p.id, p]));

  /* Controls of the screen, and marks that turn the direction of writing. */
  const steering = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  const clean = text => String(text).replace(steering, '\ufffd');

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (typeof value === 'function') node[name] = value;
      else node.setAttribute(name, value);
    node.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== '')
      .map(c => c instanceof Node ? c : clean(c)));
    return node;
  }

  /* ---------------------------------------------------------------- words */

  const names = {
    stopped: 'stopped', stopped_too: 'stopped too', stopped_alone: 'stopped alone', together: 'together', through: 'through', untestable: 'untestable',
  };
  /* What a word says of a control, with what was seen without it. */
  const sentences = {
    stopped: (c, fell) => `${c} alone stops it` +
      (fell ? `, and nothing else here does: without ${c} it gets through.` : '.'),
    stopped_too: c => `${c} alone stops it. So do others: without ${c} it is still stopped.`,
    stopped_alone: c => `${c} stops it where nothing else is on. In the company of some others it does not.`,
    together: (c, fell) => `${c} alone does not stop it, but together with others it does` +
      (fell ? `: without ${c} it gets through.` : `. Without ${c}, others still stop it.`),
    through: c => `${c} does nothing against it: alone it lets it through, and without it nothing changes.`,
    untestable: () => 'This host cannot tell.',
  };
  const verdicts = {
    counts: 'It counts: through with everything off, stopped with everything on.',
    void: 'It is void, and proves nothing here.',
    untestable: 'This host cannot tell.',
    mayfly: 'Stopped by how mayfly is built: there is no control to switch off.',
    must_pass: 'No attack: it must get through with everything on.',
  };
  /* A name out of the JSON may be one of Object's own. */
  const own = (object, key) => object && Object.hasOwn(object, key) ? object[key] : undefined;
  const word = (probe, control) => own(probe.matrix, control);
  function sentence(probe, control) {
    const says = sentences[word(probe, control)];
    return says ? says(control, own(probe.cells.without, control)?.result === 'through') : 'Not tried.';
  }
  const takesPart = (probe, control) => ['stopped', 'stopped_too', 'stopped_alone', 'together'].includes(word(probe, control));
  const redundancy = probe => probe.verdict === 'counts' ? probe.redundancy ?? null : null;
  const sets = probe => probe.minimal.length ? probe.minimal.map(set => set.join(' + ')).join(' or ') : 'none found';

  /* ---------------------------------------------------------------- the sheet: evidence */

  function attempt(cell) {
    if (!cell) return 'not tried';
    const host = cell.host ? `On the host afterwards: ${cell.host}` : 'The host was as before';
    const ms = typeof cell.ms === 'number' ? ` · ${cell.ms.toFixed(1)} ms` : '';
    return [el('span', {class: 'r ' + cell.result}, cell.result), ' ', cell.call ? el('code', {}, cell.call) : '', ' ',
      cell.errno ? el('code', {}, cell.errno) : '', cell.detail ? el('small', {}, cell.detail) : '',
      cell.result === 'untestable' ? '' : el('small', {}, host, ms),
      cell.explain ? el('small', {}, cell.explain) : ''];
  }

  function table(head, rows) {
    const label = i => head ? {'data-label': head[i + 1]} : {};
    return el('table', {},
      head ? el('thead', {}, el('tr', {}, head.map(h => el('th', {scope: 'col'}, h)))) : '',
      el('tbody', {}, rows.map(([title, ...cells]) =>
        el('tr', {}, el('th', {scope: 'row'}, title), cells.map((c, i) => el('td', label(i), c))))));
  }

  const facts = pairs => el('dl', {}, pairs.filter(([, value]) => ![null, undefined, ''].includes(value))
    .map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
  const button = (text, onclick) => el('button', {type: 'button', onclick}, text);
  const links = (...buttons) => el('div', {class: 'links'}, buttons);

  /* `place` is what the address ends in, so that one can send it to somebody. */
  function show(place, kicker, title, ...content) {
    const close = button('Close', () => sheet.close());
    const top = el('div', {}, el('p', {class: 'kicker'}, kicker), el('h2', {id: 'sheet-title'}, title));
    $('sheet-body').replaceChildren(el('div', {class: 'top'}, top, close), ...content.flat().filter(Boolean));
    if (!sheet.open) sheet.showModal();
    sheet.scrollTop = 0;
    close.focus();
    tip.hidden = true;
    history.replaceState(null, '', '#' + place.map(encodeURIComponent).join('/'));
  }

  const setTitle = set => set.off ? `Without ${set.off.join(', ')}` : `Only ${(set.on || []).join(', ')}`;
  /* Where the control was on, in company, and it got through. */
  const passed = (p, name) => (p.cells.sets || []).filter(set => set.result === 'through' &&
    (set.off ? !set.off.includes(name) : (set.on || []).includes(name)));

  function showCell(p, name) {
    const cells = p.cells, is = word(p, name);
    show([p.id, name], `${p.id} × ${name}`, p.title,
      el('p', {class: 'verdict'}, el('b', {class: 'm ' + (is || 'none')}, names[is] || 'not tried'), sentence(p, name)),
      table(null, [
        ['Everything on', attempt(cells.allOn)],
        [`Without ${name}`, attempt(own(cells.without, name))],
        [`${name} alone`, attempt(own(cells.only, name))],
        ...(is === 'stopped_alone' ? passed(p, name).map(set => [setTitle(set), attempt(set)]) : []),
        ['Everything off', attempt(cells.allOff)],
      ]),
      facts([['Stopped by', sets(p)], ['Redundancy', redundancy(p)], [`What ${name} is`, controls.get(name).summary]]),
      links(button(`All about ${p.id}`, () => showProbe(p)), button(`All about ${name}`, () => showControl(name))));
  }

  function showProbe(p) {
    const cells = p.cells, peers = lab.peers || [];
    const tried = lab.controls.map(c => c.name).filter(name => own(cells.without, name) || own(cells.only, name));
    show([p.id], `${p.id} · ${p.family}`, p.title,
      el('p', {class: 'verdict'}, verdicts[p.verdict], ' ', p.why),
      facts([['Echoes', p.echo], ['Expected', p.expected.join(', ')], ['Seen inside', p.sees.join(' or ')],
        ['Smallest sets', sets(p)], ['Redundancy', redundancy(p)]]),
      el('h3', {}, 'All or nothing'),
      table(null, [['Everything on', attempt(cells.allOn)], ['Everything off', attempt(cells.allOff)],
        ...(cells.sets || []).map(set => [setTitle(set), attempt(set)])]),
      peers.length > 0 && [el('h3', {}, 'In others'),
        table(null, peers.map(peer => [peer.name, attempt(own(peer.cells, p.id))]))],
      tried.length > 0 && [el('h3', {}, 'Control by control'), table(['Control', 'Without it', 'It alone'],
        tried.map(name => [el('span', {class: 'm ' + word(p, name)}, name), attempt(own(cells.without, name)),
          attempt(own(cells.only, name))]))]);
  }

  function listed(of, ids) {
    return ids.length > 0 && [el('h3', {}, el('span', {class: 'm ' + of}, `${names[of]}: ${ids.length}`)),
      el('ul', {}, ids.map(id => el('li', {}, el('b', {}, id), ' ', probes.get(id)?.title)))];
  }

  function showControl(name) {
    const c = controls.get(name), us = value => typeof value === 'number' ? `${value.toFixed(1)} µs` : null;
    show([name], 'control', name,
      el('p', {class: 'verdict'}, c.summary),
      facts([['Without it', c.without], ['Source', c.source], ['Its rows', us(c.price?.rowsUs)],
        ['A run', us(c.price?.runUs)], ['Not available', c.available ? null : c.why || 'on this host'],
        ['Stops nothing', c.stopsNothing]]),
      listed('stopped', c.sole), listed('stopped_too', c.backs), listed('together', c.needed),
      links(button('Show its probes in the matrix', () => {
        sheet.close();
        reset({control: name});
      })));
  }

  sheet.addEventListener('click', e => e.target === sheet && sheet.close());
  sheet.addEventListener('close', () => history.replaceState(null, '', location.pathname + location.search));

  /* ---------------------------------------------------------------- filters and order */

  const head = matrix.tHead.rows[0];
  const rows = [...matrix.querySelectorAll('tr[data-p]')].map(tr => {
    const p = lab.probes[Number(tr.dataset.p)];
    const text = [p.id, p.title, p.echo, p.family, ...p.expected, ...p.sees].join(' ').toLowerCase();
    return {tr, p, text, home: tr.parentNode};
  });
  const cellsOf = new Map([head, ...rows.map(row => row.tr)].map(tr => [tr, [...tr.cells]]));
  const fields = ['find', 'family', 'control', 'word', 'verdict', 'sort', 'columns'].map($);

  /* With a control it is its word that counts; with no word then, any by which it takes part. */
  function fits({p, text}, want) {
    if (!want.find.every(part => text.includes(part))) return false;
    if (want.family && p.family !== want.family || want.verdict && p.verdict !== want.verdict) return false;
    if (want.control) return want.word ? word(p, want.control) === want.word : takesPart(p, want.control);
    return !want.word || Object.values(p.matrix).includes(want.word);
  }

  function filter() {
    const want = Object.fromEntries(fields.map(f => [f.id, f.value]));
    want.find = want.find.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.tr.classList.toggle('out', !fits(row, want));
    const n = rows.filter(row => !row.tr.classList.contains('out')).length;
    const count = n === rows.length ? `All ${n} probes` : `${n} of ${rows.length} probes`;
    const part = want.word ? `is “${names[want.word]}” there` : 'takes part in stopping them';
    $('shown').textContent = !n ? 'No probe fits. Clear the filters to see all.'
      : clean(want.control ? `${count}: ${want.control} ${part}` : count);
    $('clear').disabled = fields.every(f => !f.value);
    rove(null);
  }

  /* To lay thousands of cells out again takes a while, so only where the order is another. */
  const order = {sort: '', columns: ''};
  const asBefore = what => order[what] === $(what).value || (order[what] = $(what).value, false);

  function sort() {
    if (asBefore('sort')) return;
    const by = {
      least: (a, b) => (redundancy(a.p) ?? Infinity) - (redundancy(b.p) ?? Infinity) || 0,
      most: (a, b) => (redundancy(b.p) ?? -1) - (redundancy(a.p) ?? -1),
      title: (a, b) => a.p.title.localeCompare(b.p.title),
    }[$('sort').value];
    matrix.classList.toggle('flat', Boolean(by));
    for (const {tr, home} of by ? [...rows].sort(by) : rows) (by ? matrix.tBodies[0] : home).append(tr);
  }

  function columns() {
    if (asBefore('columns')) return;
    const bought = c => [c.sole.length, c.needed.length, c.backs.length];
    const by = {
      buys: (a, b) => bought(b).reduce((d, n, i) => d || n - bought(a)[i], 0),
      price: (a, b) => (b.price?.runUs ?? -1e9) - (a.price?.runUs ?? -1e9),
      name: (a, b) => a.name.localeCompare(b.name),
    }[$('columns').value];
    const sorted = by ? [...lab.controls].sort(by) : lab.controls;
    const places = sorted.map(c => lab.controls.indexOf(c) + 1);
    for (const [tr, cells] of cellsOf)
      for (const place of places) tr.insertBefore(cells[place], cells.at(-1));
  }

  function reset(to = {}) {
    for (const f of fields) f.value = own(to, f.id) || '';
    sort();
    columns();
    filter();
  }

  /* ---------------------------------------------------------------- the grid: one stop of the tab key */

  let here = null;
  const visible = cell => cell && cell.offsetParent !== null;
  const cellAt = e => e.target.closest('tr:not(.family) > *');

  function rove(to) {
    const next = to || (visible(here) ? here : rows.flatMap(row => cellsOf.get(row.tr)).find(visible));
    here?.removeAttribute('tabindex');
    here = next || null;
    if (here) here.tabIndex = 0;
  }
  function along(cell, way) {
    do cell = cell[way]; while (cell && !visible(cell));
    return cell;
  }
  function across(cell, by) {
    const lines = [...matrix.rows].filter(tr => visible(tr) && !tr.classList.contains('family'));
    const to = Math.max(0, Math.min(lines.length - 1, lines.indexOf(cell.parentNode) + by));
    const there = lines[to].cells[cell.cellIndex];
    return visible(there) ? there : [...lines[to].cells].find(visible);
  }
  const moves = {
    ArrowRight: cell => along(cell, 'nextElementSibling'),
    ArrowLeft: cell => along(cell, 'previousElementSibling'),
    ArrowDown: cell => across(cell, 1),
    ArrowUp: cell => across(cell, -1),
    PageDown: cell => across(cell, 10),
    PageUp: cell => across(cell, -10),
    Home: cell => [...cell.parentNode.cells].find(visible),
    End: cell => [...cell.parentNode.cells].findLast(visible),
  };

  /* What a cell is about: its probe or undefined, its control or undefined. */
  function about(cell) {
    const column = cellsOf.get(cell.parentNode).indexOf(cell) - 1;
    return [lab.probes[Number(cell.parentNode.dataset.p)], lab.controls[column]?.name];
  }
  function open(cell) {
    const [p, name] = about(cell);
    if (p && name !== undefined) showCell(p, name);
    else if (p) showProbe(p);
    else if (name !== undefined) showControl(name);
  }

  matrix.addEventListener('keydown', e => {
    const cell = cellAt(e);
    if (!cell || e.altKey || e.ctrlKey || e.metaKey) return;
    if (e.key === 'Enter' || e.key === ' ') open(cell);
    else if (e.key === 'Escape') tip.hidden = true;
    else if (moves[e.key]) {
      const to = moves[e.key](cell);
      if (to) rove(to);
      to?.focus();
    } else return;
    e.preventDefault();
  });
  matrix.addEventListener('click', e => {
    const cell = cellAt(e);
    if (!cell || String(getSelection())) return; /* a text was marked */
    rove(cell);
    cell.focus({preventScroll: true});
    open(cell);
  });

  /* ---------------------------------------------------------------- what one points at */

  const cols = [...matrix.querySelectorAll('col')];
  let hot = [];

  function point(cell) {
    hot.forEach(node => node.classList.remove('hot'));
    hot = [];
    tip.hidden = true;
    const [p, name] = cell ? about(cell) : [];
    if (name === undefined || matchMedia('(max-width: 40rem)').matches) return;
    hot = [cols[cell.cellIndex], head.cells[cell.cellIndex]];
    hot.forEach(node => node.classList.add('hot'));
    tip.textContent = clean(p ? `${p.id} × ${name}: ${sentence(p, name)}` : `${name}: ${controls.get(name).summary}`);
    tip.hidden = false;
    const at = cell.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const below = at.bottom + 8 + size.height < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
    tip.style.top = `${below ? at.bottom + 8 : at.top - size.height - 8}px`;
  }
  matrix.addEventListener('pointerover', e => e.pointerType === 'mouse' && point(cellAt(e)));
  matrix.addEventListener('pointerleave', () => point(null));
  matrix.addEventListener('focusin', e => e.target.matches(':focus-visible') && point(cellAt(e)));
  matrix.addEventListener('focusout', () => point(null));

  /* ---------------------------------------------------------------- start */

  const option = (id, value, text) => $(id).append(el('option', {value}, text));
  lab.families.forEach(f => option('family', f.name, f.title));
  lab.controls.forEach(c => option('control', c.name, c.name));
  Object.entries(names).forEach(([value, text]) => option('word', value, text));
  document.querySelectorAll('.tally li').forEach(li => option('verdict', li.dataset.verdict, li.lastChild.data.trim()));

  document.body.classList.add('live');
  document.querySelectorAll('.tools, .hint').forEach(node => { node.hidden = false; });
  matrix.setAttribute('role', 'grid');
  $('find').addEventListener('input', filter);
  const only = document.querySelector('.only');
  if (only) {
    only.hidden = false;
    only.firstChild.addEventListener('change', e =>
      document.querySelector('.peers').classList.toggle('differing', e.target.checked));
  }
  $('sort').addEventListener('change', sort);
  $('columns').addEventListener('change', columns);
  fields.slice(1).forEach(f => f.addEventListener('change', filter));
  $('clear').addEventListener('click', () => {
    reset();
    $('find').focus();
  });
  reset();

  const [first, second] = location.hash.slice(1).split('/').map(part => {
    try {
      return decodeURIComponent(part);
    } catch {
      return '';
    }
  });
  if (probes.has(first) && controls.has(second)) showCell(probes.get(first), second);
  else if (probes.has(first)) showProbe(probes.get(first));
  else if (controls.has(first)) showControl(first);
})();
