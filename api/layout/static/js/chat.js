// Shows an answer while it is being given: each step, and the text as it comes.
// A connection that breaks goes on behind the last event, at any node. In the end
// the page is drawn anew where it stands.
import { fetchPart, parse, put, say } from './part.js';

const later = 3000, soon = 300;

// element is the first one of a class in a turn, made where there is none.
function element(turn, tag, name) {
  let found = turn.querySelector('.' + name);
  if (!found) {
    found = document.createElement(tag);
    found.className = name;
    turn.querySelector('.doing').before(found);
  }
  return found;
}

function follow() {
  const turn = document.querySelector('[data-events]');
  if (!turn) {
    // All is said, and about to be kept: a further question has to wait for that.
    if (document.querySelector('#chat input[value=stop]')) setTimeout(redraw, soon);
    return;
  }
  const doing = turn.querySelector('.doing'), steps = element(turn, 'ol', 'steps'), answer = element(turn, 'pre', 'answer');
  answer.replaceChildren();
  let step = 0, tick = 0;

  const source = new EventSource(turn.dataset.events);
  source.addEventListener('message', message => {
    const e = JSON.parse(message.data), low = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
    const html = parse(e.html || ''), text = html.textContent;
    switch (e.kind) {
      case 'step': step = e.step; doing.textContent = 'Step ' + step; break;
      case 'text': case 'cite': answer.append(html); break;
      case 'aside': case 'again': answer.replaceChildren(); break;
      case 'call': case 'result': case 'note': {
        // One line tells of all tries at a model: how long until the next.
        const last = steps.lastElementChild, line = e.kind === 'note' && last?.className === 'note' ? last : document.createElement('li');
        line.className = e.kind;
        line.replaceChildren(html);
        steps.append(line);
        clearInterval(tick);
        const wait = /^(.* in )(\d+)s\.$/.exec(text), next = wait && Date.now() + wait[2] * 1000;
        if (wait) tick = setInterval(() => { line.textContent = wait[1] + Math.max(0, Math.ceil((next - Date.now()) / 1000)) + 's.'; }, 500);
        if (e.kind === 'call') doing.textContent = 'Step ' + step + ': ' + text;
        break;
      }
      case 'done':
        clearInterval(tick);
        source.close();
        // Where its node was lost, what this page has is all that is left of the answer.
        redraw(text === 'done' ? 'The answer is complete.' : 'The question has ended without an answer.', answer);
    }
    document.documentElement.dataset.heard = message.lastEventId;
    if (low) scrollTo(scrollX, document.documentElement.scrollHeight);
  });

  // The browser tries again by itself, unless it was refused.
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(redraw, later);
  });
}

// redraw asks for the thread as it is, and follows what is left of it.
async function redraw(done, partial) {
  try {
    const html = await fetchPart(location.href, 'chat'), here = document.getElementById('chat').contains(document.activeElement);
    put(document.getElementById('chat'), html);
    const last = [...document.querySelectorAll('#chat .turn')].pop(), failed = last && last.querySelector('[role=alert]');
    if (failed && partial && partial.textContent && !last.querySelector('.answer')) failed.before(partial);
    if (here) (document.querySelector('#chat textarea') || document.querySelector('#chat form button') || document.getElementById('main')).focus({ preventScroll: true }); // what had the focus is gone
  } catch {
    setTimeout(redraw, later, done, partial);
    return;
  }
  if (done) say(done);
  follow();
}

follow();
