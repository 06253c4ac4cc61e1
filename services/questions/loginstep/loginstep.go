// Package loginstep knows the conditions of the steps of an authentication template: identity-sources checks them, and
// sign-in evaluates them.
package loginstep

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/idplatform/idplatform/pkg/condition"
)

// conditions declares what a condition can read.
var conditions = environment()

func environment() *condition.Environment {
	env, err := condition.NewEnvironment(condition.Map("user"), condition.Texts("groups"), condition.Text("address"),
		condition.Flag("known_browser"), condition.Map("application"), condition.Texts("acr"), condition.Networks())
	if err != nil {
		panic(err) // only if the declaration above is wrong
	}
	return env
}

// Cost checks a condition, and returns what one evaluation costs at most (condition.Program.Cost). The error is a
// *condition.Error.
func Cost(text string) (int64, error) {
	program, err := conditions.Cached(text)
	if err != nil {
		return 0, err
	}
	return program.Cost(), nil
}

// Application is what a condition can read of an application. It is empty for a person's own page.
type Application struct {
	ID       string `json:"id"`
	ClientID string `json:"client_id"`
	Name     string `json:"name"`
	Category string `json:"category"`
}

// Input is what is known of a sign-in. All members are required.
type Input struct {
	User json.RawMessage // the record, in the form of the users service's events
	// Groups returns the groups of the user (questions.Groups). It is called only for a condition that reads them.
	Groups       func() ([]string, error)
	Address      string // of the browser
	KnownBrowser func() (bool, error)
	Application  Application
	ACR          []string // the classes that the application asks for
}

// Holds reports whether the condition of a step holds. A condition that cannot be decided holds, so that the step is
// not left out by mistake. The error is that of Groups or KnownBrowser, or of a record that is no JSON object.
func Holds(ctx context.Context, text string, in Input) (bool, error) {
	program, err := conditions.Cached(text)
	if err != nil { // it was stored by a newer version
		return true, nil
	}
	user, err := condition.FromJSON(in.User)
	if err != nil {
		return false, err
	}
	var failed error
	lazy := func(value any, err error) any {
		if err != nil {
			failed = err
		}
		return value
	}
	holds, err := program.Eval(ctx, map[string]any{
		"user": user, "address": plain(in.Address), "acr": append([]string{}, in.ACR...),
		"application": map[string]any{
			"id": in.Application.ID, "client_id": in.Application.ClientID, "name": in.Application.Name,
			"category": in.Application.Category,
		},
		"groups": func() any {
			groups, err := in.Groups()
			return lazy(append([]string{}, groups...), err)
		},
		"known_browser": func() any {
			known, err := in.KnownBrowser()
			return lazy(known, err)
		},
	})
	switch {
	case failed != nil:
		return false, failed
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return holds || err != nil, nil
}

// plain is an IPv4 address that was written as IPv6 in its own form.
func plain(address string) string {
	if addr, err := netip.ParseAddr(address); err == nil {
		return addr.Unmap().WithZone("").String()
	}
	return address
}
