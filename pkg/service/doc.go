// Package service makes a process of a service: configuration, store, NATS, credentials, the listeners, and the order in which all of
// it starts and stops. A service's main is a struct of settings and a call of Main; the standalone program assembles the same Units
// in one process.
package service
