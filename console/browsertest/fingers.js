// What the tests find on a page, and which keys lead there. A label is what a person sees or a screen reader says.
const usable = 'button, a[href], [role=tab], [role=option], [role^=menuitem], [role=treeitem], label, summary';
const text = (e) => (e.getAttribute('aria-label') ?? e.textContent).replace(/\s+/g, ' ').trim();
const says = (e, label) => text(e) === label || e.title === label ||
  [...e.querySelectorAll('*')].some((inner) => !inner.closest('.visually-hidden') && text(inner) === label);
const offered = (e) => e.checkVisibility() && e.ariaDisabled !== 'true' && !e.disabled && !e.closest('[inert]') &&
  (!document.querySelector('dialog[open]') || !!e.closest('dialog[open], .toasts, [popover]'));

/** labelled finds what can be used under a label; the newest, which is on top. An exact label goes first. */
window.labelled = (label, within = 'body') => {
  const all = [...document.querySelectorAll(usable)].filter((e) => e.closest(within) && offered(e));
  return all.findLast((e) => text(e) === label) ?? all.findLast((e) => says(e, label));
};

/** input finds the input, list or box with a label, or with a placeholder. */
window.input = (label) => {
  const found = [...document.querySelectorAll('label')]
    .filter((l) => offered(l) && l.textContent.replace(/\s+/g, ' ').trim() === label)
    .map((l) => l.control);
  return found.findLast(Boolean) ?? [...document.querySelectorAll('input, textarea, select')]
    .findLast((e) => offered(e) && (e.ariaLabel === label || e.placeholder === label));
};

// Captions are shown in capitals, which readers do not hear.
const has = (whole, words) => whole.replace(/\s+/g, ' ').toLowerCase().includes(words.toLowerCase());
window.onPage = (words) => has(document.body.innerText, words);

// What toasts have said, since a busy machine may look after they have gone.
const said = [];
new MutationObserver((changes) => {
  for (const c of changes) for (const e of c.addedNodes) if (e.classList?.contains('toast')) said.push(e.innerText);
}).observe(document, {childList: true, subtree: true});

/** shows is true when words are on the page, or a toast has said them that nobody has looked at yet. */
window.shows = (words) => {
  const at = said.findIndex((toast) => has(toast, words));
  if (at >= 0) said.splice(at, 1);
  return at >= 0 || onPage(words);
};

/** middle is the point of an element that a mouse would click. */
window.middle = (e) => {
  const r = e.getClientRects()[0] ?? e.getBoundingClientRect();
  return [r.left + r.width / 2, r.top + r.height / 2];
};

let target, meeting = true; // a new page has nothing to aim at
addEventListener('click', (e) => { meeting ||= !!e.target.closest && around(target).contains(e.target); }, true);
const around = (e) => e.closest('label') ?? e;

/** aim is the middle of an element, which the next click should meet. */
window.aim = (e) => {
  target = e;
  meeting = false;
  return middle(e);
};

/** met is true when the click has met the element, or the element went away under it. */
window.met = () => meeting || !target.isConnected;

/** onScreen is true when nothing else is before the middle of an element; otherwise it is brought into view. */
window.onScreen = (e) => {
  const hit = document.elementFromPoint(...middle(e));
  if (hit && (e.contains(hit) || hit.closest('label')?.control === e)) return true;
  e.scrollIntoView({block: 'center'});
  return false;
};

/** uncovered is true when nothing but a dialog is before the middle of an element, or it is not there. */
window.uncovered = (selector) => {
  const e = document.querySelector(selector);
  return !e || !!document.querySelector('dialog[open]') || e.contains(document.elementFromPoint(...middle(e)));
};

