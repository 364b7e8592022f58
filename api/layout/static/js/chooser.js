// A dialog in which one of many is chosen by a few letters: the finder of files,
// and the palette.
function element(name, attributes, text) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
}

// lit makes the letters of a text that somebody typed bold: where they stand together, or else
// one by one.
function lit(node, typed) {
  const words = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), low = typed.toLowerCase(), nodes = [];
  for (let n; (n = words.nextNode());) nodes.push(n);
  const text = nodes.map(n => n.data).join('').toLowerCase(), at = text.indexOf(low), on = new Set();
  for (let i = 0, from = Math.max(at, 0); i < low.length; i++) { from = text.indexOf(low[i], from); if (from < 0) return; on.add(from++); }
  let offset = 0;
  for (const n of nodes) {
    const parts = [];
    for (const letter of n.data) { const b = on.has(offset), last = parts.at(-1); if (last && last[0] === b) last[1] += letter; else parts.push([b, letter]); offset += letter.length; }
    n.replaceWith(...parts.map(([b, part]) => b ? element('b', {}, part) : part));
  }
}

// withoutLine parts a line from the letters of a path: srvrc:120 is srvrc, and the end of an
// address that leads there.
export function withoutLine(typed) {
  const [, letters, line] = typed.match(/^(.*?)(?::(\d*))?$/);
  return [letters, line ? '#L' + line : ''];
}

// chooser makes a dialog and returns what opens it. ask gives the rows for what has
// been typed: {href, nodes, kind}.
export function chooser(id, label, ask) {
  const dialog = element('dialog', { id, class: 'chooser', 'aria-label': label });
  const box = element('input', { type: 'text', role: 'combobox', 'aria-label': label, 'aria-controls': id + 'List', 'aria-expanded': 'true', 'aria-autocomplete': 'list', autocomplete: 'off', spellcheck: 'false', placeholder: label });
  const list = element('ul', { id: id + 'List', role: 'listbox', 'aria-label': label });
  let running = null, at = 0, wanted = false; // wanted: Enter came before the rows of what was typed

  const choose = i => {
    const all = [...list.children];
    at = Math.max(0, Math.min(all.length - 1, i));
    all.forEach((e, n) => e.setAttribute('aria-selected', n === at));
    if (!all[at]) { box.removeAttribute('aria-activedescendant'); return; }
    box.setAttribute('aria-activedescendant', all[at].id);
    all[at].scrollIntoView({ block: 'nearest' });
  };
  const fill = async () => {
    if (running) running.abort();
    const mine = running = new AbortController(), typed = box.value;
    try {
      const rows = await ask(typed, mine.signal);
      if (mine.signal.aborted) return;
      list.replaceChildren(...rows.map((row, i) => {
        const li = element('li', { role: 'option', id: id + i, 'data-href': row.href, 'aria-selected': 'false', class: i && row.group !== rows[i - 1].group ? 'apart' : '' }), name = element('span', {});
        name.append(...row.nodes);
        if (typed && row.group !== 'search' && !name.querySelector('mark')) lit(name, withoutLine(typed)[0]);
        li.append(name);
        if (row.kind) li.append(element('span', { class: 'dim' }, row.kind));
        return li;
      }));
      choose(0);
      dialog.dataset.query = typed;
      if (wanted) go(list.children[at]);
    } catch { /* the list stays */ }
  };
  const go = option => { if (option) location.href = option.dataset.href; };

  box.addEventListener('input', () => { wanted = false; fill(); });
  box.addEventListener('keydown', e => {
    if (e.key === 'ArrowDown') choose(at + 1);
    else if (e.key === 'ArrowUp') choose(at - 1);
    else if (e.key === 'Enter' && dialog.dataset.query !== box.value) wanted = true;
    else if (e.key === 'Enter') go(list.children[at]);
    else return;
    e.preventDefault();
  });
  list.addEventListener('click', e => go(e.target.closest('li')));
  dialog.append(box, list, element('p', {}, '↑ ↓ choose · Enter opens · Esc closes'));
  document.body.append(dialog);
  return () => {
    if (!dialog.open) dialog.showModal();
    wanted = false;
    box.select();
    fill();
  };
}
