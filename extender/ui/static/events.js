// Server-sent events of a page, which a button pauses. A browser opens at most six connections to a server, so a hidden
// tab has none.

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const RETRY_MILLISECONDS = 10_000;
const connection = document.getElementById("connection");
const button = document.getElementById("pause");

let failure = ""; // why the page does not show what it receives
let showLive = () => {};

export const formatTime = (time) => `${new Date(time).toISOString().slice(11, 19)} UTC`;

function setStatus(text, isLost = false) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

/** Show why the page does not show what it receives, or with an empty text that it is live. */
export function setFailure(text) {
  failure = text;
  showLive();
}

/** Call `receive` with the text of each event of a stream, except while the page is paused. */
export function followEvents(name, receive) {
  let lastContact = performance.timeOrigin;
  let events = null;
  let timer = 0;
  let paused = false;
  let received = null; // the newest event, also while the page is paused
  showLive = () => {
    if (events?.readyState !== EventSource.OPEN) return;
    setStatus(failure || (paused ? "Paused." : "Live."), Boolean(failure));
  };

  function connect() {
    events?.close();
    clearTimeout(timer);
    if (document.hidden) return;
    events = new EventSource(`${PREFIX}/events/${name}`);
    events.addEventListener("message", (event) => {
      lastContact = Date.now();
      showLive();
      received = event.data;
      if (!paused) receive(received);
      document.documentElement.dataset.live = "true";
    });
    events.addEventListener("error", () => {
      // A browser does not connect again by itself after a status such as 502 of a proxy whose server starts again.
      if (events.readyState === EventSource.CLOSED) timer = setTimeout(connect, RETRY_MILLISECONDS);
      setStatus(`Not live, as of ${formatTime(lastContact)}. Connecting again.`, true);
    });
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Continue" : "Pause";
    showLive();
    if (!paused && received) receive(received); // the next one may come later
  });
  document.addEventListener("visibilitychange", connect);
  setStatus("Connecting.");
  connect();
}
