package apperr

import "fmt"

// Use is how many records of a kind, such as auth_rules, refer to something. If AtLeast, there may be more.
type Use struct {
	What    string
	Count   int64
	AtLeast bool
}

// InUseBy returns an InUse error whose faults say what refers to something, and how often. It returns nil if nothing
// does.
func InUseBy(detail string, uses ...Use) error {
	refusal := &Error{Kind: InUse, Detail: detail}
	for _, use := range uses {
		message := fmt.Sprintf("%d records refer to it", use.Count)
		switch {
		case use.Count == 0:
			continue
		case use.AtLeast:
			message = "more than " + message
		case use.Count == 1:
			message = "1 record refers to it"
		}
		refusal.Faults = append(refusal.Faults, Fault{Location: use.What, Message: message, Count: use.Count})
	}
	if len(refusal.Faults) == 0 {
		return nil
	}
	return refusal
}
