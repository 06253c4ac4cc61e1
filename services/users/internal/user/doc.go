// Package user is the heart of the users service: who exists in a tenant, under which login names, in which state.
//
// It owns the user record, the account beside it (password hashes, failed logins: nothing that an API answer or an event may show), and
// the avatar. Stored credentials, import and export are the neighbour packages'.
package user
