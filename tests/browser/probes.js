// Functions that tests evaluate in a page, as one object expression.
({
  // The number of the frame that a video or a picture shows, read from its stripes; -1 where it is black.
  frameOf(video) {
    const canvas = document.createElement('canvas');
    canvas.width = video.videoWidth || video.naturalWidth;
    canvas.height = video.videoHeight || video.naturalHeight;
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    pen.drawImage(video, 0, 0);
    const lit = (i) => pen.getImageData(Math.floor(((i + 0.5) * canvas.width) / 8), canvas.height >> 1, 1, 1).data[1] >= 128;
    if (!lit(7)) return -1;
    return [0, 1, 2, 3, 4, 5, 6].reduce((number, i) => number | (lit(i) ? 1 << i : 0), 0);
  },

  // The mean brightness of a video.
  light(video) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    pen.drawImage(video, 0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data[1];
  },

  // The lowest contrast of any text with its background, by the formula of WCAG, and its element.
  contrast() {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      return [...pen.getImageData(0, 0, 1, 1).data];
    };
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const bright = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let least = [99, ''];
    const check = (node, ink, paper) => {
      const [front, back] = [bright(rgba(ink)), bright(rgba(paper))];
      const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
      if (ratio < least[0]) least = [ratio, `${node.tagName} ${node.className} ${node.textContent.slice(0, 30)}`];
    };
    for (const node of document.querySelectorAll('body *:not(option)')) {
      const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
      if (!hasText || !node.checkVisibility() || node.closest('svg, .screen .frame')) continue;
      let backdrop = node;
      while (backdrop && rgba(getComputedStyle(backdrop).backgroundColor)[3] < 255) backdrop = backdrop.parentElement;
      check(node, getComputedStyle(node).color, getComputedStyle(backdrop || document.body).backgroundColor);
    }
    for (const node of document.querySelectorAll('svg a text')) // squares of a map
      check(node, getComputedStyle(node).fill, getComputedStyle(node.previousElementSibling).fill);
    return least;
  },

  // Controls without an accessible name.
  nameless() {
    const isNamed = (node) => node.ariaLabel || node.textContent.trim() || (node.labels && node.labels.length);
    const controls = [...document.querySelectorAll('button, select, input, a, video')];
    return controls.filter((node) => node.checkVisibility() && !isNamed(node)).map((node) => node.outerHTML);
  },

  // Seconds between the times of the two players.
  apart() {
    const [first, second] = document.querySelectorAll('video');
    return Math.abs(first.currentTime - second.currentTime);
  },

  headings: () => [...document.querySelectorAll('h1, h2, h3, h4')].map((node) => Number(node.tagName[1])),

  // Whether both players exist, are loaded and have finished seeking.
  arrived: () => {
    const videos = [...document.querySelectorAll('video')];
    return videos.length === 2 && videos.every((video) => video.readyState >= 2 && !video.seeking);
  },
})
