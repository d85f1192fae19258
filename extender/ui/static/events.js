// Server-sent events of a page. A browser opens at most six connections to a server, so a hidden tab has none.

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const connection = document.getElementById("connection");

/** Show the state of the connection. */
export function setStatus(text, isLost = false) {
  if (!connection || connection.textContent === text) return;
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

/** Call `receive` with the text of each event of a stream; `getLiveText` returns the state while it is connected. */
export function followEvents(name, receive, getLiveText = () => "Live.") {
  let lastContact = performance.timeOrigin;
  let events = null;
  function connect() {
    events = new EventSource(`${PREFIX}/events/${name}`);
    events.addEventListener("message", (event) => {
      lastContact = Date.now();
      setStatus(getLiveText());
      receive(event.data);
      document.documentElement.dataset.live = "true";
    });
    events.addEventListener("error", () => {
      const next = events.readyState === EventSource.CLOSED ? "Reload the page to try again." : "Connecting again.";
      setStatus(`Not live, as of ${new Date(lastContact).toISOString().slice(11, 19)} UTC. ${next}`, true);
    });
  }
  document.addEventListener("visibilitychange", () => {
    events?.close();
    if (!document.hidden) connect();
  });
  setStatus("Connecting.");
  if (!document.hidden) connect();
}
