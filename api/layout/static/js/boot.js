// What every page has: keys, the theme, and marks for tests. Text of
// repositories never becomes markup here: see part.js for the one place. It runs
// as soon as there is a box, while the rest of a page may still be on its way.
import { booted, field, hold, keys, own, until } from './keys.js';
import { say } from './part.js';

const box = document.getElementById('query'), form = document.getElementById('search');

// Completion comes with the focus.
if (document.activeElement === box) import('./suggest.js');
else box.addEventListener('focus', () => import('./suggest.js'), { once: true });

keys.add('/', () => focusBox());
keys.add('s', () => focusBox());
keys.add('?', () => until(import('./sheet.js').then(sheet => sheet.open())));
for (const [key, to] of [['h', '/'], ['r', '/repos'], ['c', '/settings/nodes'], ['s', '/settings']]) keys.add('g ' + key, () => { location.href = to; });

// On a page to read, the script of results comes with the first letter.
if (!document.documentElement.dataset.page.match(/^(home|search)$/)) box.addEventListener('input', () => import('./search.js').then(search => search.typed()), { once: true });

// places is what this browser has read last, the newest first: {href, name}.
export function places() {
  try { return JSON.parse(localStorage.getItem('places') || '[]').filter(p => p && typeof p.name === 'string' && typeof p.href === 'string' && p.href.startsWith('/browse/')); } catch { return []; }
}
if (localStorage.getItem('recentOff') !== '1' && location.pathname.startsWith('/browse/') && /^(file|tree)$/.test(document.documentElement.dataset.page)) booted.then(() => {
  const here = { href: location.pathname, name: document.title.replace(/ - Shoal$/, '') };
  localStorage.setItem('places', JSON.stringify([here, ...places().filter(p => p.href !== here.href)].slice(0, 30)));
});

let palette = null; // once it was asked for
const openPalette = () => { if (palette) palette.open(); else until(import('./palette.js').then(module => { palette = module; palette.open(); })); };
booted.then(() => { if (!keys.known('t')) keys.add('t', openPalette); }); // in a repository, its finder, which may still be on its way
let before = null; // what had the focus before the box was asked for

// focusBox takes the selected text of the page into the box.
function focusBox() {
  before = document.activeElement;
  const picked = String(getSelection()).trim();
  if (picked && !picked.includes('\n') && picked.length < 200) box.value = picked;
  box.focus();
  box.select();
}

// leaveBox gives the focus back to where it was, or to the page, so that single
// keys are heard.
function leaveBox() {
  const to = before && before !== document.body && before !== box && before.isConnected && before.checkVisibility() ? before : document.getElementById('main');
  before = null;
  if (to) to.focus({ preventScroll: true });
  else box.blur(); // the page is still on its way
}

// escape leaves the box, unless what listens to it had something to close or to
// stop; a menu that is open around the focus is closed. The browser's own meaning,
// to empty the box, would throw the query away.
function escape(e) {
  const menu = e.target.closest('.drop[open]');
  if (menu) { menu.open = false; menu.firstElementChild.focus(); }
  if (e.target !== box) return;
  if (!e.defaultPrevented) leaveBox();
  e.preventDefault();
}

// A menu that lies over the page is closed behind a focus that goes on, and by a
// click beside it.
document.addEventListener('focusout', e => {
  const menu = e.target.closest('.drop[open]');
  if (menu && e.relatedTarget && !menu.contains(e.relatedTarget)) menu.open = false;
});
document.addEventListener('click', e => { for (const menu of document.querySelectorAll('.drop[open]')) if (!menu.contains(e.target)) menu.open = false; });

// An address has room for so many bytes: of a longer text its beginning is searched for.
// Without this script the box itself takes no more than surely fits.
const most = 12000;
box.maxLength = 16384;
box.addEventListener('input', () => {
  let text = box.value;
  while (text.length * 3 > most && encodeURIComponent(text = text.replace(/\s+/g, ' ')).length > most) text = text.slice(0, text.length * 0.9);
  if (text === box.value) return;
  box.value = text;
  say('This is too long for a search: its beginning is searched for.');
}, true);

// The place that a search is in goes with a Backspace before the first letter.
box.addEventListener('keydown', e => {
  const place = form.querySelector('.in :checked');
  if (e.key !== 'Backspace' || !place || box.selectionEnd) return;
  e.preventDefault();
  place.checked = false;
});

