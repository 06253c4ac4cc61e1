// Package bus connects services through NATS: events from JetStream (Consume), put there by the outbox's relay (Publish), and checks,
// which are questions to another service that must be answered before an operation goes on (Ask, Answer).
//
// NATS may be away at any time, at the start too: a Bus connects for as long as it takes, consumers go on where they were, checks fail
// with apperr.Unavailable, events wait in the outbox. JetStream of NATS 2.14 or later is needed (consumers are reset to where they stopped).
//
// A question is trusted because of where it comes from: whoever may publish in the account that the Bus connects to is
// a service. Others need an account of their own, as readers of events have one in the embedded server and in
// deploy/nats/nats.conf.
package bus
