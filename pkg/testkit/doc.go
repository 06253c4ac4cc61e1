// Package testkit runs a service in a test: with a store, a NATS server, a clock and signing keys for the test, and a
// client that calls its handler.
//
// With IDP_TEST_MONGO_URI every store is a new database there instead of a SQLite file.
package testkit
