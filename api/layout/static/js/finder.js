// The finders: a file of the repository by a few letters of its path, a symbol by
// those of its name.
import { chooser, withoutLine } from './chooser.js';
import { keys } from './keys.js';
import { fetchPart, parse } from './part.js';

// found is what the page of a finder lists for some letters, best first.
export async function found(url, query, signal) {
  const [letters, line] = withoutLine(query);
  const from = parse(await fetchPart(url + '?' + new URLSearchParams({ query: letters }), 'find', signal));
  return [...from.querySelectorAll('.finds a')].map(a => ({ href: a.getAttribute('href') + (a.getAttribute('href').includes('#') ? '' : line), nodes: a.childNodes }));
}

for (const [key, id, label] of [['t', 'finder', 'Letters of the path'], ['T', 'symbolFinder', 'Letters of the name of a symbol']]) {
  const link = document.querySelector(`a[data-key=${key}]`);
  if (!link) continue;

  let open = null;
  const show = () => {
    open = open || chooser(id, label, (query, signal) => found(link.getAttribute('href'), query, signal));
    open();
  };
  keys.add(key, show);
  link.addEventListener('click', e => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); show(); } });
}
