// Package bus connects services through NATS: events from JetStream (Consume), put there by the outbox's relay (Publish), and checks,
// which are questions to another service that must be answered before an operation goes on (Ask, Answer).
//
// NATS may be away at any time, at the start too: a Bus connects for as long as it takes, consumers go on where they were, checks fail
// with apperr.Unavailable, events wait in the outbox. JetStream of NATS 2.14 or later is needed (consumers are reset to where they stopped).
package bus
