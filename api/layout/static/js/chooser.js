// A dialog in which one of many is chosen by a few letters: the finder of files,
// and the palette.
function element(name, attributes, text) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
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
        const li = element('li', { role: 'option', id: id + i, 'data-href': row.href, 'aria-selected': 'false' });
        li.append(...row.nodes);
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
  dialog.append(box, list);
  document.body.append(dialog);
  return () => {
    if (!dialog.open) dialog.showModal();
    wanted = false;
    box.select();
    fill();
  };
}
