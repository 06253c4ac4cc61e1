// Package testkit runs a service in a test: with a store, a NATS server, a clock and signing keys of the test's own, and a client that
// speaks to its handler.
//
// IDP_TEST_MONGO_URI makes every store a fresh database there instead of a SQLite file.
package testkit
