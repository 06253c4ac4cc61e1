// Everything but passkeys works without this script.
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

  // The browser is asked for a passkey, and its answer goes with the form.
  const keys = window.PublicKeyCredential;
  const failed = document.querySelector("[data-passkey-failed]");
  let waiting = new AbortController();
  const ask = async (form, button, more) => {
    const options = JSON.parse(form.dataset.options);
    const request = form.dataset.passkey === "create" ? keys.parseCreationOptionsFromJSON(options)
      : keys.parseRequestOptionsFromJSON(options);
    const answer = await navigator.credentials[form.dataset.passkey]({publicKey: request, ...more});
    form.elements.passkey.value = JSON.stringify(answer.toJSON());
    form.requestSubmit(button);
  };
  if (keys?.parseRequestOptionsFromJSON) {
    for (const part of document.querySelectorAll("[data-needs-passkeys]")) part.hidden = false;
    for (const form of document.querySelectorAll("[data-passkey]")) {
      form.addEventListener("submit", async (event) => {
        if (form.elements.passkey.value) return;
        event.preventDefault();
        waiting.abort();
        failed.hidden = true;
        await ask(form, event.submitter).catch(() => {
          failed.hidden = false;
        });
      });
      if ("autofill" in form.dataset) {
        keys.isConditionalMediationAvailable?.().then((can) => {
          if (can) return ask(form, form.querySelector("button"), {mediation: "conditional", signal: waiting.signal});
        }).catch(() => {});
      }
    }
  }

  // A second click does not send a form again; a page that comes back from the history can.
  for (const form of document.forms) {
    form.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      if (form.getAttribute("aria-busy") === "true") event.preventDefault();
      form.setAttribute("aria-busy", "true");
      for (const field of form.querySelectorAll("[type=text][autocomplete*=password]")) field.type = "password";
    });
  }
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of document.forms) {
      form.removeAttribute("aria-busy");
      if (form.elements.passkey) form.elements.passkey.value = "";
    }
  });
})();
