// Results while somebody types, the next page without a redraw, keys.
import { booted, keys, until } from './keys.js';
import { fetchPart, parse, progress, put, say } from './part.js';

const form = document.getElementById('search');
const box = document.getElementById('query');
const small = matchMedia('(max-width: 800px)');
let rest = 0, running = null, timer = 0, asked = '', slow = 0, quick = true; // quick: the last answer did not keep the node busy

const address = () => '/search?' + new URLSearchParams(new FormData(form));
const results = () => document.getElementById('results');

// On a page to read, results come in its place until the box is empty again.
const reading = !results();
if (reading) {
  const list = document.createElement('div');
  list.id = 'results';
  document.getElementById('main').prepend(list);
  const title = document.title, back = () => { stop(); clearTimeout(rest); asked = ''; results().replaceChildren(); document.title = title; };
  box.addEventListener('input', () => { if (!box.value.trim()) back(); });
  box.addEventListener('keydown', e => { if (e.key === 'Escape' && !e.defaultPrevented && results().firstChild && !running && !timer) { e.preventDefault(); back(); } });
}

// typed asks for results of what stands in the box, unless the page is slow.
export function typed() {
  clearTimeout(timer);
  timer = 0;
  const regex = document.getElementById('regex').checked;
  if (small.matches || slow > 3 || box.value.trim().length < (regex ? 3 : 2)) return;
  if (quick && !running) run('typed');
  else timer = setTimeout(() => { timer = 0; run('typed'); }, quick ? 8 : 40);
}

// run draws the results of the box. An older request is left, and an answer to
// what is no longer in the box is thrown away. Where none comes, since the node
// that was asked is gone, another may have it: it is asked for once again.
async function run(part, again = false) {
  const url = address();
  if (part === 'typed' && url === asked) return;
  asked = url;
  if (running) running.abort();
  const mine = running = new AbortController();
  const began = performance.now(), late = setTimeout(() => { working.hidden = false; }, 400);
  let failed = false;
  try {
    const html = await progress(fetchPart(url, part, mine.signal, part === 'results' ? doing : null));
    if (mine !== running || url !== address()) return;
    redraw(html, part);
    const took = performance.now() - began;
    slow = part === 'typed' ? (took > 300 ? slow + 1 : Math.max(0, slow - 1)) : slow;
    quick = took < 80;
    document.documentElement.dataset.took = took.toFixed(1);
    const bad = document.getElementById('trouble');
    if (bad && part !== 'typed') { box.setAttribute('aria-invalid', 'true'); box.setAttribute('aria-describedby', 'trouble'); } else box.removeAttribute('aria-invalid');
    const summary = document.querySelector('#results h1');
    if (summary) say(summary.textContent);
    showSaved();
    settle(url, part);
  } catch (err) {
    if (err.name !== 'AbortError' && mine === running) failed = true;
  } finally {
    clearTimeout(late);
    if (failed && !again) {
      asked = '';
      run(part, true);
      return;
    }
    if (mine === running || !running) { running = null; working.hidden = true; told.textContent = 'Searching'; }
    if (failed) { told.textContent = 'No answer came.'; working.hidden = false; say(told.textContent); }
  }
}

// While somebody types, the files that the window has no room for are drawn a moment
// later: most of the time until a letter is answered would go into them.
const least = 90; // height of a file with one match
let below = 0;

function inSight(from) {
  const file = from.querySelectorAll('#files > .file')[Math.ceil(innerHeight / least)];
  if (!file) return;
  const list = file.parentElement, all = [...list.children], rest = all.slice(all.indexOf(file));
  for (const e of rest) e.remove();
  list.setAttribute('aria-busy', 'true');
  below = setTimeout(() => { list.append(...rest); list.removeAttribute('aria-busy'); }, 150);
}

// redraw puts results in the place of those before. Who has gone into them by the
// keyboard stays at the same link, or at least among them.
function redraw(html, part) {
  const old = results().contains(document.activeElement) ? document.activeElement : null;
  const same = old && old.getAttribute('href'), place = old ? [...results().querySelectorAll('a')].filter(a => a.checkVisibility() && a.getAttribute('href') === same).indexOf(old) : 0;
  const marked = document.querySelector('.file.on a.path')?.getAttribute('href');
  clearTimeout(below);
  put(results(), html, part === 'typed' ? inSight : null);
  mark(marked);
  if (!old) return;
  const all = [...results().querySelectorAll('a')].filter(a => a.checkVisibility()), again = all.filter(a => a.getAttribute('href') === same);
  const to = again[Math.max(0, place)] || again[0] || all[0];
  if (to) to.focus({ preventScroll: true });
}

