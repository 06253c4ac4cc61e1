package apperr

import (
	"errors"
	"fmt"
	"strings"
)

// Faults collects the faults of one request, so that all are reported at once. The zero value is ready for use.
type Faults struct {
	list  []Fault
	of    *Faults // the Faults that this is a part of; nil for the whole
	below string  // the member that the faults of this part belong to
}

// Within collects faults inside a member: a fault added at email of Within("items[3]") is in f at items[3].email.
func (f *Faults) Within(member string) *Faults { return &Faults{of: f, below: member} }

// Add adds a fault.
func (f *Faults) Add(location, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	for ; f.of != nil; f = f.of {
		location = Below(f.below, location)
	}
	f.list = append(f.list, Fault{Location: location, Message: message})
}

// Check adds a fault unless ok.
func (f *Faults) Check(ok bool, location, format string, args ...any) {
	if !ok {
		f.Add(location, format, args...)
	}
}

// Err returns nil if there are no faults, otherwise an InvalidParameters error with all of them. Call it on the
// whole, not on the result of Within.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Error{Kind: InvalidParameters, Detail: summary(f.list), Faults: f.list}
}

// summary is a sentence with the first fault and the number of others.
func summary(faults []Fault) string {
	detail := strings.TrimSpace(faults[0].Location + " " + faults[0].Message)
	if n := len(faults) - 1; n > 0 {
		detail += fmt.Sprintf(" (and %d more)", n)
	}
	return detail
}

// Item is the location of an item of a list: items[3].
func Item(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// Below is the location of a member inside a member: email in items[3] is items[3].email. An empty location means the
// whole.
func Below(outer, inner string) string {
	if outer == "" || inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}

// Relocate returns err with the location of each fault changed by to. Faults that become equal are kept once.
func Relocate(err error, to func(location string) string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Faults = nil
	seen := map[Fault]bool{}
	for _, fault := range e.Faults {
		fault.Location = to(fault.Location)
		if !seen[fault] {
			moved.Faults = append(moved.Faults, fault)
		}
		seen[fault] = true
	}
	if e.Detail == summary(e.Faults) {
		moved.Detail = summary(moved.Faults)
	}
	return &moved
}
