// Keys of a file and of a directory.
import { keys } from './keys.js';
import { say } from './part.js';
import './finder.js';
import './lines.js';
import './names.js';

keys.add('y', () => {
  const link = document.getElementById('permalink');
  if (link) { history.replaceState(null, '', link.getAttribute('href') + location.hash); say('The address names this very commit now.'); }
});
keys.add('l', () => {
  const form = document.getElementById('goto');
  if (form) { form.hidden = false; form.querySelector('input').focus(); }
});
const form = document.getElementById('goto');
if (form) {
  form.addEventListener('submit', e => {
    e.preventDefault();
    const n = form.querySelector('input').value.match(/^\d+(-\d+)?$/);
    if (n) location.hash = '#L' + n[0].replace('-', '-L');
    form.hidden = true;
    document.getElementById('code').focus({ preventScroll: true });
  });
  form.addEventListener('keydown', e => { if (e.key === 'Escape') { form.hidden = true; document.getElementById('code').focus({ preventScroll: true }); } });
}
for (const key of ['b', 'h']) keys.add(key, () => { const a = document.querySelector('[data-key=' + key + ']'); if (a) location.href = a.href; });