/** way is the next key towards an element; '' when it has the focus. Once Tab has been chosen, it stays. */
window.way = (e, tab) => {
  const now = document.activeElement;
  if (e.matches('label')) e = e.control ?? e;
  if (now === e) return '';
  const role = e.getAttribute('role') ?? '';
  if (role === 'option') {
    return inList(e, document.querySelector(`[aria-controls="${e.closest('[role=listbox]').id}"]`), tab);
  }
  if (role === 'treeitem') return inTree(e, e.closest('[role=tree]'), tab);
  if (role === 'tab' && now.getAttribute('role') !== 'tab') {
    return towards(e.closest('[role=tablist]').querySelector('[aria-selected=true]'), tab);
  }
  if (role === 'tab') return after(now, e) ? 'ArrowRight' : 'ArrowLeft';
  if (role.startsWith('menuitem')) return after(now, e) || !now.closest('[popover]') ? 'ArrowDown' : 'ArrowUp';
  if (e.type === 'radio') {
    const chosen = [...document.getElementsByName(e.name)].find((r) => r.checked) ?? e;
    if (now.name === e.name) return after(now, e) ? 'ArrowDown' : 'ArrowUp';
    if (now !== chosen) return towards(chosen, tab);
  }
  if (e.matches('a.open') && e.closest('.list')) return rowKey(e);
  return towards(e, tab);
};

const after = (a, b) => !!(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING);

const inList = (e, box, tab) => {
  if (document.activeElement !== box) return towards(box, tab);
  const chosen = e.closest('[role=listbox]').querySelector('[aria-selected=true]');
  return chosen === e ? '' : !chosen || after(chosen, e) ? 'ArrowDown' : 'ArrowUp';
};

const inTree = (e, tree, tab) => {
  if (document.activeElement !== tree) return towards(tree, tab);
  const active = document.getElementById(tree.getAttribute('aria-activedescendant'));
  return active === e ? '' : !active || after(active, e) ? 'ArrowDown' : 'ArrowUp';
};

// Rows have keys of their own, which do nothing while one types.
const rowKey = (e) => {
  const now = document.activeElement;
  if (now.matches('input:not([type=checkbox]), textarea')) return 'Tab';
  const at = document.querySelector('.list tr.cursor, .list tr.current');
  return !at || after(at, e) ? 'j' : 'k';
};

const towards = (e, tab) => {
  if (document.activeElement === e) return '';
  if (tab) return tab;
  const layer = document.querySelector('dialog[open]') ?? document;
  const all = [...layer.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((x) => x.tabIndex >= 0 && !x.disabled && x.checkVisibility());
  const to = all.indexOf(e), from = all.indexOf(document.activeElement);
  const ahead = (to - from + all.length) % all.length;
  return ahead <= all.length - ahead ? 'Tab' : 'Shift+Tab';
};

/** pressOn is the key that uses what has the focus. */
window.pressOn = (e) => (e.matches('[type=checkbox], [type=radio]') ? ' ' : '\r');

/** lately are the last keys, and where they were pressed: for the message of a failure. */
window.lately = [];
addEventListener('keydown', (e) => {
  const on = e.target.ariaLabel || e.target.textContent || e.target.id || '';
  lately.push(`${e.key} on ${e.target.tagName ?? 'the page'} ${on.slice(0, 30)}`);
  if (lately.length > 30) lately.shift();
}, true);

/** tooWide names the elements that reach out of the window, and are not scrolled by themselves. */
window.tooWide = () => [...document.querySelectorAll('body *')].filter((e) => {
  if (e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let up = e.parentElement; up; up = up.parentElement) {
    if (getComputedStyle(up).overflowX !== 'visible') return false;
  }
  return true;
}).map((e) => `${e.tagName.toLowerCase()}.${e.className} ${Math.round(e.getBoundingClientRect().right)}`);

/** savedFiles are the files that the page has offered, the newest last. */
window.savedFiles = [];
const offer = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  savedFiles.push(blob);
  return offer(blob);
};

// Requests under way; a stream has no end.
let pending = 0;
const send = window.fetch;
window.fetch = async (input, init) => {
  const request = new Request(input, init);
  if (request.headers.get('Accept') === 'text/event-stream') return send(request);
  pending++;
  try {
    return await send(request);
  } finally {
    pending--;
  }
};

/** still is true when the screen is there, and nothing was sent or loaded for some frames. */
window.still = async () => {
  for (let frame = 0; frame < 6; frame++) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    if (pending || !document.querySelector('main h1, main h2') ||
      document.querySelector('[aria-busy=true], .skeleton')) return false;
  }
  return true;
};
