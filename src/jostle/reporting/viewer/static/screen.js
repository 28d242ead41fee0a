// One player on a page: says how far the rendering is, plays when it is done, and says why when it cannot.

import { el, getJson } from './dom.js';

const SOON = 150;
const LATER = 500;

export class Screen {
  constructor(name, { onready, muted = true } = {}) {
    this.onready = onready;
    this.video = el('video', { playsinline: true, preload: 'auto', 'aria-label': `${name} video`, disablepictureinpicture: true });
    this.video.muted = muted;
    this.video.addEventListener('error', () => { if (this.video.getAttribute('src')) this.#unplayable(); });
    this.still = el('img', { hidden: true, alt: `${name} video, one frame` });
    this.still.addEventListener('error', () => { if (!this.still.hidden) this.#failed('This video can no longer be shown; its file may be gone.'); });
    this.badge = el('span', { class: 'badge', hidden: true }, 'corrupted frame');
    this.note = el('div', { class: 'note', role: 'status' });
    this.caption = el('figcaption', {}, name);
    this.node = el('figure', { class: 'screen' }, this.caption, el('div', { class: 'frame' }, this.video, this.still, this.note, this.badge));
    this.asked = 0;
  }

  /** Show the video at an address: first its state, until it is rendered. */
  async load(address) {
    const asked = ++this.asked;
    this.address = address;
    this.still.hidden = true;
    let wait = SOON;
    for (;;) {
      let told;
      try {
        told = await getJson(`${address}.json`);
      } catch {
        told = { state: 'failed', message: 'The viewer does not answer; is `jostle view` still running?' };
      }
      if (asked !== this.asked) return null;
      if (told.state === 'ready') {
        this.note.replaceChildren();
        this.node.style.setProperty('--shape', `${told.film.size[0]} / ${told.film.size[1]}`);
        this.video.src = `${address}.mp4`;
        if (this.onready) this.onready(told.film);
        return told.film;
      }
      if (told.state !== 'waiting' && told.state !== 'rendering') {
        this.#failed(told.message || 'This video cannot be shown.');
        return null;
      }
      const said = told.state === 'waiting' ? 'waiting to be rendered' : `rendering ${Math.round(100 * told.share)} %`;
      this.note.replaceChildren(el('span', {}, said), el('progress', { max: 1, value: told.share, 'aria-label': said }));
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(LATER, wait * 1.4);
    }
  }

  /** Where the browser cannot play the video, its frames are shown one by one. */
  #unplayable() {
    this.still.hidden = false;
    this.caption.title = 'The browser cannot play this video; frames are shown one by one.';
    this.show(this.shown || 0);
  }

  /** Show a frame, if frames are shown one by one. */
  show(frame) {
    this.shown = frame;
    if (this.still.hidden) return;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => { this.still.src = `${this.address}.jpg?frame=${frame}`; }, 80);
  }

  #failed(message) {
    this.still.hidden = true;
    this.note.replaceChildren(
      el('span', {}, message),
      el('button', { type: 'button', onclick: () => this.load(this.address) }, 'Try again'));
  }
}
