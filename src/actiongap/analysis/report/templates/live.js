"use strict";
// Asks every few seconds whether there is a newer page, and loads it with what the reader has chosen. Last on the page.
{
  const line = document.getElementById("live"), own = `"${line.dataset.stamp}"`, kept = "actiongap-live";
  const all = selector => [...document.querySelectorAll(selector)];
  const legend = () => all("#legend button");

  function keep() {
    sessionStorage.setItem(kept, JSON.stringify({
      chosen: all("select").map(each => each.selectedOptions[0]?.textContent),
      given: all("input").map(each => each.type === "checkbox" ? each.checked : each.value),
      hidden: legend().filter(each => each.getAttribute("aria-pressed") === "false").map(each => each.textContent),
      open: Object.fromEntries(all("details").map(each => [each.firstElementChild.textContent, each.open])),
      scrolled: window.scrollY,
    }));
  }
  function restore(choices) {
    all("select").forEach((each, i) => {
      const place = [...each.options].findIndex(option => option.textContent === choices.chosen[i]);
      if (place >= 0 && place !== each.selectedIndex) { each.selectedIndex = place; each.dispatchEvent(new Event("change")); }
    });
    all("input").forEach((each, i) => {
      if (choices.given[i] === undefined) return;
      if (each.type === "checkbox") each.checked = choices.given[i]; else each.value = choices.given[i];
      each.dispatchEvent(new Event(each.type === "checkbox" ? "change" : "input"));
    });
    for (const each of legend()) if (choices.hidden.includes(each.textContent)) each.click();
    for (const each of all("details")) each.open = choices.open[each.firstElementChild.textContent] ?? each.open;
    window.scrollTo({top: choices.scrolled, behavior: "instant"});
  }
  async function look() {
    try {
      const answer = await fetch("/", {method: "HEAD", cache: "no-store"});
      line.classList.remove("gone");
      line.textContent = "This page keeps itself up to date.";
      if (answer.ok && answer.headers.get("ETag") !== own) { keep(); location.reload(); return; }
    } catch {
      line.classList.add("gone");
      line.textContent = "actiongap serve does not answer any more: this is what was there last.";
    }
    setTimeout(look, 3000);
  }
  const choices = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  if (choices) restore(JSON.parse(choices));
  setTimeout(look, 3000);
}
