'use strict';
// The pages of Shoal. Every page is drawn from the public API; text from
// repositories goes into text nodes only, never into markup.

const main = document.getElementById('main');
const form = document.getElementById('search');
const box = { query: document.getElementById('query'), regex: document.getElementById('regex'), case: document.getElementById('case') };
const encoder = new TextEncoder();
const decoder = new TextDecoder();

// el makes an element: el('a', {href: '/'}, 'text', child, ...).
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k === 'onclick') e.addEventListener('click', v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v);
  }
  e.append(...children.flat(Infinity).filter(c => c !== undefined && c !== null));
  return e;
}

function show(...children) { main.replaceChildren(...children.flat(Infinity).filter(c => c !== undefined && c !== null)); }

class Refusal extends Error {
  constructor(status, body) { super(body.message || 'status ' + status); this.status = status; this.code = body.errorCode; }
}

// api asks the server; a 401 asks the reader for a key once and tries again.
async function api(path, body, signal) {
  for (let tried = false; ; tried = true) {
    const headers = {};
    const key = sessionStorage.getItem('key');
    if (key) headers.Authorization = 'Bearer ' + key;
    if (body) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal });
    if (response.status === 401 && !tried) { await askKey(); continue; }
    const data = await response.json().catch(() => ({ message: 'no JSON in the answer' }));
    if (!response.ok) throw new Refusal(response.status, data);
    return { data, headers: response.headers };
  }
}

function askKey() {
  const dialog = document.getElementById('login');
  return new Promise(resolve => {
    dialog.addEventListener('close', () => {
      sessionStorage.setItem('key', document.getElementById('key').value.trim());
      resolve();
    }, { once: true });
    dialog.showModal();
  });
}

// ---- links

