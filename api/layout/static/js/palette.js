// The palette: a page, a repository, a file of the repository in view or a symbol
// by a few letters. It is loaded when it is first asked for.
import { chooser, withoutLine } from './chooser.js';
import { found } from './finder.js';
import { fetchPart, parse } from './part.js';
import { places as read } from './boot.js';

const each = 8; // rows of a kind

// recent is places that were read last, also in other repositories.
function recent(query) {
  return read().filter(p => p.href !== location.pathname && (p.name + ' ' + decodeURIComponent(p.href)).toLowerCase().includes(query.toLowerCase()))
    .slice(0, each).map(p => ({ href: p.href, nodes: [p.name], kind: 'read lately', group: 'recent' }));
}

function pages(query) {
  const links = [...document.querySelectorAll('header nav a, nav.side a, .crumbs nav > a, .crumbs .pop p a'), ...parse('<a href="/settings/nodes">Nodes</a><a href="/settings/agents">Agents</a><a href="/help/keys">Keys</a>').children];
  const seen = new Set();
  return links.filter(a => !seen.has(a.getAttribute('href')) && seen.add(a.getAttribute('href')) && a.textContent.toLowerCase().includes(query.toLowerCase()))
    .slice(0, each).map(a => ({ href: a.getAttribute('href'), nodes: [...a.cloneNode(true).childNodes], kind: 'page', group: 'page' }));
}

async function repositories(query, signal) {
  const from = parse(await fetchPart('/repos?' + new URLSearchParams({ query }), 'palette', signal));
  return [...from.querySelectorAll('.repo-row a.repo')].slice(0, each).map(a => ({ href: a.getAttribute('href'), nodes: a.childNodes, kind: 'repository', group: 'repository' }));
}

async function files(query, signal) {
  const [letters, line] = withoutLine(query), find = document.querySelector('.crumbs a[data-key=t]');
  const here = find ? await found(find.getAttribute('href'), query, signal) : [];
  if (here.length >= each) return here.slice(0, each).map(r => ({ ...r, kind: 'file', group: 'file' }));
  const from = parse(await fetchPart('/suggest?' + new URLSearchParams({ query: 'file:' + letters }), 'palette', signal));
  const others = [...from.querySelectorAll('li[data-kind=file]')].map(li => ({ href: li.dataset.url + line, nodes: li.firstElementChild.childNodes, kind: li.lastElementChild.textContent.replace(/^file: /, ''), group: 'file' }));
  return [...here.map(r => ({ ...r, kind: 'file', group: 'file' })), ...others.filter(o => !here.some(h => h.href === o.href))].slice(0, each);
}

async function symbols(query, signal) {
  const from = parse(await fetchPart('/suggest?' + new URLSearchParams({ query: 'sym:' + query }), 'palette', signal));
  return [...from.querySelectorAll('li[data-kind=symbol]')].slice(0, each).map(li => ({ href: '/search?' + new URLSearchParams({ query: li.dataset.query.trim() }), nodes: li.firstElementChild.childNodes, kind: li.lastElementChild.textContent, group: 'symbol' }));
}

// named is the places that a pasted text names.
async function named(query, signal) {
  const from = parse(await fetchPart('/search?' + new URLSearchParams({ query }), 'goto', signal));
  return [...from.querySelectorAll('.goto li')].map(li => ({ href: li.querySelector('a').getAttribute('href'), nodes: li.querySelector('a').childNodes, kind: li.querySelector('.dim').textContent, group: 'goto' }));
}

async function ask(query, signal) {
  const none = Promise.resolve([]), quiet = p => p.catch(() => []);
  const rows = await Promise.all([
    query ? quiet(repositories(query, signal)) : none,
    query.length > 1 ? quiet(symbols(query, signal)) : none,
    query ? quiet(files(query, signal)) : none,
  ]);
  const places = /[/:#@]|[0-9a-f]{7}/.test(query) ? await quiet(named(query, signal)) : [];
  const search = query ? [{ href: '/search?' + new URLSearchParams({ query }), nodes: [document.querySelector('.box .icon').cloneNode(true), 'Search for ' + query], kind: '', group: 'search' }] : [];
  return [...places, ...recent(query), ...pages(query), ...rows.flat(), ...search];
}

export const open = chooser('palette', 'A page, repository, file or symbol', ask);
