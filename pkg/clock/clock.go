// Package clock is the only source of the current time. Services take a Clock, so that tests can set the time.
package clock

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Clock tells the time. Implementations are safe for concurrent use.
type Clock interface {
	Now() Time
}

// System is the machine's clock.
var System Clock = system{}

type system struct{}

func (system) Now() Time { return Of(time.Now()) }

// Time is a moment in UTC with a precision of one millisecond, which every store can keep. The zero Time means
// "never" or "not set". In JSON the zero Time is null; any other Time is an RFC 3339 string with three decimals.
type Time struct{ t time.Time }

// Layout is the form of every time in responses, events and stored documents.
const Layout = "2006-01-02T15:04:05.000Z"

// Of converts t to UTC and cuts it to the millisecond. A zero t gives the zero Time.
func Of(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// FromMillis converts milliseconds since 1970-01-01T00:00:00Z; it is the inverse of Millis.
func FromMillis(ms int64) Time { return Time{time.UnixMilli(ms).UTC()} }

// Parse reads an RFC 3339 time with any offset, or a bare date (midnight UTC). The year must lie in 1…9999 after the
// conversion to UTC too: an offset can move a time into a year that RFC 3339 cannot write, and a stored time must be
// readable again.
func Parse(s string) (Time, error) {
	upper := strings.ToUpper(s) // RFC 3339 §5.6: t and z may be small
	t, err := time.Parse(time.RFC3339Nano, upper)
	if err == nil && !isStrict(upper) {
		err = errForm
	} else if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return Time{}, errForm
	}
	return Of(t), nil
}

var errForm = errors.New("must be an RFC 3339 time or a date like 2026-01-31")

// isStrict refuses what time.Parse takes beyond RFC 3339 (go.dev/issue/54580): a comma, an hour of one digit, an offset
// of a day and more.
func isStrict(s string) bool {
	return s[len("2006-01-02T15")] == ':' && s[len("2006-01-02T15:04:05")] != ',' &&
		(s[len(s)-1] == 'Z' || s[len(s)-len("15:04"):] < "24:00" && s[len(s)-len("04"):] < "60")
}

// Millis is the number of milliseconds since 1970-01-01T00:00:00Z.
func (t Time) Millis() int64 { return t.t.UnixMilli() }

// IsZero reports whether t is not set.
func (t Time) IsZero() bool { return t.t.IsZero() }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t.t.Before(u.t) }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t.t.After(u.t) }

// Add returns t moved by d. Parts of d below a millisecond are dropped.
func (t Time) Add(d time.Duration) Time { return Of(t.t.Add(d)) }

// Sub is the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return t.t.Sub(u.t) }

// Std returns t as the standard library's time.Time.
func (t Time) Std() time.Time { return t.t }

// String is the JSON form without quotes; it is empty for the zero Time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.t.Format(Layout)
}

// MarshalJSON writes null or RFC 3339 with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(Layout)+2)
	b = append(b, '"')
	b = t.t.AppendFormat(b, Layout)
	return append(b, '"'), nil
}

// UnmarshalJSON reads null and whatever Parse reads, as a string.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("a time must be a string")
	}
	parsed, err := Parse(string(b[1 : len(b)-1]))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
