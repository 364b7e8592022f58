// What every page has: keys, the theme, and marks for tests. Text of
// repositories never becomes markup here: see part.js for the one place.
import { keys } from './keys.js';
import './suggest.js';

const box = document.getElementById('query');
const typing = e => {
  const field = e.target.closest && e.target.closest('input, textarea, select, [contenteditable]');
  return field && field.checkVisibility(); // one in a dialog that has closed may have the focus for a moment more
};

keys.add('/', () => focusBox());
keys.add('s', () => focusBox());
keys.add('?', () => { location.href = '/help/keys'; });
for (const [key, to] of [['h', '/'], ['r', '/repos'], ['c', '/settings/nodes'], ['s', '/settings']]) keys.add('g ' + key, () => { location.href = to; });

let palette = null; // once it was asked for

// focusBox takes the selected text of the page into the box.
function focusBox() {
  const picked = String(getSelection()).trim();
  if (picked && !picked.includes('\n') && picked.length < 200) box.value = picked;
  box.focus();
  box.select();
}

document.addEventListener('keydown', e => {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === 'k') {
    e.preventDefault();
    if (palette) palette.open(); else import('./palette.js').then(module => { palette = module; palette.open(); });
    return;
  }
  if (e.altKey && !e.ctrlKey && !e.metaKey) {
    const toggle = { r: 'regex', c: 'case', w: 'whole' }[e.key];
    if (toggle) { e.preventDefault(); document.getElementById(toggle).click(); }
    return;
  }
  if (e.ctrlKey || e.metaKey || typing(e)) return;
  keys.press(e);
});

// What a reader may switch off in this browser.
for (const name of ['keysOff', 'cardOff']) {
  const off = document.getElementById(name);
  if (!off) continue;
  off.checked = localStorage.getItem(name) === '1';
  off.addEventListener('change', () => localStorage.setItem(name, off.checked ? '1' : ''));
}

const form = document.getElementById('editorForm');
if (form) {
  form.value = localStorage.getItem('editor') || '';
  form.addEventListener('input', () => localStorage.setItem('editor', form.value.trim()));
}

const theme = localStorage.getItem('theme');
if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
// All modules of a page have run by then.
document.addEventListener('DOMContentLoaded', () => { document.documentElement.dataset.booted = '1'; });
