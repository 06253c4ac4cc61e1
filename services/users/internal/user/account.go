package user

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// account is the part of a user that no API answer and no event shows. Its id is the user's. It is created with the
// first password, failed login, scheduled resignation or verified number.
type account struct {
	docstore.Meta
	Password     string   `json:"password"`      // PHC string
	OldPasswords []string `json:"old_passwords"` // newest first
	// wrong passwords since the last success, lock or unlock, oldest first
	FailedLogins []clock.Time `json:"failed_logins"`
	// those from browsers with which the user has signed in before, oldest first
	BrowserFailures []browserFailure `json:"browser_failures,omitempty"`
	// times of resets that changed nothing, but compared a given password with the former ones
	ResetTries []clock.Time `json:"reset_tries,omitempty"`
	// the id of the last change of the password that a user made while signing in
	LastChange string `json:"last_change,omitempty"`
	Reason     string `json:"resign_reason"` // reason of a scheduled resignation
	Successor  string `json:"successor_id"`
	IDNumber   string `json:"id_number"` // keyed hash
}

// browserFailure is a wrong password from a known browser.
type browserFailure struct {
	Browser string     `json:"browser"`
	Time    clock.Time `json:"time"`
}

// countedBrowsers bounds BrowserFailures: of about so many browsers at once wrong passwords count. The oldest are
// forgotten first.
const countedBrowsers = 20

var accounts = docstore.Define(docstore.Schema[account]{
	Name: "accounts", Noun: "account", NoIfMatch: true,
	Indexes: []docstore.Index[account]{
		docstore.Unique(docstore.ByText(byIDNumber, func(a *account) string { return a.IDNumber }), "id_number"),
	},
})

const byIDNumber = "id_number"

// editAccount changes a user's account, and creates it if there is none. It writes even if edit changes nothing, so
// that the time of an answer does not tell whether something changed.
func editAccount(ctx context.Context, tx *docstore.Tx, id string, edit func(*account) error) error {
	a, err := accounts.Load(ctx, tx, id)
	if apperr.IsNotFound(err) {
		a = &account{Meta: docstore.Meta{ID: id}}
		if err := edit(a); err != nil {
			return err
		}
		_, err = accounts.Insert(ctx, tx, a)
		return err
	}
	if err != nil {
		return err
	}
	if err := edit(a); err != nil {
		return err
	}
	_, err = accounts.Revise(ctx, tx, a)
	return err
}

// findAccount returns an empty account if there is none.
func findAccount(ctx context.Context, r docstore.Reader, id string) (*account, error) {
	doc, err := accounts.Find(ctx, r, id)
	if apperr.IsNotFound(err) {
		return &account{Meta: docstore.Meta{ID: id}}, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

const keptPasswords = 5

// setPassword remembers the former passwords, so that none of the last five is used again.
func (a *account) setPassword(hash string) {
	if a.Password != "" {
		a.OldPasswords = append([]string{a.Password}, a.OldPasswords...)
	}
	a.OldPasswords = a.OldPasswords[:min(len(a.OldPasswords), keptPasswords-1)]
	a.Password, a.FailedLogins, a.BrowserFailures, a.ResetTries = hash, nil, nil, nil
}

// failures are the times of the wrong passwords that still count.
func (a *account) failures(now clock.Time, limit Lockout) []clock.Time {
	return limit.recent(a.FailedLogins, now)
}

// recent returns the times that still count.
func (l Lockout) recent(times []clock.Time, now clock.Time) []clock.Time {
	return slices.DeleteFunc(slices.Clone(times), func(t clock.Time) bool { return now.Sub(t) >= l.Within })
}

// fail notes a wrong password and reports whether there are too many.
func (a *account) fail(now clock.Time, limit Lockout) (tooMany bool) {
	a.FailedLogins = a.failures(now, limit)
	if len(a.FailedLogins) < limit.Failures {
		a.FailedLogins = append(a.FailedLogins, now)
	}
	return len(a.FailedLogins) >= limit.Failures
}

// failuresFrom are the times of the wrong passwords from a known browser that still count.
func (a *account) failuresFrom(browser string, now clock.Time, limit Lockout) []clock.Time {
	var times []clock.Time
	for _, f := range a.BrowserFailures {
		if f.Browser == browser {
			times = append(times, f.Time)
		}
	}
	return limit.recent(times, now)
}

// failFrom notes a wrong password from a known browser, unless there were as many already as refuse it.
func (a *account) failFrom(browser string, now clock.Time, limit Lockout) {
	a.BrowserFailures = slices.DeleteFunc(a.BrowserFailures, func(f browserFailure) bool {
		return now.Sub(f.Time) >= limit.Within
	})
	if len(a.failuresFrom(browser, now, limit)) < limit.Failures {
		a.BrowserFailures = append(a.BrowserFailures, browserFailure{browser, now})
	}
	a.BrowserFailures = a.BrowserFailures[max(0, len(a.BrowserFailures)-countedBrowsers*limit.Failures):]
}

// hasFailures reports whether there are wrong passwords that a sign-in ends: strangers', or those from a known browser.
func (a *account) hasFailures(browser string) bool {
	if browser == "" {
		return len(a.FailedLogins) > 0
	}
	return slices.ContainsFunc(a.BrowserFailures, func(f browserFailure) bool { return f.Browser == browser })
}

func (a *account) forgetFailures(browser string) {
	if browser == "" {
		a.FailedLogins = nil
		return
	}
	a.BrowserFailures = slices.DeleteFunc(a.BrowserFailures, func(f browserFailure) bool {
		return f.Browser == browser
	})
}

// clearFailures restarts the count of wrong passwords.
func clearFailures(ctx context.Context, tx *docstore.Tx, id string) error {
	a, err := accounts.Load(ctx, tx, id)
	if apperr.IsNotFound(err) || err == nil && len(a.FailedLogins) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	a.FailedLogins = nil
	_, err = accounts.Replace(ctx, tx, a)
	return err
}
