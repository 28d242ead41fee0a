// Two videos that move as one: the first that can play leads, the other is kept in step, and a pause ends on one frame.

export const RATES = [0.1, 0.25, 0.5, 1, 1.5, 2, 4];
const FAR = 0.3; // seconds apart from which the follower jumps instead of hurrying

export class Players extends EventTarget {
  constructor(videos) {
    super();
    this.videos = videos;
    this.time = 0;
    this.rate = 1;
    this.playing = false;
    this.duration = 0;
    this.film = null;
    this.loop = false;
    for (const video of videos) {
      video.addEventListener('seeked', () => this.#catchUp(video));
      video.addEventListener('loadeddata', () => this.#place(video));
      video.addEventListener('ended', () => this.#over());
      video.addEventListener('waiting', () => this.#tell('state'));
    }
  }

  /** What the frames are; known as soon as one of the videos is. */
  setFilm(film) {
    if (this.film) return;
    this.film = film;
    this.duration = film.end_s;
    this.#tell('film');
    this.seek(this.time);
  }

  get frames() { return this.film ? this.film.frames : 0; }

  get frame() { return this.frameAt(this.time); }

  timeOf(frame) {
    if (!this.film) return 0;
    const { times, rate: [over, under] } = this.film;
    return times ? times[frame] : (frame * under) / over;
  }

  frameAt(time) {
    if (!this.film) return 0;
    const { times, rate: [over, under], frames } = this.film;
    if (!times) return Math.max(0, Math.min(frames - 1, Math.floor((time * over) / under + 1e-4)));
    let low = 0;
    let high = frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time + 1e-6) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The middle of a frame's time: no rounding of a player leads to its neighbour. */
  #middle(frame) {
    const end = frame + 1 < this.frames ? this.timeOf(frame + 1) : this.duration;
    return (this.timeOf(frame) + end) / 2;
  }

  #ready() { return this.videos.filter((video) => video.readyState >= 1 && !video.error); }

  seek(time) {
    this.time = Math.max(0, Math.min(time, this.duration || time));
    if (this.film && !this.playing) this.time = this.timeOf(this.frame);
    for (const video of this.#ready()) this.#place(video);
    this.#tell('time');
  }

  seekFrame(frame) {
    this.seek(this.timeOf(Math.max(0, Math.min(this.frames - 1, frame))));
  }

  step(frames) {
    this.pause();
    this.seekFrame(this.frame + frames);
  }

  #place(video) {
    if (video.readyState < 1 || !this.film) return;
    if (video.seeking) {
      video.behind = true; // it goes on to the newest place when it has arrived
      return;
    }
    const wanted = this.#middle(this.frame);
    if (Math.abs(video.currentTime - wanted) > 1e-4) video.currentTime = wanted;
  }

  #catchUp(video) {
    if (video.behind) {
      video.behind = false;
      this.#place(video);
    }
    this.#tell('seeked');
  }

  async play() {
    const ready = this.#ready();
    if (!ready.length) return;
    if (this.time >= this.duration - 1.5 / this.#fps()) this.seek(0);
    this.playing = true;
    this.setRate(this.rate);
    this.#tell('state');
    try {
      await Promise.all(ready.map((video) => video.play()));
    } catch {
      this.pause(); // the page was left, or a seek came between
      return;
    }
    requestAnimationFrame(() => this.#follow());
  }

  pause() {
    if (!this.playing) return;
    const [leader] = this.#ready();
    this.playing = false;
    for (const video of this.videos) video.pause();
    if (leader) this.time = Math.min(leader.currentTime, this.duration);
    this.seek(this.time);
    this.#tell('state');
  }

  #over() {
    if (!this.playing) return;
    this.pause();
    if (this.loop) this.play();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  setRate(rate) {
    this.rate = Math.max(RATES[0], Math.min(RATES[RATES.length - 1], rate));
    for (const video of this.videos) video.playbackRate = this.rate;
    this.#tell('state');
  }

  faster(steps) {
    const nearest = RATES.reduce((best, rate, i) => (Math.abs(rate - this.rate) < Math.abs(RATES[best] - this.rate) ? i : best), 0);
    this.setRate(RATES[Math.max(0, Math.min(RATES.length - 1, nearest + steps))]);
  }

  #fps() { return this.film ? this.film.rate[0] / this.film.rate[1] : 25; }

  #follow() {
    if (!this.playing) return;
    const [leader, ...others] = this.#ready();
    if (!leader) return;
    this.time = Math.min(leader.currentTime, this.duration);
    for (const video of others) {
      if (video.paused && !video.ended) video.play().catch(() => {});
      const ahead = video.currentTime - leader.currentTime;
      if (Math.abs(ahead) > FAR) video.currentTime = leader.currentTime;
      else video.playbackRate = Math.abs(ahead) < 0.25 / this.#fps() ? this.rate : this.rate * (1 - Math.max(-0.1, Math.min(0.1, 2 * ahead)));
    }
    this.#tell('time');
    requestAnimationFrame(() => this.#follow());
  }

  #tell(what) { this.dispatchEvent(new Event(what)); }
}
