// The finder: a file of the repository by a few letters of its path.
import { chooser } from './chooser.js';
import { keys } from './keys.js';
import { fetchPart, parse } from './part.js';

// files is the files whose paths have some letters, best first.
export async function files(url, query, signal) {
  const from = parse(await fetchPart(url + '?' + new URLSearchParams({ query }), 'find', signal));
  return [...from.querySelectorAll('.finds a')].map(a => ({ href: a.getAttribute('href'), nodes: a.childNodes }));
}

const link = document.querySelector('a[data-key=t]');
if (link) {
  let open = null;
  const show = () => {
    open = open || chooser('finder', 'Letters of the path', (query, signal) => files(link.getAttribute('href'), query, signal));
    open();
  };
  keys.add('t', show);
  link.addEventListener('click', e => { if (!e.ctrlKey && !e.metaKey) { e.preventDefault(); show(); } });
}
