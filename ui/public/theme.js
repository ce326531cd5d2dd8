// Sets the theme before the first paint. A file of its own because the page's policy allows no inline script.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("reactor.theme");
  } catch {
    // Storage may be closed to this page; the system's theme is used then.
  }
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = chosen === "dark" || chosen === "light" ? chosen : light ? "light" : "dark";
})();