function browse(repo, rev, kind, path, line) {
  const at = rev && rev !== 'HEAD' ? '@' + encodeURIComponent(rev.replace(/^refs\/(heads|tags)\//, '')) : '';
  const encoded = repo.split('/').map(encodeURIComponent).join('/');
  return '/browse/' + encoded + at + '/-/' + kind + '/' + (path || '').split('/').map(encodeURIComponent).join('/') + (line ? '#L' + line : '');
}

// place reads a /browse path: {repo, rev, kind, path}.
function place(pathname) {
  const m = pathname.match(/^\/browse\/(.+?)\/-\/(blob|tree|commits|commit|blame)(?:\/(.*))?$/);
  if (!m) return null;
  const [name, ...rev] = m[1].split('@');
  return { repo: decodeURIComponent(name), rev: rev.length ? decodeURIComponent(rev.join('@')) : 'HEAD', kind: m[2], path: decodeURIComponent(m[3] || '') };
}

const params = o => new URLSearchParams(Object.entries(o).filter(([, v]) => v !== undefined && v !== '')).toString();

// ---- search

let running;

async function searchPage(query, matches) {
  box.query.value = query.get('query') || '';
  box.regex.checked = query.get('regex') === '1' || query.get('isRegexEnabled') === 'true';
  box.case.checked = query.get('case') === '1' || query.get('isCaseSensitivityEnabled') === 'true';
  document.title = box.query.value + ' - Shoal';
  if (running) running.abort();
  running = new AbortController();
  show(el('p', { class: 'dim' }, 'Searching…'));
  const started = performance.now();
  const { data } = await api('/api/search', {
    query: box.query.value, matches, contextLines: 1,
    isRegexEnabled: box.regex.checked, isCaseSensitivityEnabled: box.case.checked,
  }, running.signal);
  drawResults(data, matches, performance.now() - started, query);
}

function drawResults(data, matches, took, query) {
  const n = data.stats.totalMatchCount;
  const more = data.isSearchExhaustive && data.stats.actualMatchCount >= n ? '' : '+';
  const head = [el('p', { class: 'dim', id: 'summary' }, `${n}${more} matches in ${data.stats.fileCount}${more} files, ${took.toFixed(0)} ms`)];
  const missing = (data.cluster && data.cluster.shardsMissing) || [];
  if (missing.length) head.push(el('p', { class: 'error' }, `Not complete: ${missing.length} shards did not answer.`));
  if (!data.files.length) head.push(el('p', {}, 'Nothing found.'));
  const list = data.files.map(f => drawFile(f));
  if (data.stats.actualMatchCount >= matches) {
    list.push(el('button', { class: 'more', onclick: () => guard(searchPage(query, matches * 4)) }, 'Show more'));
  }
  show(el('div', { class: 'columns' }, el('aside', {}, facet('Repository', data.files, f => f.repository, v => 'reposet:' + v), facet('Language', data.files, f => f.language, v => `lang:"${v}"`)), el('div', {}, head, list)));
}

// facet counts the files by a property, each a link that narrows the search.
function facet(title, files, value, filter) {
  const counts = new Map();
  for (const f of files) if (value(f)) counts.set(value(f), (counts.get(value(f)) || 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 12);
  if (!rows.length) return null;
  return [el('h3', {}, title), rows.map(([v, n]) => {
    const q = new URLSearchParams(location.search);
    q.set('query', `${filter(v)} ${q.get('query')}`);
    return el('a', { href: '/search?' + q }, el('span', {}, v), el('span', { class: 'dim' }, String(n)));
  })];
}

function drawFile(f) {
  const rev = (f.branches || [])[0];
  const name = marked(encoder.encode(f.fileName.text), f.fileName.matchRanges.map(r => [r.start.byteOffset, r.end.byteOffset]));
  const rows = [];
  f.chunks.forEach((c, i) => {
    const bytes = encoder.encode(c.content);
    let offset = 0, line = c.contentStart.lineNumber;
    const ranges = c.matchRanges.map(r => [r.start.byteOffset - c.contentStart.byteOffset, r.end.byteOffset - c.contentStart.byteOffset]);
    for (const text of c.content.replace(/\n$/, '').split('\n')) {
      const length = encoder.encode(text).length;
      const inside = ranges.filter(r => r[1] >= offset && r[0] <= offset + length).map(r => [Math.max(0, r[0] - offset), Math.min(length, r[1] - offset)]);
      rows.push(el('div', { class: 'row' + (i && offset === 0 ? ' gap' : '') },
        el('a', { href: browse(f.repository, rev, 'blob', f.fileName.text, line) }, String(line)),
        el('code', {}, marked(bytes.subarray(offset, offset + length), inside))));
      offset += length + 1;
      line++;
    }
  });
  return el('article', { class: 'file' },
    el('h2', {}, el('span', {}, el('a', { href: browse(f.repository, rev, 'tree', '') }, f.repository), ' › ', el('a', { href: browse(f.repository, rev, 'blob', f.fileName.text) }, name)), el('span', { class: 'dim' }, f.language)),
    rows.length ? el('div', { class: 'code' }, rows) : null);
}

// marked cuts bytes at the ranges and marks them.
function marked(bytes, ranges) {
  const out = [];
  let at = 0;
  for (const [start, end] of ranges) {
    if (start < at) continue;
    out.push(decoder.decode(bytes.subarray(at, start)), el('mark', {}, decoder.decode(bytes.subarray(start, end))));
    at = end;
  }
  out.push(decoder.decode(bytes.subarray(at)));
  return out;
}

// ---- browsing

function crumbs(p, ...links) {
  const parts = p.kind === 'commit' || !p.path ? [] : p.path.split('/');
  const trail = [el('a', { href: browse(p.repo, p.rev, 'tree', '') }, p.repo), el('span', { class: 'dim' }, '@' + p.rev)];
  const path = parts.map((part, i) => [i ? '/' : '', el('a', { href: browse(p.repo, p.rev, i === parts.length - 1 ? p.kind === 'tree' ? 'tree' : 'blob' : 'tree', parts.slice(0, i + 1).join('/')) }, part)]);
  return el('div', { class: 'crumbs' }, el('span', {}, trail), el('span', {}, path.flat()), links);
}

const pages = {
  async tree(p) {
    const { data } = await api('/api/tree', { repoName: p.repo, revisionName: p.rev, paths: [p.path] });
    let node = data.tree;
    for (const part of p.path ? p.path.split('/') : []) node = (node.children || []).find(c => c.name === part) || node;
    const rows = (node.children || []).map(c => el('tr', {}, el('td', {}, el('a', { href: browse(p.repo, p.rev, c.type === 'tree' ? 'tree' : 'blob', c.path) }, c.name + (c.type === 'tree' ? '/' : '')))));
    show(crumbs(p, el('a', { href: browse(p.repo, p.rev, 'commits', p.path) }, 'History')), el('table', { class: 'list' }, rows));
  },

  async blob(p) {
    const { data } = await api('/api/source?' + params({ repo: p.repo, path: p.path, ref: p.rev }));
    const links = [el('a', { href: browse(p.repo, p.rev, 'blame', p.path) }, 'Blame'), el('a', { href: browse(p.repo, p.rev, 'commits', p.path) }, 'History')];
    if (data.commit) links.push(el('a', { href: browse(p.repo, data.commit, 'blob', p.path) + location.hash }, 'Permalink'));
    if (data.externalWebUrl) links.push(el('a', { href: data.externalWebUrl, rel: 'noreferrer' }, 'On the host'));
    if (data.isBinary) { show(crumbs(p, links), el('p', {}, 'A binary file.')); return; }
    const lines = data.source.replace(/\n$/, '').split('\n');
    show(crumbs(p, links, el('span', { class: 'dim' }, `${data.language} · ${lines.length} lines`)),
      el('article', { class: 'file' }, el('div', { class: 'code' }, lines.map((text, i) => el('div', { class: 'row', id: 'L' + (i + 1) }, el('a', { href: '#L' + (i + 1) }, String(i + 1)), el('code', {}, text))))));
    const on = document.getElementById(location.hash.slice(1));
    if (on) { on.classList.add('on'); on.scrollIntoView({ block: 'center' }); }
  },

  async blame(p) {
    const [source, blame] = await Promise.all([api('/api/source?' + params({ repo: p.repo, path: p.path, ref: p.rev })), api('/api/blame?' + params({ repo: p.repo, path: p.path, ref: p.rev }))]);
    const lines = source.data.source.replace(/\n$/, '').split('\n');
    const rows = blame.data.ranges.flatMap(r => lines.slice(r.startLine - 1, r.startLine - 1 + r.lineCount).map((text, i) => {
      const c = blame.data.commits[r.hash];
      const who = i ? el('span', { class: 'no' }) : el('a', { href: browse(p.repo, p.rev, 'commit', r.hash), title: c.message }, `${c.date.slice(0, 10)} ${c.authorName.slice(0, 18)}`);
      return el('div', { class: 'row' + (i ? '' : ' gap') }, who, el('span', { class: 'no' }, String(r.startLine + i)), el('code', {}, text));
    }));
    show(crumbs(p, el('a', { href: browse(p.repo, p.rev, 'blob', p.path) }, 'File')), el('article', { class: 'file' }, el('div', { class: 'code' }, rows)));
  },

  async commits(p) {
    const page = Number(new URLSearchParams(location.search).get('page') || 1);
    const { data, headers } = await api('/api/commits?' + params({ repo: p.repo, ref: p.rev, path: p.path, page, perPage: 50 }));
    const rows = data.map(c => el('tr', {}, el('td', {}, el('a', { href: browse(p.repo, p.rev, 'commit', c.hash) }, c.hash.slice(0, 10))), el('td', {}, c.message), el('td', { class: 'dim' }, c.authorName), el('td', { class: 'dim' }, c.date.slice(0, 10))));
    const total = Number(headers.get('X-Total-Count') || 0);
    const turn = [page > 1 && el('a', { href: '?page=' + (page - 1) }, 'Newer'), page * 50 < total && el('a', { href: '?page=' + (page + 1) }, 'Older')].filter(Boolean);
    show(crumbs(p, el('span', { class: 'dim' }, `${total} commits`)), el('table', { class: 'list' }, rows), el('p', { class: 'crumbs' }, turn));
  },

  async commit(p) {
    const { data: c } = await api('/api/commit?' + params({ repo: p.repo, ref: p.path }));
    const parent = (c.parents || [])[0];
    const head = [crumbs(p), el('h1', {}, c.message), el('p', { class: 'dim' }, `${c.authorName} <${c.authorEmail}>, ${c.date}, ${c.hash}`), c.body ? el('pre', {}, c.body) : null].filter(Boolean);
    show(head);
    if (!parent) return;
    const { data } = await api('/api/diff?' + params({ repo: p.repo, base: parent, head: c.hash }));
    show(head, data.files.map(f => drawDiff(p, c.hash, f)), data.isTruncated ? el('p', { class: 'error' }, 'The rest of the diff is left out.') : []);
  },
};

function drawDiff(p, hash, f) {
  const name = f.newPath || f.oldPath;
  const rows = f.hunks.flatMap(h => {
    let before = h.oldRange.start, after = h.newRange.start;
    const head = el('div', { class: 'row hunk' }, el('span', { class: 'no' }), el('span', { class: 'no' }), el('code', {}, `@@ -${h.oldRange.start},${h.oldRange.lines} +${h.newRange.start},${h.newRange.lines} @@ ${h.heading || ''}`));
    return [head, ...h.body.replace(/\n$/, '').split('\n').map(text => {
      const kind = text[0] === '+' ? 'add' : text[0] === '-' ? 'del' : '';
      return el('div', { class: 'row ' + kind }, el('span', { class: 'no' }, kind === 'add' ? '' : String(before++)), el('span', { class: 'no' }, kind === 'del' ? '' : String(after++)), el('code', {}, text));
    })];
  });
  return el('article', { class: 'file' }, el('h2', {}, el('a', { href: browse(p.repo, hash, 'blob', name) }, f.oldPath && f.newPath && f.oldPath !== f.newPath ? f.oldPath + ' → ' + f.newPath : name)), f.isBinary ? el('p', {}, 'Binary files differ.') : el('div', { class: 'code' }, rows));
}

// ---- lists

async function reposPage() {
  document.title = 'Repositories - Shoal';
  const q = new URLSearchParams(location.search);
  const page = Number(q.get('page') || 1);
  const { data, headers } = await api('/api/repos?' + params({ page, perPage: 100, query: q.get('query') || undefined }));
  const total = Number(headers.get('X-Total-Count') || data.length);
  const rows = data.map(r => el('tr', {}, el('td', {}, el('a', { href: browse(r.repoName, '', 'tree', '') }, r.repoName)), el('td', { class: 'dim' }, r.defaultBranch || ''), el('td', { class: 'dim' }, r.indexedAt ? 'indexed ' + r.indexedAt.slice(0, 19).replace('T', ' ') : 'not indexed yet')));
  const turn = [page > 1 && el('a', { href: '?page=' + (page - 1) }, 'Previous'), page * 100 < total && el('a', { href: '?page=' + (page + 1) }, 'Next')].filter(Boolean);
  show(el('p', { class: 'dim' }, `${total} repositories`), el('table', { class: 'list' }, rows), el('p', { class: 'crumbs' }, turn));
}

async function statusPage() {
  document.title = 'Status - Shoal';
  const { data: s } = await api('/api/status');
  const jobs = j => [j.kind, j.subject, j.node, j.attempt, j.error || [j.step, j.total ? `${j.done} of ${j.total}` : ''].join(' ')];
  show(
    (s.warnings || []).map(w => el('p', { class: 'error' }, w)),
    ((s.config || {}).errors || []).map(e => el('p', { class: 'error' }, `${s.config.path} is refused: ${e}`)),
    table('Cluster', ['', ''], [
      ['Node', `${s.node}, version ${s.version}`],
      ['Leader', s.leader || 'none'],
      ['Repositories', `${s.repos.total}, ${s.repos.indexed} indexed, ${s.repos.failed} failed`],
      ['Jobs', `${s.jobs.pending} waiting, ${s.jobs.running} running, ${s.jobs.failed} failed`],
      s.storage && ['This node', `${s.storage.shards} index files, ${bytes(s.storage.shardBytes)}; mirrors ${bytes(s.storage.mirrorBytes)}; disk free ${bytes(s.storage.diskFree)}`],
      s.storage && s.storage.quarantined ? ['Damaged files set aside', s.storage.quarantined] : null,
    ].filter(Boolean)),
    table('Nodes', ['Node', 'Role', 'Health', 'Zone', 'Address', 'Index', 'Lag'], (s.members || []).map(m => [m.id, m.role, m.health + (m.draining ? ', draining' : ''), m.zone, m.address, bytes(m.bytes), m.lag])),
    table('Connections', ['Connection', 'Type', 'State', 'Repositories', 'Message'], (s.connections || []).map(c => [c.name, c.type, c.state, c.repos, [...(c.warnings || []), c.message].filter(Boolean).join(' ')])),
    table('Running', ['Job', 'Subject', 'Node', 'Attempt', 'Step'], (s.running || []).map(jobs)),
    table('Failed', ['Job', 'Subject', 'Node', 'Attempt', 'Error'], (s.failed || []).map(jobs)),
    el('details', {}, el('summary', {}, 'All that the node says'), el('pre', {}, JSON.stringify(s, null, 2))));
}

// table is a titled table, or nothing where there are no rows.
function table(title, head, rows) {
  if (!rows.length) return null;
  const titles = head.some(Boolean) ? el('tr', {}, head.map(h => el('th', {}, h))) : null;
  return [el('h3', {}, title), el('table', { class: 'list' }, titles, rows.map(r => el('tr', {}, r.map(v => el('td', {}, v === undefined || v === null ? '' : String(v))))))];
}

// bytes prints a size for people.
function bytes(n) {
  let i = 0;
  for (n = n || 0; n >= 999.95 && i < 6; i++) n /= 1000;
  return i ? `${n.toFixed(1)} ${' kMGTPE'[i]}B` : `${n} B`;
}

function homePage() {
  document.title = 'Shoal';
  box.query.focus();
  const rows = [['foo bar', 'both words'], ['"foo bar"', 'the text as it stands'], ['foo or bar', 'one of them'], ['-file:_test\\.go$', 'not in these paths'], ['lang:go sym:^New', 'symbols of a language'], ['repo:linux rev:v6.*', 'repositories and revisions'], ['"TODO" count:all', 'every match is counted']];
  show(el('table', { class: 'list help' }, rows.map(([q, what]) => el('tr', {}, el('td', {}, el('a', { href: '/search?' + new URLSearchParams({ query: q }) }, q)), el('td', {}, what)))));
}

// ---- routing

// guard shows what went wrong; a search that a newer one replaced is no error.
function guard(promise) {
  promise.catch(err => {
    if (err.name !== 'AbortError') show(el('p', { class: 'error' }, err.message));
  });
}

async function route() {
  const query = new URLSearchParams(location.search);
  const p = place(location.pathname);
  if (p) { document.title = (p.path || p.repo) + ' - Shoal'; await pages[p.kind](p); }
  else if (location.pathname === '/repos') await reposPage();
  else if (location.pathname === '/status') await statusPage();
  else if (query.get('query')) await searchPage(query, 500);
  else homePage();
}

document.addEventListener('keydown', e => {
  if (e.key === '/' && document.activeElement.tagName !== 'INPUT') { e.preventDefault(); box.query.select(); }
});
form.addEventListener('submit', e => {
  e.preventDefault();
  const q = new URLSearchParams({ query: box.query.value });
  if (box.regex.checked) q.set('regex', '1');
  if (box.case.checked) q.set('case', '1');
  history.pushState(null, '', '/search?' + q);
  guard(route());
});
window.addEventListener('popstate', () => guard(route()));
window.addEventListener('hashchange', () => {
  document.querySelectorAll('.row.on').forEach(r => r.classList.remove('on'));
});
guard(route());
