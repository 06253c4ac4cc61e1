// Answers each line of JSON, {do, options, ...}, with a line of JSON: {result} or {error}.
import { createInterface } from "node:readline";
import { SAML } from "@node-saml/node-saml";

const does = {
  authorizeURL: (sp, q) => sp.getAuthorizeUrlAsync(q.relayState, undefined, {}),
  authorizeMessage: (sp, q) => sp.getAuthorizeMessageAsync(q.relayState),
  validate: (sp, q) => sp.validatePostResponseAsync({ SAMLResponse: q.message }),
  logoutURL: (sp, q) => sp.getLogoutUrlAsync(q.profile, q.relayState, {}),
  validateQuery: (sp, q) =>
    sp.validateRedirectAsync(Object.fromEntries(new URLSearchParams(q.query)), q.query),
  validateLogoutRequest: (sp, q) => sp.validatePostRequestAsync({ SAMLRequest: q.message }),
  logoutResponseURL: (sp, q) => sp.getLogoutResponseUrlAsync(q.profile, q.relayState, {}, true),
};

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  let answer;
  try {
    answer = { result: await does[question.do](new SAML(question.options), question) };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  console.log(JSON.stringify(answer));
}
