// The palette: a page, a repository, a file of the repository in view or a symbol
// by a few letters. It is loaded when it is first asked for.
import { chooser } from './chooser.js';
import { found } from './finder.js';
import { fetchPart, parse } from './part.js';

const each = 8; // rows of a kind
const find = document.querySelector('a[data-key=t]');

function pages(query) {
  const links = [...document.querySelectorAll('header nav a, nav.side a'), ...parse('<a href="/settings/nodes">Nodes</a><a href="/settings/agents">Agents</a><a href="/help/keys">Keys</a>').children];
  const seen = new Set();
  return links.filter(a => !seen.has(a.getAttribute('href')) && seen.add(a.getAttribute('href')) && a.textContent.toLowerCase().includes(query.toLowerCase()))
    .slice(0, each).map(a => ({ href: a.getAttribute('href'), nodes: [a.textContent], kind: 'page' }));
}

async function repositories(query, signal) {
  const from = parse(await fetchPart('/repos?' + new URLSearchParams({ query }), 'palette', signal));
  return [...from.querySelectorAll('.repo-row a.repo')].slice(0, each).map(a => ({ href: a.getAttribute('href'), nodes: a.childNodes, kind: 'repository' }));
}

async function symbols(query, signal) {
  const from = parse(await fetchPart('/suggest?' + new URLSearchParams({ query: 'sym:' + query }), 'palette', signal));
  return [...from.querySelectorAll('li[data-kind=symbol]')].slice(0, each).map(li => ({ href: '/search?' + new URLSearchParams({ query: li.dataset.query.trim() }), nodes: li.firstElementChild.childNodes, kind: 'symbol' }));
}

async function ask(query, signal) {
  const none = Promise.resolve([]), quiet = p => p.catch(() => []);
  const rows = await Promise.all([
    query ? quiet(repositories(query, signal)) : none,
    query && find ? quiet(found(find.getAttribute('href'), query, signal)).then(l => l.slice(0, each).map(r => ({ ...r, kind: 'file' }))) : none,
    query.length > 1 ? quiet(symbols(query, signal)) : none,
  ]);
  const search = query ? [{ href: '/search?' + new URLSearchParams({ query }), nodes: ['Search for ' + query], kind: 'search' }] : [];
  return [...pages(query), ...rows.flat(), ...search];
}

export const open = chooser('palette', 'A page, repository, file or symbol', ask);
