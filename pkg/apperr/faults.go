package apperr

import (
	"errors"
	"fmt"
	"strings"
)

// Faults collects what is wrong with one request, so that all of it is told at once. The zero value is ready.
type Faults struct {
	list  []Fault
	of    *Faults // what it is a part of
	below string  // the member that all of the part's faults are in
}

// Within is the part of the faults that are found in a member: what is noted there at email is noted in f at
// items[3].email.
func (f *Faults) Within(member string) *Faults { return &Faults{of: f, below: member} }

// Add notes a fault.
func (f *Faults) Add(location, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	for ; f.of != nil; f = f.of {
		location = Below(f.below, location)
	}
	f.list = append(f.list, Fault{location, message})
}

// Check notes a fault unless ok.
func (f *Faults) Check(ok bool, location, format string, args ...any) {
	if !ok {
		f.Add(location, format, args...)
	}
}

// Err is nil without faults, else an InvalidParameters error with all of them. It is for the whole, not for a part.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Error{Kind: InvalidParameters, Detail: summary(f.list), Faults: f.list}
}

// summary is a sentence about faults.
func summary(faults []Fault) string {
	detail := strings.TrimSpace(faults[0].Location + " " + faults[0].Message)
	if n := len(faults) - 1; n > 0 {
		detail += fmt.Sprintf(" (and %d more)", n)
	}
	return detail
}

// Item is the location of an item of a list: items[3].
func Item(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// Below is the location of a member of a member: email in items[3] is items[3].email. Either may be "", the whole.
func Below(outer, inner string) string {
	if outer == "" || inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}

// Relocate is err with its faults elsewhere. Faults that are the same there are told once.
func Relocate(err error, to func(location string) string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Faults = nil
	told := map[Fault]bool{}
	for _, fault := range e.Faults {
		fault.Location = to(fault.Location)
		if !told[fault] {
			moved.Faults = append(moved.Faults, fault)
		}
		told[fault] = true
	}
	if e.Detail == summary(e.Faults) {
		moved.Detail = summary(moved.Faults)
	}
	return &moved
}
