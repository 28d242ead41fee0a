// Screen: one player with its rendering progress, its error message, and still frames where the browser cannot play the video.

import { el, fetchJson } from './dom.js';

const FIRST_POLL_MS = 150;
const MAX_POLL_MS = 500;
const STILL_DELAY_MS = 80;

export class Screen {
  constructor(name, { onReady, muted = true } = {}) {
    this.onReady = onReady;
    this.video = el('video', { playsinline: true, preload: 'auto', 'aria-label': `${name} video`, disablepictureinpicture: true });
    this.video.muted = muted;
    this.video.addEventListener('error', () => { if (this.video.getAttribute('src')) this.#showStills(); });
    this.still = el('img', { hidden: true, alt: `${name} video, one frame` });
    this.still.addEventListener('error', () => { if (!this.still.hidden) this.#showError('This video can no longer be shown; its file may have been removed.'); });
    this.badge = el('span', { class: 'badge', hidden: true }, 'corrupted frame');
    this.note = el('div', { class: 'note', role: 'status' });
    this.caption = el('figcaption', {}, name);
    this.node = el('figure', { class: 'screen' }, this.caption, el('div', { class: 'frame' }, this.video, this.still, this.note, this.badge));
    this.requestId = 0;
    this.frame = 0;
  }

  /** Load the video at a URL, polling its state until it is rendered. */
  async load(url) {
    const requestId = ++this.requestId;
    this.url = url;
    this.still.hidden = true;
    let delay = FIRST_POLL_MS;
    for (;;) {
      let status;
      try {
        status = await fetchJson(`${url}.json`);
      } catch {
        status = { state: 'failed', message: 'The viewer does not respond; is `jostle view` still running?' };
      }
      if (requestId !== this.requestId) return null;
      if (status.state === 'ready') {
        this.note.replaceChildren();
        this.node.style.setProperty('--shape', `${status.film.size[0]} / ${status.film.size[1]}`);
        this.video.src = `${url}.mp4`;
        if (this.onReady) this.onReady(status.film);
        return status.film;
      }
      if (status.state !== 'waiting' && status.state !== 'rendering') {
        this.#showError(status.message || 'This video cannot be shown.');
        return null;
      }
      const text = status.state === 'waiting' ? 'waiting to be rendered' : `rendering ${Math.round(100 * status.share)} %`;
      this.note.replaceChildren(el('span', {}, text), el('progress', { max: 1, value: status.share, 'aria-label': text }));
      await new Promise((resolve) => setTimeout(resolve, delay));
      delay = Math.min(MAX_POLL_MS, delay * 1.4);
    }
  }

  /** Fall back to still frames where the browser cannot play the video. */
  #showStills() {
    this.still.hidden = false;
    this.caption.title = 'The browser cannot play this video; frames are shown one by one.';
    this.showFrame(this.frame);
  }

  /** Set the frame to display; only still frames need it, as players show it by themselves. */
  showFrame(frame) {
    this.frame = frame;
    if (this.still.hidden) return;
    clearTimeout(this.stillTimer);
    this.stillTimer = setTimeout(() => { this.still.src = `${this.url}.jpg?frame=${frame}`; }, STILL_DELAY_MS);
  }

  #showError(message) {
    this.still.hidden = true;
    this.note.replaceChildren(
      el('span', {}, message),
      el('button', { type: 'button', onclick: () => this.load(this.url) }, 'Try again'));
  }
}
