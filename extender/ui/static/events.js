// Server-sent events of a page, which a button pauses. A browser opens at most six connections to a server, so a hidden
// tab has none.

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const RETRY_MILLISECONDS = 10_000;
const SILENT_MILLISECONDS = 30_000; // the server sends something every ten seconds
const connection = document.getElementById("connection");
const button = document.getElementById("pause");

/** Since when the oldest data of a page is not current, in milliseconds since 1970; Infinity while all of it is. */
const getStaleTime = (page) => Date.parse(page.querySelector("[data-made-at]")?.dataset.staleTime ?? "") || Infinity;

/** When the server made a page, in milliseconds since 1970; now if the page does not say it. */
const getMadeAt = (page) => Date.parse(page.querySelector("[data-made-at]")?.dataset.madeAt ?? "") || Date.now();

let lastCurrent = getMadeAt(document); // when the page last showed the newest state
let staleTime = getStaleTime(document); // when watches of the server were lost, and the data was last current
let clockError = Date.now() - lastCurrent; // of the browser, whose clock may be wrong by hours
let failure = ""; // why the page does not show what it receives
let paused = false;
let showLive = () => {};

export const getTime = () => Date.now() - clockError;

export const isPaused = () => paused;

/** Set the clock and the age of the data by a page that the server has made now. */
export function setClock(page) {
  clockError = Date.now() - getMadeAt(page);
  staleTime = getStaleTime(page);
}

/** Set since when the data is not current; an empty text while it is. */
export function setStaleTime(text) {
  staleTime = Date.parse(text) || Infinity;
}

/** Remember that the page shows the state at `time`. */
export function setCurrent(time) {
  lastCurrent = time;
}

/** When the page last showed the newest data, with the date if that was another day. */
export function formatLastCurrent() {
  const [last, now] = [Math.min(lastCurrent, staleTime), getTime()].map((time) => new Date(time).toISOString());
  const time = `${last.slice(11, 19)} UTC`;
  return last.slice(0, 10) === now.slice(0, 10) ? time : `${last.slice(0, 10)} ${time}`;
}

/** Show a status of the connection. Equal text is not replaced, since a screen reader would read it again. */
export function setStatus(text, isLost = false) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

/** Show why the page does not show what it receives, or with an empty text that it is live. */
export function setFailure(text) {
  failure = text;
  showLive();
}

/**
 * Call `receive` with the text of each event of a stream, the time of its arrival, and whether it is the first one of a
 * connection; except while the page is paused.
 */
export function followEvents(name, receive) {
  let events = null;
  let timer = 0;
  let received = null; // the newest event, also while the page is paused
  let lastHeard = 0;
  const hear = () => {
    lastHeard = performance.now();
  };
  const showNotLive = () => setStatus(`Not live, as of ${formatLastCurrent()}. Connecting again.`, true);
  showLive = () => {
    if (events?.readyState !== EventSource.OPEN) return;
    if (failure || paused) setStatus(failure || "Paused.", Boolean(failure));
    else if (staleTime === Infinity) setStatus("Live.");
    else setStatus(`Not live: some of the data is as of ${formatLastCurrent()}.`, true);
  };

  function connect() {
    const wasConnected = events !== null;
    let isFirst = true;
    events?.close();
    clearTimeout(timer);
    if (document.hidden) return;
    if (wasConnected) showNotLive();
    hear(); // a proxy may keep the answer of the server for itself
    events = new EventSource(`${PREFIX}/events/${name}`);
    for (const type of ["open", "alive", "message"]) events.addEventListener(type, hear);
    events.addEventListener("message", (event) => {
      received = [event.data, getTime()];
      if (!paused) receive(...received, isFirst);
      isFirst = false;
      showLive();
      document.documentElement.dataset.live = "true";
    });
    events.addEventListener("error", () => {
      isFirst = true;
      // A browser does not connect again by itself after a status such as 502 of a proxy whose server starts again.
      if (events.readyState === EventSource.CLOSED) timer = setTimeout(connect, RETRY_MILLISECONDS);
      showNotLive();
    });
  }

  /** A browser reports no error when a connection is gone without a word, as after a change of the network. */
  function connectAfterSilence() {
    const isSilent = performance.now() - lastHeard > SILENT_MILLISECONDS;
    if (events && events.readyState !== EventSource.CLOSED && isSilent) connect();
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Continue" : "Pause";
    showLive();
    if (!paused && received) receive(...received, false); // the next one may come later
  });
  document.addEventListener("visibilitychange", connect);
  setInterval(connectAfterSilence, RETRY_MILLISECONDS);
  setStatus("Connecting.");
  connect();
}
