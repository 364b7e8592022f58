// The keys, over the page that one reads.
import { fetchPart, parse } from './part.js';

let dialog = null;

export async function open() {
  if (!dialog) {
    const table = parse(await fetchPart('/help/keys', 'sheet')).querySelector('#keys + div');
    const title = document.createElement('h1'), all = document.createElement('a'), more = document.createElement('p');
    dialog = document.createElement('dialog');
    dialog.id = 'sheet';
    dialog.setAttribute('aria-labelledby', 'sheetTitle');
    title.id = 'sheetTitle';
    title.textContent = 'Keys';
    all.href = '/help/keys';
    all.textContent = 'Queries, and keys of your own';
    more.append(all);
    dialog.append(title, table, more);
    dialog.addEventListener('click', e => { if (e.target === dialog) dialog.close(); });
    document.body.append(dialog);
  }
  dialog.showModal();
}
