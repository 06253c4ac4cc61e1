// This is not a script inside the page, because the Content-Security-Policy allows no inline scripts.
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
  validatorUrl: null, // the validator is a public service: do not send the document there
});
