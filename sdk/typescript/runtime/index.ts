// What users import: the generated operations and types, and the hand-written runtime around them.
export * from '../src/index.js';
export {createClient, type Client, type ClientConfig} from './client.js';
export {ProblemError, UnreachableError} from './errors.js';
export {pages, type Page} from './pages.js';
export type {RetryOptions} from './retry.js';
export {clientCredentials, type ClientCredentials, type TokenSource} from './tokens.js';
export {verifyWebhook, WebhookError, type WebhookFault, type WebhookHeaders, type WebhookOptions} from './webhook.js';
export {typedEvent, type EventOf, type EventType, type PlatformEvent, type UnknownEvent} from './events.js';
export type {EventData} from './events.gen.js';
