// Pages about a cluster that changes: reads the page again when the server says that something changed.

import { followEvents, formatTime, setFailure } from "./events.js";

const AGE_SECONDS = 5;

/** Read a page as a document. A request is no sink of Trusted Types, and runs no script of the page. */
function readPage(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.addEventListener("load", () => {
      if (request.status === 200 && request.response) resolve(request.response);
      else reject(new Error(`status ${request.status}`));
    });
    request.addEventListener("error", () => reject(new Error("no answer")));
    request.send();
  });
}

/**
 * Replace the content of an element by that of a newer page. Open details stay open, and a link with the focus keeps it.
 * Screen readers announce changes inside of an element with a role such as `status`, but not a new such element.
 */
export function replaceElement(id, page) {
  const old = document.getElementById(id);
  const element = page.getElementById(id);
  if (!old || !element || old.isEqualNode(element)) return;
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const open = [...old.querySelectorAll("details[open]")].map((details) => details.id);
  old.replaceChildren(...document.adoptNode(element).childNodes);
  Object.assign(old.dataset, element.dataset);
  for (const name of open) {
    const details = document.getElementById(name);
    if (details) details.open = true;
  }
  if (!focus) return;
  const links = [...old.querySelectorAll("a[href], summary, [tabindex]")];
  const same = links.find((link) =>
    focus.href ? link.href === focus.href : link.tagName === focus.tagName && link.textContent === focus.textContent,
  );
  same?.focus({ preventScroll: true });
}

/** The number of the last change that this page shows. */
const getVersion = () => Number(document.querySelector("[data-version]")?.dataset.version ?? -1);

/** Call `update` with the newest version of this page after each change, or when the reader comes back to the page. */
export function followChanges(update) {
  let version = getVersion();
  let reading = false;
  let lastCurrent = performance.timeOrigin; // when the page last showed the newest version
  async function readAgain() {
    if (reading || document.hidden) return;
    reading = true;
    try {
      while (version !== getVersion()) {
        const wanted = version;
        const page = await readPage(location.href);
        replaceElement("problems", page);
        await update(page);
        if (version === wanted) version = getVersion(); // the page may be newer than the event
        lastCurrent = Date.now();
        setFailure("");
      }
    } catch (error) {
      // The next event tries again.
      setFailure(`As of ${formatTime(lastCurrent)}. The page cannot be read again: ${error.message}.`);
    } finally {
      reading = false;
    }
  }
  followEvents("changes", (text) => {
    ({ version } = JSON.parse(text));
    if (version === getVersion()) lastCurrent = Date.now();
    void readAgain();
  });
}

function formatAge(seconds) {
  const [days, hours, minutes] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60].map(Math.floor);
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

function showAges() {
  for (const element of document.querySelectorAll("[data-since]")) {
    element.textContent = formatAge(Math.max(Math.floor((Date.now() - Date.parse(element.dataset.since)) / 1000), 0));
  }
}

if (document.getElementById("live")) {
  followChanges((page) => {
    replaceElement("count", page);
    replaceElement("live", page);
    showAges();
  });
  setInterval(showAges, 1000 * AGE_SECONDS);
}