// What is there to be copied is selected while the keyboard is at it.
document.addEventListener('focusin', e => { if (e.target.matches('pre.copy:focus-visible')) getSelection().selectAllChildren(e.target); });
document.addEventListener('focusout', e => { if (e.target.matches('pre.copy') && e.target.contains(getSelection().anchorNode)) getSelection().removeAllRanges(); });

document.addEventListener('keydown', e => {
  if (e.key === 'Escape') escape(e);
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === 'k') {
    e.preventDefault();
    openPalette();
    return;
  }
  if (e.altKey && !e.ctrlKey && !e.metaKey) {
    const toggle = { r: 'regex', c: 'case', w: 'whole' }[e.key];
    if (toggle) { e.preventDefault(); document.getElementById(toggle).click(); }
    return;
  }
  if (e.ctrlKey || e.metaKey || hold(e) || field(e.target)) return;
  keys.press(e);
});

// What a reader may switch off in this browser.
for (const name of ['keysOff', 'cardOff']) {
  const off = document.getElementById(name);
  if (!off) continue;
  off.checked = localStorage.getItem(name) === '1';
  off.addEventListener('change', () => localStorage.setItem(name, off.checked ? '1' : ''));
}

const editor = document.getElementById('editorForm');
if (editor) {
  editor.value = localStorage.getItem('editor') || '';
  editor.addEventListener('input', () => localStorage.setItem('editor', editor.value.trim()));
}

// Keys of the reader's own, on the page of help. A key has one meaning at a time.
const remap = document.getElementById('remap'), remapped = document.getElementById('remapped');
function showOwn() {
  remapped.replaceChildren(...Object.entries(own()).map(([from, to]) => {
    const li = document.createElement('li'), kbd = document.createElement('kbd'), button = document.createElement('button');
    kbd.textContent = to;
    button.type = 'button';
    button.className = 'plain';
    button.textContent = 'as before';
    button.setAttribute('aria-label', from + ' as before');
    button.addEventListener('click', () => { const { [from]: _, ...rest } = own(); localStorage.setItem('keys', JSON.stringify(rest)); showOwn(); remap.elements.from.focus(); });
    li.append(kbd, ' does what ' + from + ' did ', button);
    return li;
  }));
}
if (remap) {
  remap.hidden = false;
  remap.addEventListener('submit', e => {
    e.preventDefault();
    const from = remap.elements.from.value, to = remap.elements.to, mine = own(), { [from]: _, ...others } = mine;
    const standing = [...remap.elements.from.options].some(o => o.value === to.value && o.value !== from && !(o.value in mine));
    to.setCustomValidity(standing || Object.values(others).includes(to.value) ? to.value + ' does something else already.' : '');
    if (!remap.reportValidity()) return;
    localStorage.setItem('keys', JSON.stringify(to.value === from ? others : { ...others, [from]: to.value }));
    to.value = '';
    showOwn();
  });
  remap.addEventListener('input', () => remap.elements.to.setCustomValidity(''));
  showOwn();
}

// What a button copies is its own; one that cannot do it stays away.
booted.then(() => { if (navigator.clipboard) for (const b of document.querySelectorAll('[data-copy]')) b.hidden = false; });
document.addEventListener('click', e => {
  const button = e.target.closest('[data-copy]');
  if (button) navigator.clipboard.writeText(button.dataset.copy).then(() => { button.dataset.done = 1; say('Copied.'); setTimeout(() => delete button.dataset.done, 1500); });
});

// Enter sends a question, Shift+Enter begins a new line of it.
document.addEventListener('keydown', e => {
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing || !e.target.matches('.ask textarea[name=query]')) return;
  e.preventDefault();
  if (e.target.value.trim()) e.target.form.requestSubmit();
});

// The theme is in a cookie, so that pages come with it.
document.getElementById('theme').addEventListener('change', e => {
  document.cookie = 'theme=' + e.target.value + '; path=/; samesite=lax; max-age=' + (e.target.value ? 31536000 : 0);
  document.documentElement.dataset.theme = e.target.value;
});
document.documentElement.dataset.keys = '1';
booted.then(() => { document.documentElement.dataset.booted = '1'; });
