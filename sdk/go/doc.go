// Package idp calls the identity platform: every operation as a method of Client, made from the OpenAPI document, over
// a small runtime that knows the platform's conventions. Errors are *Problem or *LostError, lists are iterators, each
// POST has an Idempotency-Key, and what can be repeated safely is repeated.
package idp
