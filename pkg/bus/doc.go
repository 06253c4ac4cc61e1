// Package bus connects services through NATS: with events in JetStream, which the outbox's relay puts there (Publish)
// and package stream reads, and with questions to another service that must be answered before an operation continues
// (Ask, Answer).
//
// NATS may be away at any time, including the start. A Bus tries to connect until it succeeds, questions fail with
// apperr.Unavailable, and events wait in the outbox. JetStream of NATS 2.14 or later is required: package
// stream sets the places of consumers.
//
// A question is trusted because of its origin: every client that may publish in the account that the Bus connects to is
// a service. Other clients need an account of their own, as readers of events have in the embedded server and in
// deploy/nats/nats.conf.
package bus