// settle puts the address into the bar: at once for a query that was sent, after
// a rest for one that is being typed.
function settle(url, part) {
  clearTimeout(rest);
  document.title = box.value + ' - Shoal';
  if (part === 'results') { remember(box.value); counted(); return; }
  rest = setTimeout(() => {
    if (url !== address()) return;
    if (!reading) history.replaceState(null, '', url);
    counted();
  }, 1000);
}

// Who leaves by a result comes back to it.
document.addEventListener('click', e => {
  if (asked && asked === address() && e.target.closest('#results a')) history[reading ? 'pushState' : 'replaceState'](null, '', asked);
}, true);

function remember(query) {
  if (localStorage.getItem('recentOff') === '1') return;
  const list = [query, ...recent().filter(q => q !== query)].slice(0, 20);
  localStorage.setItem('recent', JSON.stringify(list));
}

export function recent() {
  try { return JSON.parse(localStorage.getItem('recent') || '[]').filter(q => typeof q === 'string'); } catch { return []; }
}

function stop() {
  clearTimeout(timer);
  timer = 0;
  if (running) { running.abort(); running = null; say('Stopped.'); }
}

// A search that takes a while says how far it has come, and can be stopped; the
// node notices that nobody waits.
const working = document.createElement('div'), told = document.createElement('span'), stopper = document.createElement('button');
working.id = 'working';
working.hidden = true;
told.textContent = 'Searching';
stopper.type = 'button';
stopper.id = 'stop';
stopper.textContent = 'Stop';
stopper.addEventListener('click', stop);
working.append(told, stopper);
form.append(working);

// doing tells the last line of what has come so far, until results come.
function doing(html) {
  const lines = html.length < 100000 ? parse(html).querySelectorAll('.doing') : [];
  if (lines.length) told.textContent = lines[lines.length - 1].textContent;
}

box.addEventListener('input', typed);
form.addEventListener('change', e => { if (e.target !== box && box.value.trim()) submit(); });
form.addEventListener('submit', e => { e.preventDefault(); submit(); });
box.addEventListener('keydown', e => { if (e.key === 'Escape' && (running || timer)) e.preventDefault(); }); // the search is what it stops
document.addEventListener('keydown', e => { if (e.key === 'Escape') stop(); });

function submit() {
  if (!box.value.trim()) return;
  if (!results() || location.pathname !== '/search') { location.href = address(); return; }
  clearTimeout(timer);
  timer = 0;
  if (address() !== location.pathname + location.search) history.pushState(null, '', address());
  asked = '';
  run('results');
}

window.addEventListener('popstate', () => location.reload());

