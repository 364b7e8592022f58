// The finder: a file of the repository by a few letters of its path.
import { keys } from './keys.js';
import { fetchPart, parse } from './part.js';

let dialog = null;

// element makes an element with attributes and a text.
function element(name, attributes, text) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
}

function make(url) {
  dialog = element('dialog', { id: 'finder', 'aria-label': 'Find a file' });
  const box = element('input', { type: 'text', role: 'combobox', 'aria-label': 'Letters of the path', 'aria-controls': 'finds', 'aria-expanded': 'true', 'aria-autocomplete': 'list', autocomplete: 'off', spellcheck: 'false', placeholder: 'Letters of the path' });
  const list = element('ul', { id: 'finds', role: 'listbox', 'aria-label': 'Files' });
  let running = null, at = 0;
  const choose = i => {
    const all = [...list.children];
    at = Math.max(0, Math.min(all.length - 1, i));
    all.forEach((e, n) => e.setAttribute('aria-selected', n === at));
    if (!all[at]) { box.removeAttribute('aria-activedescendant'); return; }
    box.setAttribute('aria-activedescendant', all[at].id);
    all[at].scrollIntoView({ block: 'nearest' });
  };
  const ask = async () => {
    if (running) running.abort();
    const mine = running = new AbortController();
    try {
      const from = parse(await fetchPart(url + '?' + new URLSearchParams({ query: box.value }), 'find', mine.signal));
      if (mine.signal.aborted) return;
      list.replaceChildren(...[...from.querySelectorAll('.finds a')].map((a, i) => {
        const li = element('li', { role: 'option', id: 'find' + i, 'data-href': a.getAttribute('href'), 'aria-selected': 'false' });
        li.append(...a.childNodes);
        return li;
      }));
      choose(0);
      dialog.dataset.query = box.value;
    } catch { /* the list stays */ }
  };
  const go = option => { if (option) location.href = option.dataset.href; };
  box.addEventListener('input', ask);
  box.addEventListener('keydown', e => {
    if (e.key === 'ArrowDown') choose(at + 1);
    else if (e.key === 'ArrowUp') choose(at - 1);
    else if (e.key === 'Enter') go(list.children[at]);
    else return;
    e.preventDefault();
  });
  list.addEventListener('click', e => go(e.target.closest('li')));
  dialog.append(box, list);
  document.body.append(dialog);
  return ask;
}

const link = document.querySelector('a[data-key=t]');
if (link) {
  let ask = null;
  const show = () => {
    ask = ask || make(link.getAttribute('href'));
    dialog.showModal();
    dialog.querySelector('input').select();
    ask();
  };
  keys.add('t', show);
  link.addEventListener('click', e => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); show(); } });
}
