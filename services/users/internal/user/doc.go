// Package user is the core of the users service: the users of a tenant, their login names and their states.
//
// It owns the user record, the account beside it (password hashes and failed logins, which no API answer or event may
// show), and the avatar. Other packages of the service own stored credentials, and import and export.
package user
