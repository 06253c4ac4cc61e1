// A file of its own, not a script in the page: the Content-Security-Policy allows no inline script.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  filter: true,
  operationsSorter: "alpha",
  tagsSorter: "alpha",
  validatorUrl: null, // the validator is a service on the internet
});
