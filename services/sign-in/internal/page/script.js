// Everything works without this script.
"use strict";
(() => {
  const base = document.body.dataset.base;
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel("sign-in " + base) : null;
  const password = document.getElementById("password");

  // A sign-in in one tab serves the others, unless the person is typing there.
  if (tabs && "signedIn" in document.body.dataset) tabs.postMessage("signed in");
  if (tabs && password && document.querySelector("[value=sign-in]")) {
    tabs.onmessage = () => {
      if (!password.value) location.replace(location.href);
    };
  }

  for (const button of document.querySelectorAll(".show")) {
    const field = button.previousElementSibling;
    button.hidden = false;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const shown = field.type === "password";
      field.type = shown ? "text" : "password";
      button.textContent = shown ? button.dataset.hide : button.dataset.show;
      button.setAttribute("aria-pressed", String(shown));
      field.focus();
    });
  }

  // A second click does not send a form again; a page that comes back from the history can.
  for (const form of document.forms) {
    form.addEventListener("submit", (event) => {
      if (form.getAttribute("aria-busy") === "true") event.preventDefault();
      form.setAttribute("aria-busy", "true");
      for (const field of form.querySelectorAll("[type=text][autocomplete*=password]")) field.type = "password";
    });
  }
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of document.forms) form.removeAttribute("aria-busy");
  });
})();
