// Answers each line of standard input, a JSON object with a filter or a PATCH operation and a resource, with a line: what
// the other implementations make of it. An error is {"error": its text}.
import {createRequire} from "node:module";
import readline from "node:readline";
import SCIMMY from "scimmy";

const require = createRequire(import.meta.url);
const {scimPatch} = require("scim-patch");
const {parse, filter} = require("scim2-parse-filter");
const {compileFilter} = require("scim-query-filter-parser");

const {User, EnterpriseUser} = SCIMMY.Schemas;
User.extend(EnterpriseUser);

const copy = value => JSON.parse(JSON.stringify(value));

async function attempt(make) {
    try {
        return {value: await make()};
    } catch (fault) {
        return {error: String(fault.scimType ?? fault.message)};
    }
}

async function scimmy(resource, operations) {
    const message = new SCIMMY.Messages.PatchOp({
        schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], Operations: copy(operations),
    });
    const user = new User({id: "1", ...copy(resource)});
    return copy(await message.apply(user) ?? user);
}

for await (const line of readline.createInterface({input: process.stdin})) {
    const {resource, operations, filter: text} = JSON.parse(line);
    const answer = text === undefined ? {
        "scim-patch": await attempt(() => scimPatch(copy(resource), copy(operations))),
        "scimmy": await attempt(() => scimmy(resource, operations)),
    } : {
        "scim2-parse-filter": await attempt(() => filter(parse(text))(resource)),
        "scim-query-filter-parser": await attempt(() => compileFilter(text)(resource)),
    };
    process.stdout.write(JSON.stringify(answer) + "\n");
}
