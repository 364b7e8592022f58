// Keys of a file and of a directory.
import { keys } from './keys.js';
import { say } from './part.js';
import './card.js';
import './finder.js';
import './lines.js';
import './names.js';
import './outline.js';
import './wrap.js';

keys.add('y', () => {
  const link = document.getElementById('permalink');
  if (link) { history.replaceState(null, '', link.getAttribute('href') + location.hash); say('The address names this very commit now.'); }
});
keys.add('l', () => {
  if (form) { form.hidden = false; form.querySelector('input').focus(); }
});
const form = document.getElementById('goto');
const back = () => (document.getElementById('code') || document.getElementById('main')).focus({ preventScroll: true });
if (form) {
  form.addEventListener('submit', e => {
    e.preventDefault();
    const n = form.querySelector('input').value.match(/^\d+(-\d+)?$/);
    if (n) location.hash = '#L' + n[0].replace('-', '-L');
    form.hidden = true;
    back();
  });
  form.addEventListener('keydown', e => { if (e.key === 'Escape') { form.hidden = true; back(); } });
}
// An image says how large it is.
const pixels = document.getElementById('pixels'), picture = pixels && pixels.previousElementSibling;
if (pixels) picture.decode().then(() => { pixels.textContent = picture.naturalWidth + ' × ' + picture.naturalHeight; }, () => {});

// Lines are those of the source: an address that names some leads there.
const drawn = document.getElementById('document');
if (drawn) {
  const toSource = () => { if (/^#L\d+(-L?\d+)?$/.test(location.hash)) location.replace(drawn.dataset.plain + location.hash); };
  addEventListener('hashchange', toSource);
  toSource();
}

// The tree beside the file is open on a wide window unless the reader closed it.
const beside = document.getElementById('beside');
if (beside) {
  beside.open = matchMedia('(min-width: 1100px)').matches && localStorage.getItem('besideOff') !== '1';
  beside.parentElement.classList.add('asked'); // until now the style hides it on a narrow window
  beside.firstElementChild.addEventListener('click', () => localStorage.setItem('besideOff', beside.open ? '1' : ''));
  const here = beside.querySelector('[aria-current]');
  if (beside.open && here) beside.parentElement.scrollTop = here.offsetTop - 100;
  keys.add('[', () => beside.firstElementChild.click());
}
const symbols = document.querySelector('.reading > aside > details');
if (symbols && matchMedia('(max-width: 800px)').matches) symbols.open = false; // the text comes first on a phone
if (symbols) symbols.parentElement.classList.add('asked');
if (symbols) keys.add(']', () => { symbols.parentElement.hidden = !symbols.parentElement.hidden; });

// What a page of another site shows the marked lines with, or the first ones.
const embed = document.getElementById('copyEmbed');
if (embed && navigator.clipboard) {
  const quoted = s => '"' + s.replace(/[&"<>]/g, c => '&#' + c.charCodeAt(0) + ';') + '"';
  embed.hidden = false;
  embed.addEventListener('click', () => {
    const marked = location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/);
    const ends = marked ? [+marked[1], +(marked[2] || marked[1])].sort((a, b) => a - b) : [1, +embed.dataset.lines];
    const count = ends[1] - ends[0] + 1;
    if (count > 500) return say('At most 500 lines can be embedded.');
    const from = embed.dataset.address + (marked ? '?lines=' + ends.join('-') : '');
    const frame = `<iframe src=${quoted(from)} title=${quoted(embed.dataset.name)} width="100%" height="${Math.min(count, 25) * 20 + 100}" loading="lazy"></iframe>`;
    navigator.clipboard.writeText(frame).then(() => say('The frame is copied.'));
  });
}

const shown = document.querySelector('[data-here]');
if (shown) keys.add('f', () => {
  const box = document.getElementById('query');
  const place = document.querySelector('.in :checked');
  if (place) place.checked = false; // the file is in the query
  box.value = shown.dataset.here + ' ';
  box.focus();
});

// The link to an editor is made of a form that the reader has set; an address of
// another scheme than these is none.
const schemes = /^(vscode|vscode-insiders|vscodium|cursor|zed|idea|jetbrains|subl|txmt|emacs):\/\//;
const editors = [...document.querySelectorAll('[data-key="."]')], address = localStorage.getItem('editor') || '';
if (editors.length && schemes.test(address)) {
  const part = s => s.split('/').map(encodeURIComponent).join('/');
  const aim = () => {
    const line = (location.hash.match(/^#L(\d+)/) || [0, '1'])[1];
    const values = { repo: part(editors[0].dataset.repo), path: part(editors[0].dataset.path), line };
    for (const e of editors) e.href = address.replace(/\{(repo|path|line)\}/g, (_, name) => values[name]);
  };
  aim();
  for (const e of editors) { e.hidden = false; e.addEventListener('click', aim); }
  keys.add('.', () => editors[0].click());
}

for (const key of ['b', 'h', 'm']) keys.add(key, () => { const a = document.querySelector('[data-key=' + key + ']'); if (a) a.click(); });
