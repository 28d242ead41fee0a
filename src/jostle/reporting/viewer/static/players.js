// Linked players: the first video that can play leads, the other follows, and a pause ends on one frame in both.

export const RATES = [0.1, 0.25, 0.5, 1, 1.5, 2, 4];
const MAX_DRIFT_S = 0.3; // beyond which the follower seeks instead of changing its speed

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
      video.addEventListener('seeked', () => this.#finishSeek(video));
      video.addEventListener('loadeddata', () => this.#syncVideo(video));
      video.addEventListener('ended', () => this.#handleEnd());
      video.addEventListener('waiting', () => this.#emit('state'));
    }
  }

  /** Set the frame times, size and length of the videos; only the first call has an effect. */
  setFilm(film) {
    if (this.film) return;
    this.film = film;
    this.duration = film.end_s;
    this.#emit('film');
    this.seek(this.time);
  }

  get frames() { return this.film ? this.film.frames : 0; }

  get frame() { return this.frameAt(this.time); }

  timeOf(frame) {
    if (!this.film) return 0;
    const { times, rate: [numerator, denominator] } = this.film;
    return times ? times[frame] : (frame * denominator) / numerator;
  }

  frameAt(time) {
    if (!this.film) return 0;
    const { times, rate: [numerator, denominator], frames } = this.film;
    if (!times) return Math.max(0, Math.min(frames - 1, Math.floor((time * numerator) / denominator + 1e-4)));
    let low = 0;
    let high = frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time + 1e-6) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Return the middle of a frame's time, which no player rounds to a neighbouring frame. */
  #middleOf(frame) {
    const end = frame + 1 < this.frames ? this.timeOf(frame + 1) : this.duration;
    return (this.timeOf(frame) + end) / 2;
  }

  #readyVideos() { return this.videos.filter((video) => video.readyState >= 1 && !video.error); }

  seek(time) {
    this.time = Math.max(0, Math.min(time, this.duration || time));
    if (this.film && !this.playing) this.time = this.timeOf(this.frame);
    for (const video of this.#readyVideos()) this.#syncVideo(video);
    this.#emit('time');
  }

  seekFrame(frame) {
    this.seek(this.timeOf(Math.max(0, Math.min(this.frames - 1, frame))));
  }

  step(frames) {
    this.pause();
    this.seekFrame(this.frame + frames);
  }

  #syncVideo(video) {
    if (video.readyState < 1 || !this.film) return;
    if (video.seeking) {
      video.seekPending = true; // it seeks to the newest position once this seek has finished
      return;
    }
    const target = this.#middleOf(this.frame);
    if (Math.abs(video.currentTime - target) > 1e-4) video.currentTime = target;
  }

  #finishSeek(video) {
    if (video.seekPending) {
      video.seekPending = false;
      this.#syncVideo(video);
    }
    this.#emit('seeked');
  }

  async play() {
    const videos = this.#readyVideos();
    if (!videos.length) return;
    if (this.time >= this.duration - 1.5 / this.#fps()) this.seek(0);
    this.playing = true;
    this.setRate(this.rate);
    this.#emit('state');
    try {
      await Promise.all(videos.map((video) => video.play()));
    } catch {
      this.pause(); // the page was left, or a seek interrupted it
      return;
    }
    requestAnimationFrame(() => this.#syncFollowers());
  }

  pause() {
    if (!this.playing) return;
    const [leader] = this.#readyVideos();
    this.playing = false;
    for (const video of this.videos) video.pause();
    if (leader) this.time = Math.min(leader.currentTime, this.duration);
    this.seek(this.time);
    this.#emit('state');
  }

  #handleEnd() {
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
    this.#emit('state');
  }

  /** Move by some steps in the list of speeds. */
  changeRate(steps) {
    const nearest = RATES.reduce((best, rate, i) => (Math.abs(rate - this.rate) < Math.abs(RATES[best] - this.rate) ? i : best), 0);
    this.setRate(RATES[Math.max(0, Math.min(RATES.length - 1, nearest + steps))]);
  }

  #fps() { return this.film ? this.film.rate[0] / this.film.rate[1] : 25; }

  #syncFollowers() {
    if (!this.playing) return;
    const [leader, ...followers] = this.#readyVideos();
    if (!leader) return;
    this.time = Math.min(leader.currentTime, this.duration);
    for (const video of followers) {
      if (video.paused && !video.ended) video.play().catch(() => {});
      const drift = video.currentTime - leader.currentTime;
      if (Math.abs(drift) > MAX_DRIFT_S) video.currentTime = leader.currentTime;
      else video.playbackRate = Math.abs(drift) < 0.25 / this.#fps() ? this.rate : this.rate * (1 - Math.max(-0.1, Math.min(0.1, 2 * drift)));
    }
    this.#emit('time');
    requestAnimationFrame(() => this.#syncFollowers());
  }

  #emit(name) { this.dispatchEvent(new Event(name)); }
}
