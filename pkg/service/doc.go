// Package service makes a process of a service: configuration, store, NATS, credentials, the listeners, and the order
// in which all of them start and stop. A service's main is a struct of settings and a call of Main. The standalone
// program runs the same Units in one process.
package service
