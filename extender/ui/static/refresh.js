// Pages about a cluster that changes: reads the page again when the server says that something changed.

import {
  followEvents, formatLastCurrent, getTime, isPaused, setClock, setCurrent, setFailure,
} from "./events.js";

const AGE_SECONDS = 5;
const LATE_SECONDS = 10;
const MAX_SECONDS = 120;

/** Read a page as a document. A request is no sink of Trusted Types, and runs no script of the page. */
function readPage(address, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.addEventListener("load", () => {
      const page = request.response;
      if (request.status !== 200 || !page) reject(new Error(`status ${request.status}`));
      // A proxy may answer with its login page. The footer is at the end of each page.
      else if (page.querySelector("[data-version]") && page.querySelector("footer")) resolve(page);
      else reject(new Error("the answer is another page, or ends early"));
    });
    request.addEventListener("error", () => reject(new Error("no answer")));
    signal.addEventListener("abort", () => {
      request.abort();
      reject(signal.reason);
    });
    request.send();
  });
}

/** The entry of a newer page for the same pods, of which some may be gone, and others may be first. */
function findEntry(entry, articles) {
  const links = new Map(articles.map((article) => [article.querySelector("a").href, article]));
  return [...entry.querySelectorAll("a")].map((link) => links.get(link.href)).find(Boolean);
}

const FOCUSABLE = "a[href], summary, [tabindex]";
const getLabel = (element) => element.href ?? element.getAttribute("aria-label") ?? element.tagName;

/** The links, summaries and regions that are the same as `focus`, in the order of the page. */
const listSame = (part, focus) => [...part.querySelectorAll(FOCUSABLE)].filter((e) => getLabel(e) === getLabel(focus));

/**
 * Replace the content of an element by that of a newer page. Open details stay open, scrolled regions stay scrolled, and
 * a link with the focus keeps it. Screen readers announce changes inside of an element with a role such as `status`, but
 * not a new such element.
 */
export function replaceElement(id, page) {
  const old = document.getElementById(id);
  const element = page.getElementById(id);
  if (!old || !element || old.isEqualNode(element)) return;
  const articles = [...element.querySelectorAll("article")];
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const part = focus?.closest("article") ?? old;
  const position = focus ? listSame(part, focus).indexOf(focus) : 0;
  const newPart = part === old ? old : findEntry(part, articles);
  const open = [...old.querySelectorAll("article details[open]")].map((details) => findEntry(details.closest("article"), articles));
  const scrolled = [...old.querySelectorAll(".scroll")].map((region) => [getLabel(region), region.scrollLeft]);
  old.replaceChildren(...document.adoptNode(element).childNodes);
  Object.assign(old.dataset, element.dataset);
  for (const entry of open) entry?.querySelector("details")?.setAttribute("open", "");
  for (const region of old.querySelectorAll(".scroll")) region.scrollLeft = new Map(scrolled).get(getLabel(region)) ?? 0;
  const same = focus && newPart ? listSame(newPart, focus) : [];
  (same[position] ?? same[0])?.focus({ preventScroll: true });
}

/** The number of the last change that this page shows. */
const getVersion = () => Number(document.querySelector("[data-version]")?.dataset.version ?? -1);

/**
 * Show the newest version of this page after each change, or when the reader comes back to the page: call `update` with
 * the page, and with the document that `readDocument` has read after it. The reader may pause the page meanwhile.
 */
export function followChanges(update, readDocument = () => null) {
  let version = getVersion();
  let reading = false;

  async function readOnce(signal) {
    const [wanted, time] = [version, getTime()];
    const page = await readPage(location.href, signal);
    const newest = await readDocument(signal);
    if (isPaused()) {
      setFailure("");
      return;
    }
    setClock(page);
    replaceElement("problems", page);
    document.title = page.title;
    update(page, newest);
    if (version === wanted) version = getVersion(); // the page may be newer than the event
    setCurrent(time);
    setFailure("");
  }

  const showLate = () => setFailure(`As of ${formatLastCurrent()}. The page is being read again.`);

  async function readAgain() {
    if (reading || document.hidden) return;
    reading = true;
    while (version !== getVersion() && !isPaused()) {
      const controller = new AbortController();
      const abort = () => controller.abort(new Error(`no answer for ${MAX_SECONDS} s`));
      const timers = [setTimeout(showLate, 1000 * LATE_SECONDS), setTimeout(abort, 1000 * MAX_SECONDS)];
      try {
        await readOnce(controller.signal);
      } catch (error) {
        setFailure(`As of ${formatLastCurrent()}. The page cannot be read again: ${error.message}.`);
        break; // the next event tries again
      } finally {
        for (const timer of timers) clearTimeout(timer);
      }
    }
    reading = false;
  }

  followEvents("changes", (text, time, isFirst) => {
    ({ version } = JSON.parse(text));
    if (version === getVersion()) setCurrent(time);
    else if (isFirst) showLate(); // what it shows may be old
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
    element.textContent = formatAge(Math.max(Math.floor((getTime() - Date.parse(element.dataset.since)) / 1000), 0));
  }
}

if (document.getElementById("live")) {
  followChanges((page) => {
    for (const id of ["count", "failures", "live"]) replaceElement(id, page);
    showAges();
  });
  setInterval(showAges, 1000 * AGE_SECONDS);
}