// The next page comes below this one.
document.addEventListener('click', async e => {
  const next = e.target.closest('#next');
  if (!next || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  const from = parse(await progress(fetchPart(next.href, 'results')));
  const more = from.querySelectorAll('#files > .file, #files > .group, #files > .next');
  const list = document.getElementById('files'), here = document.activeElement === next;
  next.closest('.next').remove();
  list.append(...more);
  const first = here && [...more].map(m => m.querySelector('a.path, a')).find(a => a);
  if (first) first.focus(); // who came by the keyboard goes on at the first of them
  document.documentElement.dataset.ready = 'search:more';
  say(more.length + ' more');
});

// Facets of an answer that was cut are counted by themselves, where that is quick.
async function counted() {
  const count = document.getElementById('count'), url = address();
  if (!count) return;
  try {
    const html = await fetchPart(count.href.replace('facets=all', 'facets=quick'), 'facets'), note = parse(html).getElementById('counted');
    if (!count.isConnected || url !== address()) return;
    document.documentElement.dataset.counted = note.dataset.exact ? '1' : '0';
    if (!note.dataset.exact) return;
    const asOpen = document.querySelector('#facets details').open;
    put(document.getElementById('facets'), html, from => { from.querySelector('details').open = asOpen; });
    summed(count, note);
  } catch { /* without counts */ }
}

// summed says the numbers of a count, where it was of the whole answer.
function summed(count, note) {
  if (count.dataset.others) return;
  document.querySelector('.summary').textContent = note.dataset.summary;
  const proof = document.getElementById('proof');
  if (note.dataset.exact && proof.dataset.counted) proof.textContent = '✓ ' + proof.dataset.counted;
}
booted.then(counted);

// All files are counted for who asks; the page stays as it is.
document.addEventListener('click', async e => {
  const count = e.target.closest('#count');
  if (!count || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  const url = address();
  try {
    const html = await progress(fetchPart(count.href, 'facets'));
    if (!count.isConnected || url !== address()) return;
    put(document.getElementById('facets'), html);
    const note = document.getElementById('counted');
    summed(count, note);
    note.focus();
    say(note.textContent);
  } catch (err) {
    say('The count failed.');
    count.textContent = 'The count failed: try again';
  }
});

// ---- keys of the list

const files = () => [...document.querySelectorAll('.file')];
const hits = () => [...document.querySelectorAll(':is(.line, .row).hit')].filter(r => r.offsetParent);
let at = -1, on = -1;

function go(list, i) {
  const item = list[Math.max(0, Math.min(list.length - 1, i))];
  if (!item) return;
  item.scrollIntoView({ block: 'nearest' });
  const link = item.querySelector('a.path') || item.querySelector('a');
  if (link) link.focus({ preventScroll: true });
}
// mark keeps the file that is chosen chosen when the results are drawn anew.
function mark(href) {
  at = href ? files().findIndex(f => f.querySelector('a.path').getAttribute('href') === href) : -1;
  on = -1;
  files()[at]?.classList.add('on');
}
const step = d => { const l = files(); at = Math.max(0, Math.min(l.length - 1, at + d)); l.forEach((f, i) => f.classList.toggle('on', i === at)); go(l, at); };
keys.add('j', () => step(1));
keys.add('k', () => step(-1));
keys.add('n', () => go(hits(), ++on));
keys.add('p', () => { on = Math.max(0, on - 1); go(hits(), on); });
keys.add('o', () => { const f = files()[at]; if (f) f.querySelector('a.path').click(); });
keys.add('X', () => { const all = [...document.querySelectorAll('.file details.more')], open = all.some(d => !d.open); for (const d of all) d.open = open; });
keys.add('e', () => {
  const field = document.getElementById('ctx'), all = ['1', '3', '10'];
  field.value = all[(all.indexOf(field.value) + 1) % all.length];
  field.disabled = field.value === '1';
  submit();
});
if (localStorage.getItem('wrap') === '1') import('./wrap.js');
else if (!reading) keys.add('w', () => until(import('./wrap.js').then(wrap => wrap.toggle())));
keys.add('x', () => { const f = files()[at]; const d = f && f.querySelector('details.more'); if (d) d.open = !d.open; });

// ---- queries that this browser keeps

function saved() {
  try { return JSON.parse(localStorage.getItem('saved') || '[]').filter(s => typeof s === 'string' && s.startsWith('/search?')); } catch { return []; }
}

function showSaved() {
  const button = document.getElementById('save');
  if (!button) return;
  const has = saved().includes(address());
  button.hidden = false;
  button.setAttribute('aria-pressed', has);
  button.textContent = has ? 'Saved' : 'Save';
}

// keep saves a search, or no longer.
function keep(url) {
  const rest = saved().filter(s => s !== url);
  localStorage.setItem('saved', JSON.stringify(rest.length < saved().length ? rest : [url, ...rest].slice(0, 100)));
}

document.addEventListener('click', e => {
  if (e.target.id !== 'save') return;
  keep(address());
  showSaved();
});
showSaved();

// shelf lists addresses of searches, each with what else stands in its row.
function shelf(id, list, more) {
  const section = document.getElementById(id);
  if (!section || !list.length) return;
  section.hidden = false;
  section.querySelector('ul').append(...list.map(url => {
    const li = document.createElement('li'), a = document.createElement('a');
    a.href = url;
    a.textContent = new URL(url, location.href).searchParams.get('query');
    li.append(a, ...more(url, li));
    return li;
  }));
}

shelf('recent', recent().slice(0, 8).map(query => '/search?' + new URLSearchParams({ query })), () => []);
shelf('saved', saved(), (url, li) => {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'plain';
  button.textContent = 'remove';
  button.setAttribute('aria-label', 'remove ' + li.textContent);
  button.addEventListener('click', () => {
    const next = li.nextElementSibling || li.previousElementSibling;
    keep(url);
    li.remove();
    (next ? next.querySelector('button') : document.getElementById('main')).focus();
  });
  return [' ', button];
});
if (location.pathname === '/search' && box.value) remember(box.value);
